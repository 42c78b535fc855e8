//! The warnings of the SDK while a server was checked, as findings.

use super::report::{Report, Severity};
use crate::trace;

/// A line on standard output that is not a message.
const NOISE: &str = "skipping output of the server that is not a message";

/// The beginnings of warnings that are findings of their own, or are about this machine.
const OF_NO_SERVER: [&str; 6] = [
    "tolerated ",
    "still waiting for the first response",
    "ignoring an unreadable credentials file",
    "ignoring stored credentials",
    "ignoring unreadable stored credentials",
    "removed the access of other users to a credentials file",
];

/// The beginnings of warnings, and their rules.
const RULES: &[(&str, &str)] = &[
    (
        "closing a session whose peer does not answer pings",
        "unanswered-ping",
    ),
    (
        "could not deliver a message to the server",
        "undelivered-message",
    ),
    (
        "could not read the server's capabilities",
        "unreadable-capabilities",
    ),
    ("could not replace a session", "session-not-replaced"),
    ("could not restore", "session-not-restored"),
    ("could not set the log level", "log-level"),
    ("could not subscribe to changes", "refused-subscription"),
    ("failing requests in flight", "session-ended"),
    ("ignoring a request of a modern server", "modern-request"),
    (
        "leaving out a tool with an invalid x-mcp-header",
        "x-mcp-header",
    ),
    (
        "leaving out more tools with an invalid x-mcp-header",
        "x-mcp-header",
    ),
    ("lost the server's notification stream", "lost-stream"),
    (
        "not validating the results of a tool",
        "unusable-output-schema",
    ),
    ("notification queue is full", "notification-flood"),
    ("progress queue is full", "progress-flood"),
    ("received an error without a request ID", "error-without-id"),
    ("received an invalid message", "invalid-message"),
    (
        "session ended with unhandled notifications",
        "notification-flood",
    ),
    (
        "the server acknowledged a subscription without a filter",
        "subscription-filter",
    ),
    (
        "the server refused the subscription",
        "refused-subscription",
    ),
    (
        "timed out delivering a message to the server",
        "undelivered-message",
    ),
    ("using a stale cached response", "stale-response"),
];

/// The rule for warnings that are not in the list.
const OTHER: &str = "other-warning";

/// Reports the warnings since the last report. The deviations that the SDK tolerates are findings of their own.
pub(super) fn check(report: &mut Report) {
    for warning in trace::take_warnings() {
        if warning.starts_with(NOISE) {
            if report.findings.iter().any(|it| it.id == "stdout") {
                continue;
            }
            let remedy = "print logs to standard error: standard output is for messages only";
            let line = warning.split_once(" line=").map_or("", |(_, line)| line);
            let message = format!("printed a line that is not a message: {line}");
            report.add(
                ("stdout", Severity::Error),
                "standard output",
                message,
                remedy,
            );
        } else if !OF_NO_SERVER.iter().any(|it| warning.starts_with(it)) {
            report.add(
                (rule(&warning), Severity::Warning),
                "connection",
                warning,
                "",
            );
        }
    }
}

/// The rule of a warning. What a peer has written comes after the beginning, and does not count.
fn rule(warning: &str) -> &'static str {
    let mut rules = RULES.iter();
    let found = rules.find(|(beginning, _)| warning.starts_with(beginning));
    found.map_or(OTHER, |(_, rule)| rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_have_rules_of_their_own() {
        for (warning, expected) in [
            (
                "received an invalid message from the server error=tolerated ",
                "invalid-message",
            ),
            (
                "using a stale cached response method=\"a\"",
                "stale-response",
            ),
            ("new in the SDK: received an invalid message", OTHER),
        ] {
            assert_eq!(rule(warning), expected, "{warning}");
        }
    }
}
