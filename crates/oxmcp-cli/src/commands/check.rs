//! `oxmcp check`: finds out why a server does not start, or what hosts will not like about it. It calls no tool.

pub(crate) mod findings;

use oxmcp::{ClientSession, Revision};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    args::{Check, Connection, Format},
    commands::check::findings::{Found, Severity},
    failure::{Failure, Reason, Result},
    output, session,
    target::Server,
    terminal::Terminal,
    trace,
};

/// The result of a check.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    target: String,
    /// The revisions that the server speaks.
    revisions: Vec<&'static str>,
    /// The milliseconds until the session was open.
    #[serde(skip_serializing_if = "Option::is_none")]
    connected_after_ms: Option<u128>,
    findings: Vec<Found>,
}

pub(crate) async fn run(args: Check, as_json: bool, terminal: &Terminal) -> Result<()> {
    let server = Server::find(args.target, terminal)?;
    if !server.words.is_empty() {
        return Err(Failure::usage(format!(
            "unexpected {:?}; a program follows `--`",
            server.words
        )));
    }
    let mut report = Report {
        target: server.label.clone(),
        revisions: Vec::new(),
        connected_after_ms: None,
        findings: Vec::new(),
    };
    let failed = report.check(&server, &args.connection, terminal).await;
    report
        .findings
        .sort_by_key(|it| std::cmp::Reverse(it.severity));
    match args.format {
        Format::Json => output::json(&report)?,
        Format::Sarif => output::json(&report.sarif())?,
        Format::Text if as_json => output::json(&report)?,
        Format::Text => output::text(&report.text())?,
    }
    if let Some(reason) = failed {
        return Err(Failure::shown(reason));
    }
    if report
        .findings
        .iter()
        .any(|it| it.severity > Severity::Note)
    {
        return Err(Failure::shown(Reason::Refused));
    }
    Ok(())
}

impl Report {
    /// Returns the reason for which the server cannot be used, if it cannot.
    async fn check(
        &mut self,
        server: &Server,
        options: &Connection,
        terminal: &Terminal,
    ) -> Option<Reason> {
        let begun = Instant::now();
        let session = match session::connect(server, options, terminal).await {
            Ok(session) => session,
            Err(failure) => {
                self.overlooked();
                self.add(
                    ("connect", Severity::Error),
                    "server",
                    failure.to_string(),
                    "",
                );
                return Some(failure.reason());
            }
        };
        self.connected_after_ms = Some(begun.elapsed().as_millis());
        let listed = findings::of_session(&session).await;
        match &listed {
            Ok(found) => self.findings.extend_from_slice(found),
            Err(error) => self.add(("list", Severity::Error), "server", error.to_string(), ""),
        }
        if let Ok(found) = oxmcp_apps::rules::check(&session).await {
            self.findings.extend(found.iter().map(findings::of_app));
        }
        self.manners(&session).await;
        for it in session.tolerated() {
            let place = if it.method.is_empty() {
                "messages"
            } else {
                &it.method
            };
            let message = format!("{} (seen {} times)", it.leniency.reason(), it.count);
            self.add(
                (it.leniency.name(), Severity::Warning),
                place,
                message,
                "follow the specification: other hosts may reject this",
            );
        }
        session::close(&session).await;
        self.overlooked();
        self.revisions(server, options, terminal, session.revision())
            .await;
        listed.err().map(|error| Failure::from(error).reason())
    }

    fn add(
        &mut self,
        rule: (&str, Severity),
        place: impl Into<String>,
        message: impl Into<String>,
        remedy: &str,
    ) {
        self.findings.push(Found::new(rule, place, message, remedy));
    }

    /// Reports the warnings of the SDK. The deviations that it tolerates are findings of their own.
    fn overlooked(&mut self) {
        for warning in trace::take_warnings() {
            if warning.contains("is not a message") {
                let remedy = "print logs to standard error: standard output is for messages only";
                self.add(
                    ("stdout", Severity::Error),
                    "standard output",
                    warning,
                    remedy,
                );
            } else if !warning.contains("tolerat") {
                self.add(("warning", Severity::Warning), "connection", warning, "");
            }
        }
    }

    /// Checks the answers to requests that every server must answer.
    async fn manners(&mut self, session: &ClientSession) {
        if let Err(error) = session.ping().await
            && !error.is_unsupported()
        {
            self.add(
                ("ping", Severity::Warning),
                "ping",
                error.to_string(),
                "answer `ping` with an empty result",
            );
        }
    }

    /// Finds the revisions that the server speaks.
    async fn revisions(
        &mut self,
        server: &Server,
        options: &Connection,
        terminal: &Terminal,
        known: Revision,
    ) {
        for revision in Revision::ALL {
            if revision != known && options.revision.is_some() {
                continue;
            }
            if revision == known || self.speaks(revision, server, options, terminal).await {
                self.revisions.push(revision.as_str());
            }
        }
        if !self.revisions.contains(&Revision::LATEST.as_str()) && options.revision.is_none() {
            let latest = Revision::LATEST;
            self.add(
                ("revision", Severity::Note),
                "server",
                format!("does not speak the latest revision, {latest}"),
                "update its SDK",
            );
        }
    }

    async fn speaks(
        &self,
        revision: Revision,
        server: &Server,
        options: &Connection,
        terminal: &Terminal,
    ) -> bool {
        let Ok(client) = session::client(options, terminal) else {
            return false;
        };
        let client = client.revisions([revision]);
        let Ok(session) = session::connect_with(client, server, options, terminal).await else {
            return false;
        };
        session::close(&session).await;
        trace::take_warnings();
        true
    }

    fn text(&self) -> String {
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
            lines.push(format!(
                "\n{severity}: {} ({})\n  {}",
                it.place, it.id, it.message
            ));
            if !it.remedy.is_empty() {
                lines.push(format!("  -> {}", it.remedy));
            }
        }
        let count = |severity| {
            self.findings
                .iter()
                .filter(|it| it.severity == severity)
                .count()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        lines.push(format!("\n{errors} errors, {warnings} warnings"));
        lines.join("\n")
    }

    /// The report in the format of code scanning services.
    fn sarif(&self) -> Value {
        let results = self.findings.iter().map(|it| {
            let text = match it.remedy.as_str() {
                "" => format!("{}: {}", it.place, it.message),
                remedy => format!("{}: {}; {remedy}", it.place, it.message),
            };
            json!({
                "ruleId": it.id,
                "level": it.severity,
                "message": {"text": text},
                "locations": [{"logicalLocations": [{"fullyQualifiedName": format!("{}: {}", self.target, it.place)}]}],
            })
        });
        let mut rules: Vec<&str> = self.findings.iter().map(|it| it.id.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {
                    "name": "oxmcp check",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules.iter().map(|it| json!({"id": it})).collect::<Vec<_>>(),
                }},
                "results": results.collect::<Vec<_>>(),
            }],
        })
    }
}
