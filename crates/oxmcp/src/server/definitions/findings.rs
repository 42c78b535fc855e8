//! Findings: parts of a server's definitions that hosts are known to reject or handle badly.

use std::{collections::HashSet, fmt};

use oxmcp_protocol::{Prompt, RawJson, Resource, Tool};
use oxmcp_schema::internal::{SchemaFinding, check_for_hosts, quote_text};

/// The maximum length of a tool's name that model APIs accept.
const MAX_NAME: usize = 64;
/// The maximum length of a description that model APIs accept.
const MAX_DESCRIPTION: usize = 1024;
/// The maximum number of tools in a request to a model.
const MAX_TOOLS: usize = 128;

/// A part of a server's definitions that some hosts reject or handle badly; see [`Server::check`](crate::Server::check).
///
/// The `Display` form is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the rule, such as `no-items`.
    pub id: &'static str,
    /// The kind of the feature: `tool`, `prompt`, `resource` or `template`; `server` for the server as a whole.
    pub kind: &'static str,
    /// The name of the feature, or its URI.
    pub name: String,
    /// The JSON Pointer into the feature's entry in the listing, such as `/inputSchema/properties/tags`.
    pub pointer: String,
    /// The effect on hosts and users.
    pub effect: &'static str,
    /// The remedy.
    pub remedy: &'static str,
    /// Whether hosts reject all tools of the server, or the whole request, because of it.
    pub is_severe: bool,
}

impl Finding {
    /// Checks the lists of a server as a client has received them, like [`Server::check`](crate::Server::check). `server` is its
    /// name.
    ///
    /// ```
    /// use oxmcp::{Finding, protocol::Tool};
    ///
    /// let tool = Tool::new("git.log", serde_json::json!({"type": "object"}));
    /// let findings = Finding::of_lists("git", &[tool], &[], &[]);
    /// assert_eq!(findings[0].id, "tool-name");
    /// ```
    #[must_use]
    pub fn of_lists(
        server: &str,
        tools: &[Tool],
        prompts: &[Prompt],
        resources: &[Resource],
    ) -> Vec<Self> {
        let mut findings = Vec::new();
        of_tools(server, tools.iter(), &mut findings);
        of_prompts(prompts.iter(), &mut findings);
        let resources = resources.iter();
        let resources = resources.map(|it| (it.uri.as_str(), it.title.as_deref()));
        of_resources("resource", resources, &mut findings);
        findings
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, quote_text(&self.name))?;
        if !self.pointer.is_empty() {
            write!(f, " at {}", self.pointer)?;
        }
        write!(f, ": {}: {}; {}", self.id, self.effect, self.remedy)
    }
}

/// Findings about one feature or the server.
struct Subject<'a> {
    kind: &'static str,
    name: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl Subject<'_> {
    fn report(
        &mut self,
        id: &'static str,
        pointer: &str,
        effect: &'static str,
        remedy: &'static str,
    ) {
        self.findings.push(Finding {
            id,
            kind: self.kind,
            name: self.name.to_owned(),
            pointer: pointer.to_owned(),
            effect,
            remedy,
            is_severe: false,
        });
    }

    fn description(&mut self, description: Option<&str>) {
        let text = description.unwrap_or_default().trim();
        if is_blank(text) {
            let remedy = "describe what it does in a sentence";
            self.report(
                "no-description",
                "/description",
                "models cannot know when to use it",
                remedy,
            );
        } else if text.chars().count() > MAX_DESCRIPTION {
            let effect = "OpenAI refuses the tool, and other hosts cut the text";
            let remedy = "use at most 1024 characters";
            self.report("long-description", "/description", effect, remedy);
        }
    }

    fn input(&mut self, schema: &RawJson) {
        let Ok(schema) = serde_json::from_str(schema.get()) else {
            return;
        };
        for SchemaFinding {
            id,
            pointer,
            effect,
            remedy,
            is_severe,
        } in check_for_hosts(&schema)
        {
            self.report(id, &format!("/inputSchema{pointer}"), effect, remedy);
            if let Some(finding) = self.findings.last_mut() {
                finding.is_severe = is_severe;
            }
        }
    }
}

