//! `oxmcp inspect`: what a server is and offers.

use std::fmt::Write;

use oxmcp::{
    ClientSession, FeatureKind,
    protocol::{Implementation, Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    args::Inspect, escape, failure::Result, output, session, signature::signature, target::Server,
    terminal::Terminal,
};

/// The first lines of a text that are shown.
const MAX_LINES: usize = 3;

/// The facts about a server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Implementation>,
    revision: &'static str,
    capabilities: ServerCapabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    resource_templates: Vec<ResourceTemplate>,
    /// The deviations from the specification that were tolerated.
    deviations: Vec<Deviation>,
}

#[derive(Debug, Serialize)]
struct Deviation {
    name: &'static str,
    method: String,
    reason: &'static str,
    count: u64,
}

pub(crate) async fn run(args: Inspect, as_json: bool, terminal: &Terminal) -> Result<()> {
    let server = Server::find(args.target, terminal)?;
    let session = session::connect(&server, &args.connection, terminal).await?;
    let report = report(&session).await;
    session::close(&session).await;
    let report = report?;
    if as_json {
        return output::json(&report);
    }
    output::text(&report.text())
}

async fn report(session: &ClientSession) -> Result<Report> {
    let has_resources = session.offers(FeatureKind::Resources).await?;
    let tools = match session.offers(FeatureKind::Tools).await? {
        true => session.tools().all().await?,
        false => Vec::new(),
    };
    let prompts = match session.offers(FeatureKind::Prompts).await? {
        true => session.prompts().all().await?,
        false => Vec::new(),
    };
    let (resources, resource_templates) = match has_resources {
        true => (
            session.resources().or_none().all().await?,
            session.resource_templates().or_none().all().await?,
        ),
        false => (Vec::new(), Vec::new()),
    };
    let deviations = session.tolerated().into_iter().map(|it| Deviation {
        name: it.leniency.name(),
        method: it.method,
        reason: it.leniency.reason(),
        count: it.count,
    });
    Ok(Report {
        server: session.server_info().cloned(),
        revision: session.revision().as_str(),
        capabilities: session.server_capabilities().clone(),
        instructions: session.instructions().map(str::to_owned),
        tools,
        prompts,
        resources,
        resource_templates,
        deviations: deviations.collect(),
    })
}

impl Report {
    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string never fails.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        match &self.server {
            Some(it) => {
                writeln!(
                    out,
                    "{} {}",
                    escape::line(&it.name),
                    escape::line(&it.version)
                )?;
                indented(out, "  ", it.title.as_deref())?;
                indented(out, "  ", it.description.as_deref())?;
                indented(out, "  ", it.website_url.as_deref())?;
            }
            None => writeln!(out, "unnamed server")?,
        }
        writeln!(out, "  revision {}", self.revision)?;
        writeln!(out, "  offers {}", self.offers())?;
        if let Some(instructions) = &self.instructions {
            writeln!(out, "\nInstructions")?;
            indented(out, "  ", Some(instructions))?;
        }
        heading(out, "Tools", self.tools.len())?;
        for tool in &self.tools {
            let input = schema(tool.input_schema.get());
            let output = tool.output_schema.as_ref().map(|it| schema(it.get()));
            writeln!(
                out,
                "  {}{}",
                signature(&tool.name, &input, output.as_ref()),
                hints(tool)
            )?;
            first_lines(out, tool.description.as_deref())?;
        }
        heading(out, "Prompts", self.prompts.len())?;
        for prompt in &self.prompts {
            let arguments = prompt.arguments.iter().map(|it| {
                let optional = if it.required { "" } else { "?" };
                format!("{}{optional}", it.name)
            });
            let arguments = arguments.collect::<Vec<_>>().join(", ");
            writeln!(
                out,
                "  {}",
                escape::line(&format!("{}({arguments})", prompt.name))
            )?;
            first_lines(out, prompt.description.as_deref())?;
        }
        heading(out, "Resources", self.resources.len())?;
        for it in &self.resources {
            entry(
                out,
                &it.uri,
                it.mime_type.as_deref(),
                it.description.as_deref(),
            )?;
        }
        heading(out, "Resource templates", self.resource_templates.len())?;
        for it in &self.resource_templates {
            entry(
                out,
                &it.uri_template,
                it.mime_type.as_deref(),
                it.description.as_deref(),
            )?;
        }
        heading(
            out,
            "Deviations from the specification",
            self.deviations.len(),
        )?;
        for it in &self.deviations {
            writeln!(
                out,
                "  {} ({}, count: {}): {}",
                it.name,
                escape::line(&it.method),
                it.count,
                it.reason
            )?;
        }
        Ok(())
    }

    /// The capabilities in words.
    fn offers(&self) -> String {
        let it = &self.capabilities;
        let mut offers = Vec::new();
        offers.extend(it.tools.is_some().then_some("tools"));
        offers.extend(it.prompts.is_some().then_some("prompts"));
        offers.extend(it.resources.is_some().then_some("resources"));
        offers.extend(it.completions.is_some().then_some("completions"));
        offers.extend(it.logging.is_some().then_some("logging"));
        offers.extend(it.tasks.is_some().then_some("tasks"));
        if offers.is_empty() {
            return "nothing".to_owned();
        }
        offers.join(", ")
    }
}

fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The annotations of a tool that say what it may do.
fn hints(tool: &Tool) -> String {
    let Some(it) = &tool.annotations else {
        return String::new();
    };
    let mut hints = Vec::new();
    hints.extend(it.read_only_hint.unwrap_or(false).then_some("read-only"));
    hints.extend(
        it.destructive_hint
            .unwrap_or(false)
            .then_some("destructive"),
    );
    hints.extend(it.idempotent_hint.unwrap_or(false).then_some("idempotent"));
    if hints.is_empty() {
        return String::new();
    }
    format!("  [{}]", hints.join(", "))
}

/// A heading, unless nothing follows it.
fn heading(out: &mut String, name: &str, count: usize) -> std::fmt::Result {
    if count == 0 {
        return Ok(());
    }
    writeln!(out, "\n{name} ({count})")
}

fn entry(
    out: &mut String,
    uri: &str,
    mime_type: Option<&str>,
    description: Option<&str>,
) -> std::fmt::Result {
    let kind = mime_type.map(|it| format!("  {it}")).unwrap_or_default();
    writeln!(out, "  {}", escape::line(&format!("{uri}{kind}")))?;
    first_lines(out, description)
}

fn first_lines(out: &mut String, text: Option<&str>) -> std::fmt::Result {
    let text = text.unwrap_or_default().trim();
    let mut lines = text.lines();
    for line in lines.by_ref().take(MAX_LINES) {
        writeln!(out, "      {}", escape::line(line))?;
    }
    match lines.count() {
        0 => Ok(()),
        1 => writeln!(out, "      … 1 more line"),
        more => writeln!(out, "      … {more} more lines"),
    }
}

fn indented(out: &mut String, indent: &str, text: Option<&str>) -> std::fmt::Result {
    for line in text.unwrap_or_default().lines() {
        writeln!(out, "{indent}{}", escape::line(line))?;
    }
    Ok(())
}
