//! The report about one server: its findings, as text and as JSON.

use serde::Serialize;

use crate::failure::Reason;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Worth knowing.
    Note,
    /// Some hosts or models will not cope.
    Warning,
    /// The server cannot be used, or not all of it.
    Error,
}

/// Something that a check found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Found {
    /// The name of the rule.
    pub(crate) id: String,
    pub(crate) severity: Severity,
    /// The part of the server, such as `tool "add"`.
    pub(crate) place: String,
    /// The name of the tool, the prompt or the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The observation, and its effect.
    pub(crate) message: String,
    /// The remedy. Empty if the message says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) remedy: String,
}

/// The result of the check of one server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) target: String,
    /// The file that a finding is about, for code scanning services, and the line.
    #[serde(skip)]
    pub(crate) source: (String, usize),
    /// The revisions that the server speaks.
    pub(crate) revisions: Vec<&'static str>,
    /// The milliseconds until the session was open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connected_after_ms: Option<u128>,
    pub(crate) findings: Vec<Found>,
    /// The reason for which the server cannot be used, if it cannot.
    #[serde(skip)]
    pub(crate) unusable: Option<Reason>,
}

impl Report {
    pub(crate) fn new(target: &str, source: (String, usize)) -> Self {
        Self {
            target: target.to_owned(),
            source,
            revisions: Vec::new(),
            connected_after_ms: None,
            findings: Vec::new(),
            unusable: None,
        }
    }

    pub(crate) fn add(
        &mut self,
        (id, severity): (&str, Severity),
        place: impl Into<String>,
        message: impl Into<String>,
        remedy: &str,
    ) {
        self.findings.push(Found {
            id: id.to_owned(),
            severity,
            place: place.into(),
            name: None,
            message: message.into(),
            remedy: remedy.to_owned(),
        });
    }

    /// Sets the name of the tool, the prompt or the resource that the last finding is about.
    pub(crate) fn about(&mut self, name: &str) {
        if let Some(last) = self.findings.last_mut() {
            last.name = Some(name.to_owned());
        }
    }

    /// Sorts the findings, the worst first.
    pub(crate) fn sort(&mut self) {
        self.findings
            .sort_by_key(|it| std::cmp::Reverse(it.severity));
    }

    /// The reason for the exit code, if there is anything worse than a note.
    pub(crate) fn reason(&self) -> Option<Reason> {
        let is_bad = |it: &Found| it.severity > Severity::Note;
        let found = self.findings.iter().any(is_bad).then_some(Reason::Refused);
        self.unusable.or(found)
    }

    pub(crate) fn text(&self) -> String {
        let mut lines = vec![self.target.clone()];
        if !self.revisions.is_empty() {
            lines.push(format!("  speaks {}", self.revisions.join(", ")));
        }
        if let Some(millis) = self.connected_after_ms {
            lines.push(format!("  connected after {millis} ms"));
        }
        for it in &self.findings {
            let severity = match it.severity {
                Severity::Note => "note",
                Severity::Warning => "warning",
                Severity::Error => "error",
            };
            lines.push(format!("\n{severity}: {} ({})", it.place, it.id));
            lines.extend(it.message.lines().map(|line| format!("  {line}")));
            if !it.remedy.is_empty() {
                lines.push(format!("  -> {}", it.remedy));
            }
        }
        let count = |severity| {
            let found = self.findings.iter();
            found.filter(|it| it.severity == severity).count()
        };
        let plural = |count: usize, word: &str| match count {
            1 => format!("1 {word}"),
            _ => format!("{count} {word}s"),
        };
        lines.push(format!(
            "\n{}, {}",
            plural(count(Severity::Error), "error"),
            plural(count(Severity::Warning), "warning")
        ));
        lines.join("\n")
    }
}
