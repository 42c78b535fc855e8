//! Attribute `#[tool]`.

/// Makes a tool from an async function.
///
/// The name, the doc comment and the parameters of the function become the name, the description and the input schema of the
/// tool. The function itself does not change, and can still be called. Next to it, the attribute defines `name::tool()`, which
/// returns the [`Tool`](struct@crate::Tool) for [`Server::tool`](crate::Server::tool). One `use` of the name imports both.
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
///     #[default(1.0)]
///     b: f64,
/// ) -> Result<f64, ToolError> {
///     if b == 0.0 {
///         return Err(ToolError::new("b must not be 0"));
///     }
///     Ok(a / b)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> oxmcp::Result<()> {
/// let server = Server::new("calculator", "1.0.0").tool(divide::tool());
/// # let t = oxmcp::testing::connect(&server).await?;
/// # assert_eq!(t.call_tool("divide", serde_json::json!({"a": 6})).structured::<f64>().await?, 6.0);
/// assert_eq!(divide(6.0, 2.0).await.unwrap(), 3.0); // in your tests
/// # Ok(()) }
/// ```
///
/// # Description
/// The description is the doc comment up to the first line that begins with `# `: a section like `# Errors` is for people. A
/// function without a doc comment needs `description(TEXT)` in the attribute.
///
/// # Parameters
/// - Parameters with a plain name and an owned type are arguments. Their doc comments are the descriptions, and attributes of
///   serde and schemars mean the same as on a struct field. Callers can omit an [`Option`].
/// - `#[default(VALUE)]` gives an argument a default: any expression of its type. Callers can then omit the argument. The
///   schema shows the default if the type implements `serde::Serialize`.
/// - A parameter whose type ends in [`RequestContext`](crate::RequestContext), or that has `#[context]`, is the context.
/// - Parameters with `#[state]` are shared state: pass it to `tool(..)`, in the order of the parameters. Each call gets a
///   clone.
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
///     let mut notes = notes.lock().expect("not poisoned");
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
/// The options of the attribute are the methods of [`Tool`](struct@crate::Tool), like `read_only` or `visible_to(sees)`. In
/// addition, `name(TEXT)` replaces the function's name, `description(TEXT)` sets the description, and `crate = "path"` sets the
/// path of the crate if it is not `oxmcp`.
///
/// # Without the attribute
/// The attribute generates a struct of the arguments, with `serde::Deserialize` and [`JsonSchema`](trait@crate::JsonSchema),
/// and a call of [`Tool::new`](crate::Tool::new). Write these by hand for methods, for generic functions, and for arguments
/// that several tools share.
pub use oxmcp_macros::tool;
