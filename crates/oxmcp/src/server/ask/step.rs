//! What a handler does once, though it may run several times.

use std::future::Future;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::to_raw_value;

use super::memory::Memory;
use crate::{Error, Result, session::RequestContext};

impl RequestContext {
    /// Does something once, though the handler may run again: what it came to is remembered under the key, and the next
    /// time the function is not called.
    ///
    /// A handler that asks begins anew when the answer is there (2026-07-28 and later). What it did before it asked
    /// it does again, unless it did it in a step. What is remembered travels with the client, sealed, so it should be small:
    /// see [`Limits::max_request_state`](crate::Limits::max_request_state). Nothing is remembered beyond the request, and
    /// a client that never comes back with the answers leaves undone what was to follow. Nor is a step a lock: a client can
    /// send the same answers twice, and then what follows the last question is done twice.
    ///
    /// ```
    /// use oxmcp::{JsonSchema, RequestContext, ToolError};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Confirm {}
    ///
    /// # async fn count_files() -> usize { 3 }
    /// async fn delete(cx: RequestContext) -> Result<String, ToolError> {
    ///     let files = cx.step("count", count_files).await?;
    ///     let Confirm {} = cx.ask("confirm", format!("Delete {files} files?")).await?;
    ///     Ok(format!("deleted {files} files"))
    /// }
    /// # let _ = oxmcp::Tool::new("delete", "Delete all files", delete);
    /// ```
    ///
    /// # Errors
    /// Where what it came to cannot be JSON or cannot be read from it, and where a question was asked already and has no
    /// answer yet: the function is not called then.
    ///
    /// # Cancel safety
    /// When the future is dropped, the function's future is dropped, and nothing is remembered.
    pub async fn step<T, F, Fut>(&self, key: impl Into<String>, f: F) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        self.try_step(key, || async { Ok(f().await) }).await
    }

    /// The same for what can fail. A failure is not remembered.
    ///
    /// ```
    /// # use oxmcp::{RequestContext, ToolError};
    /// async fn count(cx: RequestContext) -> Result<u64, ToolError> {
    ///     cx.try_step("count", || async { Ok("7".parse()?) }).await
    /// }
    /// # let _ = oxmcp::Tool::new("count", "Count", count);
    /// ```
    ///
    /// # Errors
    /// Those of [`step`](Self::step), and those of the function.
    ///
    /// # Cancel safety
    /// As for [`step`](Self::step).
    pub async fn try_step<T, E, F, Fut>(&self, key: impl Into<String>, f: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let key = key.into();
        let memory = Memory::of(self.parts());
        if memory.is_suspended() {
            return Err(Error::suspended().into());
        }
        if let Some(value) = memory.step(&key) {
            let read = serde_json::from_str(value.get());
            return read.map_err(|error| unfit(&key, "read", error).into());
        }
        let value = f().await?;
        let text = to_raw_value(&value).map_err(|error| unfit(&key, "remembered", error))?;
        memory.done(&key, text);
        Ok(value)
    }
}

fn unfit(key: &str, what: &str, error: serde_json::Error) -> Error {
    Error::misuse(format!(
        "what the step {key:?} came to cannot be {what}: {error}"
    ))
    .with_source(error)
}
