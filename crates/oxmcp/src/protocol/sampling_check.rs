//! The order in which tools are asked for and answer within a conversation.
//!
//! See [message content constraints](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#message-content-constraints).

use std::collections::HashSet;

use super::{Role, SamplingContent, SamplingMessage};

/// Whether all tools that the model asked for have answered, in the message right after.
///
/// # Errors
/// Says what is missing, or out of place.
pub(crate) fn check_tool_results(messages: &[SamplingMessage]) -> Result<(), String> {
    for (index, message) in messages.iter().enumerate() {
        let results: HashSet<&str> = message.content.iter().filter_map(answered).collect();
        if !results.is_empty() && message.content.iter().any(|it| answered(it).is_none()) {
            return Err(format!(
                "Tool results mixed with other content, in message {index}: results stand alone"
            ));
        }
        if message.role != Role::Assistant {
            continue;
        }
        let next = messages.get(index + 1);
        let next = next.filter(|next| next.role == Role::User);
        let answers: HashSet<&str> = next
            .into_iter()
            .flat_map(|next| next.content.iter().filter_map(answered))
            .collect();
        let mut asked = message.content.iter().filter_map(asked);
        if let Some(id) = asked.find(|id| !answers.contains(id)) {
            let shown: String = id.chars().take(64).collect();
            return Err(format!(
                "Tool result missing in request: message {index} asks for a tool with the id {shown:?}, \
                 and the user message after it does not answer it"
            ));
        }
    }
    Ok(())
}

/// The id under which a tool is asked for.
fn asked(content: &SamplingContent) -> Option<&str> {
    match content {
        SamplingContent::ToolUse(tool) => Some(&tool.id),
        _ => None,
    }
}

/// The id that a result answers.
fn answered(content: &SamplingContent) -> Option<&str> {
    match content {
        SamplingContent::ToolResult(result) => Some(&result.tool_use_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ToolResultContent, ToolUseContent};

    fn message(role: Role, content: &[SamplingContent]) -> SamplingMessage {
        let mut message = SamplingMessage::new(role, "");
        message.content = content.to_vec();
        message
    }

    #[test]
    fn every_tool_that_is_asked_for_answers_at_once_and_alone() {
        let asks = |id: &str| ToolUseContent::new(id, "t", &()).unwrap().into();
        let answers = |id: &str| ToolResultContent::new(id, []).into();
        let text = || SamplingContent::from("a");
        let user = |content: &[SamplingContent]| message(Role::User, content);
        let model = |content: &[SamplingContent]| message(Role::Assistant, content);
        let good = [
            vec![],
            vec![user(&[text(), text()]), model(&[text()])],
            vec![
                user(&[text()]),
                model(&[text(), asks("1"), asks("2")]),
                user(&[answers("2"), answers("1")]),
                model(&[text()]),
            ],
        ];
        for messages in good {
            assert_eq!(check_tool_results(&messages), Ok(()), "{messages:?}");
        }
        let bad = [
            (vec![model(&[asks("1")])], "missing"),
            (
                vec![model(&[asks("1"), asks("2")]), user(&[answers("1")])],
                "\"2\"",
            ),
            (
                vec![model(&[asks("1")]), user(&[text()]), user(&[answers("1")])],
                "missing",
            ),
            (vec![model(&[asks("1")]), model(&[answers("1")])], "missing"),
            (
                vec![model(&[asks("1")]), user(&[answers("1"), text()])],
                "mixed",
            ),
        ];
        for (messages, wrong) in bad {
            let error = check_tool_results(&messages).unwrap_err();
            assert!(error.contains(wrong), "{error}: {messages:?}");
        }
    }
}
