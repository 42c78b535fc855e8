//! The traits of what is given to the SDK: they say what is allowed, and programs rarely name them.
//!
//! The types of Rust implement them. A page here is where a function's bound leads to, and says what can stand there.
//!
//! | | |
//! |---|---|
//! | [`Handler`], [`HandlerFuture`], [`HandlerContext`] | functions that can be handlers |
//! | [`StateArguments`], [`SharedAs`], [`OfState`] | handlers that share a state |
//! | [`ToolArguments`], [`ToolInput`], [`IntoToolResult`], [`IntoToolError`] | what tools take, return and fail with |
//! | [`PromptArguments`], [`PromptInput`], [`IntoPromptResult`] | what prompts take and return |
//! | [`ResourceArguments`], [`TemplateArguments`], [`TemplateInput`], [`IntoResourceResult`] | what resources and templates take and return |
//! | [`IntoCompleter`], [`CompleterArguments`], [`IntoCompletion`] | what completes, takes and returns |
//! | [`AnswerArguments`], [`IntoElicitResult`], [`IntoCreateMessageResult`] | what the handlers of clients take and return |
//! | [`IntoError`] | what handlers that are none of tools fail with |
//! | [`IntoPromptArguments`], [`IntoSchema`], [`ProgressAmount`] | what calls take |
//! | [`Questions`] | several questions that are asked at once |

#[cfg(feature = "client")]
pub use crate::client::{
    AnswerArguments, IntoCreateMessageResult, IntoElicitResult, IntoPromptArguments,
};
#[cfg(feature = "server")]
pub use crate::server::{
    CompleterArguments, IntoCompleter, IntoCompletion, IntoPromptResult, IntoResourceResult,
    IntoToolError, IntoToolResult, PromptArguments, PromptInput, Questions, ResourceArguments,
    TemplateArguments, TemplateInput, ToolArguments, ToolInput,
};
pub use crate::session::{
    Handler, HandlerContext, HandlerFuture, IntoError, OfState, ProgressAmount, SharedAs,
    StateArguments,
};
#[doc(inline)]
pub use oxmcp_schema::IntoSchema;
