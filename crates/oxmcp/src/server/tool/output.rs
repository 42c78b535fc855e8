//! Tool output: the types that a handler may return, and their conversion to results.

use std::borrow::Cow;

use oxmcp_protocol::{CallToolResult, ContentBlock};
use oxmcp_schema::{JsonSchema, Schema, internal::Written};
use serde::Serialize;

use super::{IntoToolError, ToolError};
use crate::error::Error;

/// A return type for tool handlers.
///
/// - Strings become text. `()` becomes an empty result.
/// - Numbers and booleans become text and structured content, with an output schema.
/// - [`Structured<T>`] returns any serializable type as structured content, with its schema. The text is its JSON, or
///   [another text](Structured::with_text).
/// - [`ContentBlock`]s become the content: one, a `Vec`, or an array of them.
/// - A [`CallToolResult`] is the whole result.
/// - A [`Reply`](crate::Reply) of any of these, for a tool that returns its questions to the client.
/// - `Result<T, E>` of any of these, where `E` is a [`ToolError`] or any [`std::error::Error`].
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something a model can be given",
    note = "return a String, a number, a bool, `Structured<T>` for your own serializable types, content blocks or a `CallToolResult`",
    note = "or a `Result` of these whose error is `ToolError` or any `std::error::Error`"
)]
pub trait IntoToolResult {
    /// The schema of the structured content, if the type has any.
    #[must_use]
    fn output_schema() -> Option<Schema> {
        None
    }

    /// Whether the type can be a [`Reply`](crate::Reply), which asks for input instead of giving a result.
    #[doc(hidden)]
    const IS_REPLY: bool = false;

    /// Converts the value to the result of the call.
    ///
    /// # Errors
    /// The failure of the tool.
    fn into_tool_result(self) -> Result<CallToolResult, ToolError>;

    /// The same for a tool with this output schema. The value can be validated against it while it is serialized.
    #[doc(hidden)]
    fn into_checked_result(self, schema: Option<&Schema>) -> Result<CheckedResult, ToolError>
    where
        Self: Sized,
    {
        let _ = schema;
        self.into_tool_result().map(CheckedResult::from)
    }
}

/// A result, and whether it was validated.
#[doc(hidden)]
#[expect(unnameable_types, reason = "only a hidden method mentions it")]
#[derive(Debug)]
pub struct CheckedResult {
    pub(crate) result: CallToolResult,
    /// Whether its structured content is known to match the output schema.
    pub(crate) is_valid: bool,
}

impl From<CallToolResult> for CheckedResult {
    fn from(result: CallToolResult) -> Self {
        Self {
            result,
            is_valid: false,
        }
    }
}

/// Structured content: a value of any serializable type, returned by a tool.
///
/// The JSON is also returned as text for the model, since not every client passes structured content on.
///
/// Revisions before 2026-07-28 allow only objects as structured content. For them, another value, such as a list, becomes the
/// member `result` of an object, and so does its output schema. Clients of this crate unwrap it in every revision. To give other
/// clients the same shape in all revisions, use [`wrapped`](Self::wrapped), which always puts the value into an object.
///
/// ```
/// use oxmcp::{JsonSchema, Structured, Tool};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Place { city: String }
///
/// #[derive(serde::Serialize, JsonSchema)]
/// struct Weather { celsius: f64, sunny: bool }
///
/// let tool = Tool::new("weather", "Tell the weather", |_: Place| async {
///     Structured(Weather { celsius: 22.5, sunny: true })
/// });
/// # let _ = tool;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "it is a wrapper that users construct"
)]
pub struct Structured<T>(pub T);

impl<T> Structured<T> {
    /// Replaces the JSON text by another text, for models; programs read the structured content.
    ///
    /// ```
    /// use oxmcp::{JsonSchema, Structured, Tool};
    ///
    /// #[derive(serde::Serialize, JsonSchema)]
    /// struct Weather { celsius: f64 }
    ///
    /// let tool = Tool::new("weather", "Tell the weather", || async {
    ///     Structured(Weather { celsius: 22.5 }).with_text("It is warm: 22.5 °C.")
    /// });
    /// # let _ = tool;
    /// ```
    pub fn with_text(self, text: impl Into<String>) -> StructuredContent<T> {
        self.with_content([ContentBlock::text(text)])
    }

    /// Replaces the JSON text by content of any kind.
    pub fn with_content(
        self,
        content: impl IntoIterator<Item = ContentBlock>,
    ) -> StructuredContent<T> {
        StructuredContent {
            value: self.0,
            content: content.into_iter().collect(),
        }
    }
}

