//! The rules, and a finding: a place where a server breaks one.

use std::fmt;

/// A rule for servers that offer apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// APP-001: the URI of an app begins with `ui://`.
    UriScheme,
    /// APP-002: the MIME type of an app is `text/html;profile=mcp-app`.
    MimeType,
    /// APP-003: an app has contents, as text or as bytes.
    Contents,
    /// APP-004: an app is an HTML5 document in UTF-8.
    Html,
    /// APP-005: the app that a tool names can be read.
    AppExists,
    /// APP-006, a warning: the deprecated key `ui/resourceUri` has the same value as `ui.resourceUri`, which hosts read first.
    FlatKey,
    /// APP-007: `_meta.ui` of a tool has members of the right types.
    ToolMetadata,
    /// APP-008: `_meta.ui` of an app has members of the right types.
    AppMetadata,
    /// APP-009: the entries of a content security policy are origins.
    Origin,
    /// APP-010, a warning: the result of a tool with an app has content for hosts that show no apps.
    Content,
    /// APP-011: the visibility of a tool lists `model`, `app` or both.
    Visibility,
}

impl Rule {
    /// All rules, by identifier.
    pub const ALL: [Self; 11] = [
        Self::UriScheme,
        Self::MimeType,
        Self::Contents,
        Self::Html,
        Self::AppExists,
        Self::FlatKey,
        Self::ToolMetadata,
        Self::AppMetadata,
        Self::Origin,
        Self::Content,
        Self::Visibility,
    ];

    /// Returns the identifier, such as `APP-001`.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::UriScheme => "APP-001",
            Self::MimeType => "APP-002",
            Self::Contents => "APP-003",
            Self::Html => "APP-004",
            Self::AppExists => "APP-005",
            Self::FlatKey => "APP-006",
            Self::ToolMetadata => "APP-007",
            Self::AppMetadata => "APP-008",
            Self::Origin => "APP-009",
            Self::Content => "APP-010",
            Self::Visibility => "APP-011",
        }
    }

    /// Returns whether breaking the rule is only a warning: hosts show the app nevertheless.
    #[must_use]
    pub fn is_warning(self) -> bool {
        matches!(self, Self::FlatKey | Self::Content)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// A place where a server breaks a rule. It is displayed as `APP-001: resource "x": …`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The tool or the resource, such as `tool "now"`.
    pub place: String,
    /// The problem, and what to do.
    pub problem: String,
}

impl Finding {
    pub(crate) fn of_tool(rule: Rule, name: &str, problem: impl Into<String>) -> Self {
        Self::new(rule, format!("tool {name:?}"), problem.into())
    }

    pub(crate) fn of_resource(rule: Rule, uri: &str, problem: impl Into<String>) -> Self {
        Self::new(rule, format!("resource {uri:?}"), problem.into())
    }

    fn new(rule: Rule, place: String, problem: String) -> Self {
        Self {
            rule,
            place,
            problem,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.place, self.problem)
    }
}
