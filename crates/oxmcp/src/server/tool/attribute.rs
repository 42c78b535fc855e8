//! Attribute `#[tool]`.

/// Makes a tool of an async function: its name, its doc comment and its parameters are what the model is told.
///
/// The function stays as it is, and can be called. Beside it stands `name::tool()`, which makes the [`Tool`](struct@crate::Tool) for
/// [`Server::tool`](crate::Server::tool); one `use` of the name brings both.
///
/// ```
/// use oxmcp::{Server, ToolError};
///
/// /// Divide a by b.
/// #[oxmcp::tool(read_only, title("Division"))]
/// async fn divide(
///     /// the dividend
///     a: f64,
///     /// the divisor, not 0
///     #[serde(default = "one")]
///     b: f64,
/// ) -> Result<f64, ToolError> {
///     if b == 0.0 {
///         return Err(ToolError::new("b must not be 0"));
///     }
///     Ok(a / b)
/// }
///
/// fn one() -> f64 {
///     1.0
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> oxmcp::Result<()> {
/// let server = Server::new("calculator", "1.0.0").tool(divide::tool());
/// # let t = oxmcp::testing::connect(&server).await?;
/// # assert_eq!(t.call_tool("divide", serde_json::json!({"a": 6})).structured::<f64>().await?, 6.0);
/// assert_eq!(divide(6.0, 2.0).await.unwrap(), 3.0); // in a test of yours
/// # Ok(()) }
/// ```
///
/// # Description
/// The doc comment up to the first line that begins with `# `: what stands under `# Errors` is for people. There must be one, or else
/// `description(TEXT)` in the attribute.
///
/// # Parameters
/// - Arguments are the parameters with a plain name and an owned type. Their doc comments are their descriptions, and attributes of
///   serde and schemars mean what they mean on the field of a struct. An [`Option`] may be left out.
/// - The context is the parameter whose type ends in [`RequestContext`](crate::RequestContext), or that has `#[context]`.
/// - `#[state]` is what handlers share: it is given to `tool(..)`, in the order of the parameters, and cloned for each call.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use oxmcp::{RequestContext, Server};
///
/// type Notes = Arc<Mutex<Vec<String>>>;
///
/// /// Write a note.
/// #[oxmcp::tool]
/// async fn write(#[state] notes: Notes, cx: RequestContext, text: String) -> usize {
///     cx.progress(1).message("a note").await;
///     let mut notes = notes.lock().expect("nobody panics");
///     notes.push(text);
///     notes.len()
/// }
///
/// let notes = Notes::default();
/// let server = Server::new("notes", "1.0.0").tools([write::tool(notes.clone())]);
/// # let _ = server;
/// ```
///
/// # Options
/// What stands in the attribute are the methods of [`Tool`](struct@crate::Tool), as `read_only` or `visible_to(sees)`. There are three more:
/// `name(TEXT)` in place of the function's name, `description(TEXT)`, and `crate = "path"` where oxmcp is seen under another path.
///
/// # Without it
/// The attribute writes a struct of the arguments, with `serde::Deserialize` and [`JsonSchema`](trait@crate::JsonSchema), and
/// [`Tool::new`](crate::Tool::new): the same tool can be had by hand, which is the way for methods, for functions with generics, and
/// for arguments that several tools share.
pub use oxmcp_macros::tool;
