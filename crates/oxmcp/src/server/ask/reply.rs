//! Reply of a handler that returns its questions.

use oxmcp_protocol::{CallToolResult, GetPromptResult, InputRequiredResult, ReadResourceResult};
use oxmcp_schema::Schema;

use crate::{
    error::{Error, Result},
    server::{
        prompt::IntoPromptResult,
        resource::IntoResourceResult,
        tool::{CheckedResult, IntoToolResult, ToolError},
    },
};

/// The result of a handler that returns its questions instead of awaiting the answers.
///
/// It is for proxies that forward the questions of another server, and for handlers that manage their own state. Otherwise
/// [`RequestContext::ask`](crate::RequestContext::ask) is simpler.
///
/// Such a handler finds the answers in [`RequestContext::input_responses`](crate::RequestContext::input_responses) and the
/// state in [`RequestContext::request_state`](crate::RequestContext::request_state). That state is not sealed unless the handler
/// does it, by [`RequestContext::seal_state`](crate::RequestContext::seal_state). In sessions of revisions without
/// [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr), the server sends the returned questions
/// as requests to the client, and calls the handler again with the answers, up to 100 times.
///
/// ```
/// use oxmcp::{Reply, RequestContext, Tool, ToolError};
/// use oxmcp::protocol::{BooleanSchema, ElicitParams, ElicitResult, ElicitSchema, InputRequiredResult};
///
/// async fn delete(cx: RequestContext) -> Result<Reply<String>, ToolError> {
///     let responses = cx.input_responses();
///     let Some(answer) = responses.get("sure") else {
///         let form = ElicitSchema::new().required("sure", BooleanSchema::default());
///         let asked = InputRequiredResult::new().with_input_request("sure", ElicitParams::form("Sure?", form));
///         return Ok(Reply::InputRequired(asked));
///     };
///     let answer: ElicitResult = answer.decode()?;
///     Ok(Reply::Complete(format!("the user chose to {:?}", answer.action)))
/// }
/// # let _ = Tool::new("delete", "Delete the project", delete);
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these two")]
pub enum Reply<T> {
    /// The result.
    Complete(T),
    /// The questions to ask the client first.
    InputRequired(InputRequiredResult),
}

impl<T> Reply<T> {
    /// The result, or the error that carries the questions.
    fn into_complete(self) -> Result<T> {
        match self {
            Self::Complete(result) => Ok(result),
            Self::InputRequired(asked) => Err(Error::suspended().with_data(asked)),
        }
    }
}

impl<T: IntoToolResult> IntoToolResult for Reply<T> {
    fn output_schema() -> Option<Schema> {
        T::output_schema()
    }

    const IS_REPLY: bool = true;

    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        self.into_complete()?.into_tool_result()
    }

    fn into_checked_result(self, schema: Option<&Schema>) -> Result<CheckedResult, ToolError> {
        self.into_complete()?.into_checked_result(schema)
    }
}

impl<T: IntoPromptResult> IntoPromptResult for Reply<T> {
    const IS_REPLY: bool = true;

    fn into_prompt_result(self) -> Result<GetPromptResult> {
        self.into_complete()?.into_prompt_result()
    }
}

impl<T: IntoResourceResult> IntoResourceResult for Reply<T> {
    const IS_REPLY: bool = true;

    fn into_resource_result(self, uri: &str) -> Result<ReadResourceResult> {
        self.into_complete()?.into_resource_result(uri)
    }
}
