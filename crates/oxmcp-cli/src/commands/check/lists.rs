//! The tools, prompts and resources of a server, as hosts and models see them, and its apps and skills.

use std::collections::HashSet;

use oxmcp::{
    ClientSession, Error, FeatureKind, Finding, Schema,
    protocol::{Prompt, Resource, Tool},
};
use oxmcp_apps::{ToolUi, rules};
use oxmcp_skills::host::SessionExt;
use serde_json::Value;

use super::report::{Report, Severity};

/// The most skills whose files are read. Each can have many files.
const MAX_SKILLS: usize = 100;

/// Checks everything that is listed. Returns the tools.
///
/// # Errors
/// A list cannot be read.
pub(crate) async fn check(
    report: &mut Report,
    session: &ClientSession,
) -> Result<Vec<Tool>, Error> {
    let tools = tools(report, session).await?;
    let prompts: Vec<Prompt> = match session.offers(FeatureKind::Prompts).await? {
        true => session.prompts().all().await?,
        false => Vec::new(),
    };
    let resources: Vec<Resource> = match session.offers(FeatureKind::Resources).await? {
        true => session.resources().or_none().all().await?,
        false => Vec::new(),
    };
    duplicates(report, "tool", tools.iter().map(|it| it.name.as_str()));
    duplicates(report, "prompt", prompts.iter().map(|it| it.name.as_str()));
    duplicates(
        report,
        "resource",
        resources.iter().map(|it| it.uri.as_str()),
    );
    let is_modern = session.revision().is_modern();
    for tool in &tools {
        schemas(report, tool, is_modern);
    }
    let name = session.server_info().map_or("server", |it| &it.name);
    for it in Finding::of_lists(name, &tools, &prompts, &resources) {
        let severity = if it.is_severe {
            Severity::Error
        } else {
            Severity::Warning
        };
        let mut place = format!("{} {:?}", it.kind, it.name);
        if !it.pointer.is_empty() {
            place = format!("{place} at {}", it.pointer);
        }
        report.add((it.id, severity), place, it.effect, it.remedy);
        report.about(&it.name);
    }
    let is_empty = tools.is_empty() && prompts.is_empty() && resources.is_empty();
    if is_empty && !offers_others(session).await? {
        report.add(
            ("offers-nothing", Severity::Warning),
            "server",
            "has no tools, prompts or resources, so that hosts show nothing of it",
            "check its configuration, and that it declares the capabilities that it has",
        );
    }
    let has_apps = tools.iter().any(|it| ToolUi::of(it).resource_uri.is_some())
        || resources.iter().any(|it| it.uri.starts_with("ui://"));
    if has_apps {
        apps(report, session).await?;
    }
    skills(report, session).await;
    Ok(tools)
}

/// Whether the server has templates of resources, completions or skills.
async fn offers_others(session: &ClientSession) -> Result<bool, Error> {
    if session.offers(FeatureKind::Completions).await?
        || matches!(session.skills("server").is_supported().await, Ok(true))
    {
        return Ok(true);
    }
    if !session.offers(FeatureKind::Resources).await? {
        return Ok(false);
    }
    let first = session.resource_templates().or_none().next().await;
    Ok(first.transpose()?.is_some())
}

async fn tools(report: &mut Report, session: &ClientSession) -> Result<Vec<Tool>, Error> {
    let mut tools = Vec::new();
    if !session.offers(FeatureKind::Tools).await? {
        return Ok(tools);
    }
    let mut listing = session.tools();
    while let Some(tool) = listing.next().await {
        tools.push(tool?);
    }
    for it in listing.left_out() {
        let name = it.name.as_deref().unwrap_or("without a name");
        report.add(
            ("unreadable", Severity::Error),
            format!("tool {name:?}"),
            it.reason.clone(),
            "hosts leave it out, or reject the whole list",
        );
    }
    Ok(tools)
}

fn duplicates<'a>(report: &mut Report, kind: &str, names: impl Iterator<Item = &'a str>) {
    let mut seen = HashSet::new();
    for name in names.filter(|it| !seen.insert(*it)) {
        report.add(
            ("duplicate-name", Severity::Error),
            format!("{kind} {name:?}"),
            format!("another {kind} has the same name; hosts reject the whole list, or use either"),
            "rename one of them",
        );
        report.about(name);
    }
}

/// Checks the schemas of a tool. Results of modern revisions need not be objects; arguments are always one.
fn schemas(report: &mut Report, tool: &Tool, is_modern: bool) {
    let schemas = [
        ("inputSchema", Some(&tool.input_schema)),
        ("outputSchema", tool.output_schema.as_ref()),
    ];
    for (name, schema) in schemas {
        let parsed = schema.map(|it| serde_json::from_str::<Value>(it.get()));
        let Some(Ok(schema)) = parsed else { continue };
        let problem = match Schema::from_json(schema) {
            Err(error) => error.to_string(),
            Ok(schema) if !schema.is_object() && (name == "inputSchema" || !is_modern) => {
                "does not describe an object; hosts reject the tool, or all tools".to_owned()
            }
            Ok(_) => continue,
        };
        report.add(
            ("invalid-schema", Severity::Error),
            format!("tool {:?} at /{name}", tool.name),
            problem,
            "use a valid JSON Schema with the type `object`",
        );
        report.about(&tool.name);
    }
}

async fn apps(report: &mut Report, session: &ClientSession) -> Result<(), Error> {
    for it in rules::check(session).await? {
        let severity = match it.rule.is_warning() {
            true => Severity::Warning,
            false => Severity::Error,
        };
        let quoted = it.place.split_once(' ').map(|(_, name)| name.to_owned());
        report.add((it.rule.id(), severity), it.place, it.problem, "");
        if let Some(Ok(name)) = quoted.map(|it| serde_json::from_str::<String>(&it)) {
            report.about(&name);
        }
    }
    Ok(())
}

/// Reads the skills as a host does, which compares each file with its digest.
async fn skills(report: &mut Report, session: &ClientSession) {
    let skills = session.skills("server");
    if !matches!(skills.is_supported().await, Ok(true)) {
        return;
    }
    let list = match skills.list().await {
        Ok(list) => list,
        Err(error) => {
            report.add(
                ("skill-list", Severity::Error),
                "skills",
                error.to_string(),
                "",
            );
            return;
        }
    };
    for it in list.rejected() {
        let place = format!("skill {:?}", it.uri.as_deref().unwrap_or("without a URI"));
        report.add(
            ("skill-entry", Severity::Error),
            place,
            it.problem.clone(),
            "hosts leave the skill out",
        );
    }
    for skill in list.skills().iter().take(MAX_SKILLS) {
        let loaded = match skill.is_dynamic() {
            true => skills.load_unverified(skill).await,
            false => skills.load(skill).await,
        };
        if let Err(error) = loaded {
            let place = format!("skill {:?}", skill.uri());
            report.add(
                ("skill-error", Severity::Error),
                place,
                error.to_string(),
                "hosts do not load the skill",
            );
        }
    }
}