impl<T> Structured<Wrapped<T>> {
    /// Puts a value into the member `result` of an object, in every revision, with a matching schema.
    ///
    /// ```
    /// use oxmcp::{Server, Structured, Tool, Wrapped, testing};
    ///
    /// async fn names() -> Structured<Wrapped<Vec<String>>> {
    ///     Structured::wrapped(vec!["Ada".to_owned()])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// let server = Server::new("people", "1.0.0").tool(Tool::new("names", "List names", names));
    /// let session = testing::connect(&server).await?;
    /// let result = session.call_tool("names", ()).await?;
    /// assert_eq!(result.structured_content.unwrap().get(), r#"{"result":["Ada"]}"#);
    /// // Clients of this crate unwrap it.
    /// let names: Vec<String> = session.call_tool("names", ()).structured().await?;
    /// assert_eq!(names, ["Ada"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn wrapped(result: T) -> Self {
        Self(Wrapped { result })
    }
}

/// A value in an object, as its member `result`; mostly made by [`Structured::wrapped`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, oxmcp_macros::JsonSchema)]
// The doc comments here are not meant for a model.
#[schemars(description = "")]
#[expect(
    clippy::exhaustive_structs,
    reason = "it is a wrapper that users construct"
)]
pub struct Wrapped<T> {
    /// The value.
    #[schemars(description = "")]
    pub result: T,
}

/// A [`Structured`] value with separate content.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "return it from the tool"]
pub struct StructuredContent<T> {
    value: T,
    content: Vec<ContentBlock>,
}

impl<T: Serialize + JsonSchema> IntoToolResult for StructuredContent<T> {
    fn output_schema() -> Option<Schema> {
        Some(Schema::of_output::<T>())
    }

    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        self.into_checked_result(None).map(|it| it.result)
    }

    fn into_checked_result(self, schema: Option<&Schema>) -> Result<CheckedResult, ToolError> {
        Ok(with_structured(self.content, write(schema, &self.value)?))
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Structured<T> {
    fn output_schema() -> Option<Schema> {
        Some(Schema::of_output::<T>())
    }

    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        self.into_checked_result(None).map(|it| it.result)
    }

    fn into_checked_result(self, schema: Option<&Schema>) -> Result<CheckedResult, ToolError> {
        let written = write(schema, &self.0)?;
        let text = ContentBlock::text(written.json.get());
        Ok(with_structured(vec![text], written))
    }
}

fn with_structured(content: Vec<ContentBlock>, written: Written) -> CheckedResult {
    let mut result = CallToolResult::new(content);
    result.structured_content = Some(written.json);
    CheckedResult {
        result,
        is_valid: written.is_valid,
    }
}

fn write<T: Serialize>(schema: Option<&Schema>, value: &T) -> Result<Written, ToolError> {
    Schema::write(schema, value).map_err(|error| {
        let error =
            Error::internal("could not serialize the result of the tool").with_source(error);
        error.into()
    })
}

/// Implements [`IntoToolResult`] for types that become both text and structured content.
macro_rules! scalars {
    ($($scalar:ty)*) => {$(
        impl IntoToolResult for $scalar {
            fn output_schema() -> Option<Schema> {
                Some(Schema::of_output::<Self>())
            }

            fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
                Structured(self).into_tool_result()
            }

            fn into_checked_result(self, schema: Option<&Schema>) -> Result<CheckedResult, ToolError> {
                Structured(self).into_checked_result(schema)
            }
        }
    )*};
}

scalars!(bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);

/// Implements [`IntoToolResult`] for types that become text only.
macro_rules! texts {
    ($($text:ty)*) => {$(
        impl IntoToolResult for $text {
            fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
                ContentBlock::text(self).into_tool_result()
            }
        }
    )*};
}

texts!(String &'static str Cow<'static, str>);

impl IntoToolResult for Box<str> {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        self.into_string().into_tool_result()
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::default())
    }
}

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::new([self]))
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::new(self))
    }
}

impl<const N: usize> IntoToolResult for [ContentBlock; N] {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Vec::from(self).into_tool_result()
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(self)
    }
}

impl<T: IntoToolResult, E: IntoToolError> IntoToolResult for Result<T, E> {
    fn output_schema() -> Option<Schema> {
        T::output_schema()
    }

    const IS_REPLY: bool = T::IS_REPLY;

    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        self.map_err(IntoToolError::into_tool_error)?
            .into_tool_result()
    }

    fn into_checked_result(self, schema: Option<&Schema>) -> Result<CheckedResult, ToolError> {
        self.map_err(IntoToolError::into_tool_error)?
            .into_checked_result(schema)
    }
}
