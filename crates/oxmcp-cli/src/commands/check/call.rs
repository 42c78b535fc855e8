//! The call of a tool, with its result as hosts use it.

use oxmcp::{
    ClientSession, Schema,
    protocol::{CallToolResult, Tool},
};
use oxmcp_apps::{ToolUi, rules};
use serde_json::{Map, Value};

use super::report::{Report, Severity};
use crate::{
    arguments,
    failure::{Failure, Result},
};

/// Calls the tool, and checks its result.
///
/// # Errors
/// The server has no such tool, or the arguments are wrong.
pub(super) async fn check(
    report: &mut Report,
    session: &ClientSession,
    (name, words): (&str, &[String]),
    tools: &[Tool],
) -> Result<()> {
    let tool = tools.iter().find(|it| it.name == name);
    let tool = tool.ok_or_else(|| Failure::usage(format!("the server has no tool {name:?}")))?;
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let arguments = arguments::read(words, Map::new(), &schema)?;
    let place = format!("tool {name:?}");
    match session.call_tool(name, arguments).await {
        Ok(result) => self::result(report, tool, &result),
        Err(error) => {
            let remedy = if error.is_protocol() {
                "report failures of a tool as a result with `isError`, which models can read"
            } else {
                ""
            };
            report.add(
                ("call-error", Severity::Error),
                place,
                error.to_string(),
                remedy,
            );
        }
    }
    Ok(())
}

fn result(report: &mut Report, tool: &Tool, result: &CallToolResult) {
    let place = format!("tool {:?}", tool.name);
    if result.is_error {
        let text = result.as_text().unwrap_or("no text");
        let remedy = if result.as_text().is_none() {
            "say what failed, and what to do, in a text"
        } else {
            "call it with other arguments, if it is to succeed"
        };
        report.add(
            ("tool-error", Severity::Warning),
            place,
            format!("the tool failed: {text}"),
            remedy,
        );
        return;
    }
    if result.content.is_empty() {
        let message = match result.structured_content {
            Some(_) => {
                "the result has structured content only, which models of many hosts do not see"
            }
            None => {
                "the result is empty, so that the model does not know whether the tool has done anything"
            }
        };
        report.add(
            ("empty-content", Severity::Warning),
            &place,
            message,
            "return text as well",
        );
    }
    let schema = tool.output_schema.as_deref().map(Schema::from_raw);
    match (schema, &result.structured_content) {
        (Some(_), None) => report.add(
            ("no-structured-content", Severity::Error),
            &place,
            "the tool has an output schema, but its result has no structured content; clients reject it",
            "return structured content, or remove the schema",
        ),
        (Some(Ok(schema)), Some(content)) => {
            if let Err(violations) = schema.validate(content) {
                report.add(
                    ("output-schema", Severity::Error),
                    &place,
                    format!("the result does not match the output schema: {violations}; clients reject it"),
                    "correct the schema or the result",
                );
            }
        }
        _ => {}
    }
    if ToolUi::of(tool).resource_uri.is_some()
        && let Some(it) = rules::check_result(&tool.name, result)
    {
        report.add((it.rule.id(), Severity::Warning), it.place, it.problem, "");
    }
}
