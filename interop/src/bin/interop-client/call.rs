//! Calls of tools, and checks of their outcomes.

use std::{fmt::Display, time::Duration};

use oxmcp::ClientSession;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The outcome of a task; the error describes the failure.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The time limit of one call; calls that take longer are stuck.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Calls a tool, which must succeed with a result that contains the text.
pub(crate) async fn call(session: &ClientSession, tool: &str, args: &str, text: &str) -> Outcome {
    let args: Value = read(args)?;
    let result = serde_json::to_value(session.call_tool(tool, args).timeout(TIME_LIMIT).await?)?;
    ensure(
        !is_error(&result) && result.to_string().contains(text),
        &result,
    )
}

pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Outcome<T> {
    serde_json::from_str(json).map_err(|error| format!("{json} does not fit: {error}").into())
}

pub(crate) fn is_error(result: &Value) -> bool {
    result.get("isError").is_some_and(|flag| flag == true)
}

pub(crate) fn ensure(holds: bool, seen: &(impl Display + ?Sized)) -> Outcome {
    if holds {
        Ok(())
    } else {
        Err(format!("saw {seen}").into())
    }
}
