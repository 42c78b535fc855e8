//! The rules by which tools are allowed and denied: by name, by server, by annotation.

use oxmcp::protocol::Tool;

/// Selects tools: all that fit each of its conditions.
///
/// In a pattern, `*` stands for any text and `?` for one character. A name is the one that the server lists, without the prefix of
/// the group.
///
/// ```
/// use oxmcp::Client;
/// use oxmcp_group::{ClientGroup, ToolRule};
///
/// let group = ClientGroup::new(Client::new("my-app", "1.0.0"))
///     .allow(ToolRule::any().server("git*"))
///     .allow(ToolRule::any().read_only())
///     .deny(ToolRule::named("delete_*"));
/// # let _ = group;
/// ```
///
/// Annotations are what a server says about itself: a rule about them helps against accidents, and not against a hostile server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    name: String,
    server: String,
    is_read_only: bool,
    is_destructive: bool,
    is_open_world: bool,
}

impl ToolRule {
    /// Creates a rule for the tools whose names fit a pattern.
    #[must_use]
    pub fn named(pattern: impl Into<String>) -> Self {
        Self {
            name: pattern.into(),
            server: "*".into(),
            is_read_only: false,
            is_destructive: false,
            is_open_world: false,
        }
    }

    /// Creates a rule for all tools, to which conditions are added.
    #[must_use]
    pub fn any() -> Self {
        Self::named("*")
    }

    /// Selects only tools of servers whose labels fit a pattern.
    #[must_use]
    pub fn server(mut self, pattern: impl Into<String>) -> Self {
        self.server = pattern.into();
        self
    }

    /// Selects only tools that declare to change nothing (`readOnlyHint`).
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Selects only tools that may make destructive changes: those that declare neither to change nothing nor to be
    /// non-destructive (`destructiveHint`).
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.is_destructive = true;
        self
    }

    /// Selects only tools that may interact with the outside world: all that do not declare otherwise (`openWorldHint`).
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.is_open_world = true;
        self
    }

    fn selects(&self, server: &str, tool: &Tool) -> bool {
        let hints = tool.annotations.as_ref();
        let is_read_only = hints.and_then(|it| it.read_only_hint) == Some(true);
        let is_destructive =
            !is_read_only && hints.and_then(|it| it.destructive_hint) != Some(false);
        let is_open_world = hints.and_then(|it| it.open_world_hint) != Some(false);
        (is_read_only || !self.is_read_only)
            && (is_destructive || !self.is_destructive)
            && (is_open_world || !self.is_open_world)
            && fits(&self.server, server)
            && fits(&self.name, &tool.name)
    }
}

/// The rules of a group or of one server in its configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolFilter {
    /// A tool must be selected by one of these, if there are any.
    pub(crate) allow: Option<Vec<ToolRule>>,
    pub(crate) deny: Vec<ToolRule>,
}

impl ToolFilter {
    pub(crate) fn allows(&self, server: &str, tool: &Tool) -> bool {
        let selects = |rule: &ToolRule| rule.selects(server, tool);
        self.allow
            .as_ref()
            .is_none_or(|rules| rules.iter().any(selects))
            && !self.deny.iter().any(selects)
    }
}

/// Whether a text fits a pattern, in at most their lengths multiplied steps.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut position) = (0, 0);
    // The last star, and the position from which its text is tried next.
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = text.get(position) {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, position));
                at += 1;
            }
            (Some(expected), _) if *expected == '?' || expected == character => {
                at += 1;
                position += 1;
            }
            (_, Some((last, tried))) => {
                star = Some((last, tried + 1));
                at = last + 1;
                position = tried + 1;
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(at).all(|it| *it == '*')
}

#[cfg(test)]
mod tests {
    use oxmcp::protocol::ToolAnnotations;
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_fit_names() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("read", "read", true),
            ("read", "reads", false),
            ("re*", "read", true),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("?ead", "read", true),
            ("?ead", "ead", false),
            ("**", "x", true),
            ("ä?", "äö", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        assert!(
            !fits(&"*a".repeat(2000), &"a".repeat(1999)),
            "in bounded time"
        );
    }

    #[test]
    fn missing_hints_count_as_dangerous() {
        let tool = |hints: Option<ToolAnnotations>| {
            let tool = Tool::new("t", json!({"type": "object"}));
            match hints {
                Some(hints) => tool.with_annotations(hints),
                None => tool,
            }
        };
        let hints = ToolAnnotations::default;
        let (read_only, destructive, open) = (
            ToolRule::any().read_only(),
            ToolRule::any().destructive(),
            ToolRule::any().open_world(),
        );
        for (tool, expected) in [
            (tool(None), [false, true, true]),
            (
                tool(Some(hints().with_read_only_hint(true))),
                [true, false, true],
            ),
            (
                tool(Some(hints().with_destructive_hint(false))),
                [false, false, true],
            ),
            (
                tool(Some(hints().with_open_world_hint(false))),
                [false, true, false],
            ),
        ] {
            let found = [&read_only, &destructive, &open].map(|rule| rule.selects("s", &tool));
            assert_eq!(found, expected, "{:?}", tool.annotations);
        }
    }

    #[test]
    fn denied_tools_stay_denied() {
        let tool = |name: &str| Tool::new(name, json!({"type": "object"}));
        let filter = ToolFilter {
            allow: Some(vec![
                ToolRule::named("read_*"),
                ToolRule::any().server("git"),
            ]),
            deny: vec![ToolRule::named("*_secret")],
        };
        for (server, name, expected) in [
            ("fs", "read_file", true),
            ("fs", "write_file", false),
            ("git", "commit", true),
            ("git", "commit_secret", false),
            ("fs", "read_secret", false),
        ] {
            assert_eq!(
                filter.allows(server, &tool(name)),
                expected,
                "{server} {name}"
            );
        }
        assert!(ToolFilter::default().allows("any", &tool("any")));
        let nothing = ToolFilter {
            allow: Some(Vec::new()),
            deny: Vec::new(),
        };
        assert!(
            !nothing.allows("any", &tool("any")),
            "an empty list allows nothing"
        );
    }
}