/// Whether a text shows nothing: it has only white space, control characters, and characters without a form.
fn is_blank(text: &str) -> bool {
    let is_invisible = |it| {
        matches!(it,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
    };
    let mut characters = text.chars();
    characters.all(|it| it.is_whitespace() || it.is_control() || is_invisible(it))
}

/// The findings about the tools of a server.
pub(crate) fn of_tools<'a>(
    server: &str,
    tools: impl Iterator<Item = &'a Tool>,
    findings: &mut Vec<Finding>,
) {
    let mut names = HashSet::new();
    let mut titles = HashSet::new();
    let mut count = 0_usize;
    for tool in tools {
        count += 1;
        let mut subject = Subject {
            kind: "tool",
            name: &tool.name,
            findings: &mut *findings,
        };
        if tool.name.contains('.') {
            let effect =
                "Claude and OpenAI refuse the name, and hosts replace its dots or drop the tool";
            subject.report(
                "tool-name",
                "/name",
                effect,
                "use A-Z, a-z, 0-9, '_' and '-' only",
            );
        }
        if tool.name.len() > MAX_NAME {
            let effect = "Claude and OpenAI refuse the name, and hosts cut it or drop the tool";
            subject.report("long-name", "/name", effect, "use at most 64 characters");
        }
        if !names.insert(tool.name.to_ascii_lowercase().replace(['.', '-'], "_")) {
            let effect = "hosts that replace characters in names confuse it with another tool";
            let remedy = "use names that differ in their letters and digits";
            subject.report("similar-name", "/name", effect, remedy);
        }
        if tool
            .title
            .as_ref()
            .is_some_and(|title| !titles.insert(title))
        {
            let effect = "users cannot tell it from another tool";
            subject.report(
                "duplicate-title",
                "/title",
                effect,
                "give each tool another title",
            );
        }
        subject.description(tool.description.as_deref());
        subject.input(&tool.input_schema);
    }
    if count > MAX_TOOLS {
        let mut subject = Subject {
            kind: "server",
            name: server,
            findings,
        };
        let effect = "OpenAI and VS Code accept 128 tools in a request, and other hosts fewer";
        let remedy = "offer fewer tools, or limit them per caller with `visible_to`";
        subject.report("many-tools", "", effect, remedy);
    }
}

/// The findings about the prompts of a server.
pub(crate) fn of_prompts<'a>(
    prompts: impl Iterator<Item = &'a Prompt>,
    findings: &mut Vec<Finding>,
) {
    let mut titles = HashSet::new();
    for prompt in prompts {
        let mut subject = Subject {
            kind: "prompt",
            name: &prompt.name,
            findings: &mut *findings,
        };
        if prompt
            .name
            .contains(|c: char| c.is_whitespace() || c == '/')
        {
            let effect = "hosts that offer prompts as commands cannot call it";
            subject.report(
                "prompt-name",
                "/name",
                effect,
                "use a name without spaces and slashes",
            );
        }
        if prompt
            .title
            .as_ref()
            .is_some_and(|title| !titles.insert(title))
        {
            let effect = "users cannot tell it from another prompt";
            subject.report(
                "duplicate-title",
                "/title",
                effect,
                "give each prompt another title",
            );
        }
        if prompt.description.as_deref().is_none_or(is_blank) {
            let effect = "users cannot know what it does";
            subject.report(
                "no-description",
                "/description",
                effect,
                "describe it in a sentence",
            );
        }
    }
}

/// The findings about resources or templates, which are given by their URIs and titles.
pub(crate) fn of_resources<'a>(
    kind: &'static str,
    resources: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    findings: &mut Vec<Finding>,
) {
    let mut titles = HashSet::new();
    for (name, title) in resources {
        if title.is_some_and(|title| !titles.insert(title)) {
            let mut subject = Subject {
                kind,
                name,
                findings: &mut *findings,
            };
            let effect = "users cannot tell it from another resource";
            subject.report(
                "duplicate-title",
                "/title",
                effect,
                "give each resource another title",
            );
        }
    }
}
