//! The findings about a session that is open, without calling a tool: for `oxmcp check`, and for the page of `oxmcp ui`.

use oxmcp::{
    ClientSession, Error, FeatureKind, Finding, Schema,
    protocol::{Prompt, Resource, Tool},
};
use serde::Serialize;
use serde_json::Value;

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
    pub id: String,
    pub severity: Severity,
    /// The part of the server, such as `tool "add"`.
    pub place: String,
    /// The name of the tool, the prompt or the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The observation, and its effect.
    pub message: String,
    /// The remedy. Empty if the message says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Found {
    pub(crate) fn new(
        (id, severity): (&str, Severity),
        place: impl Into<String>,
        message: impl Into<String>,
        remedy: &str,
    ) -> Self {
        Self {
            id: id.to_owned(),
            severity,
            place: place.into(),
            name: None,
            message: message.into(),
            remedy: remedy.to_owned(),
        }
    }

    fn of(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}

/// A finding about an app.
pub(crate) fn of_app(it: &oxmcp_apps::rules::Finding) -> Found {
    let severity = match it.rule.is_warning() {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let found = Found::new((it.rule.id(), severity), &*it.place, &*it.problem, "");
    let quoted = it.place.split_once(' ').map(|(_, name)| name);
    match quoted.and_then(|name| serde_json::from_str::<String>(name).ok()) {
        Some(name) => found.of(&name),
        None => found,
    }
}

/// Checks everything that is listed, as hosts and models see it.
///
/// # Errors
/// A listing fails.
pub(crate) async fn of_session(session: &ClientSession) -> Result<Vec<Found>, Error> {
    let mut all = Vec::new();
    let mut tools: Vec<Tool> = Vec::new();
    if session.offers(FeatureKind::Tools).await? {
        let mut listing = session.tools();
        while let Some(tool) = listing.next().await {
            tools.push(tool?);
        }
        for it in listing.left_out() {
            let name = it.name.as_deref().unwrap_or("without a name");
            all.push(Found::new(
                ("unreadable", Severity::Error),
                format!("tool {name:?}"),
                it.reason.clone(),
                "hosts leave it out, or reject the whole list",
            ));
        }
    }
    let prompts: Vec<Prompt> = match session.offers(FeatureKind::Prompts).await? {
        true => session.prompts().all().await?,
        false => Vec::new(),
    };
    let resources: Vec<Resource> = match session.offers(FeatureKind::Resources).await? {
        true => session.resources().or_none().all().await?,
        false => Vec::new(),
    };
    all.extend(tools.iter().flat_map(invalid_schemas));
    let name = session.server_info().map_or("server", |it| &it.name);
    for it in Finding::of_lists(name, &tools, &prompts, &resources) {
        let severity = match it.is_severe {
            true => Severity::Error,
            false => Severity::Warning,
        };
        let mut place = format!("{} {:?}", it.kind, it.name);
        if !it.pointer.is_empty() {
            place = format!("{place} at {}", it.pointer);
        }
        all.push(Found::new((it.id, severity), place, it.effect, it.remedy).of(&it.name));
    }
    Ok(all)
}

fn invalid_schemas(tool: &Tool) -> Vec<Found> {
    let schemas = [
        ("inputSchema", Some(&tool.input_schema)),
        ("outputSchema", tool.output_schema.as_ref()),
    ];
    let mut found = Vec::new();
    for (name, schema) in schemas {
        let parsed = schema.map(|it| serde_json::from_str::<Value>(it.get()));
        let Some(Ok(schema)) = parsed else { continue };
        if let Err(error) = Schema::from_json(schema) {
            let place = format!("tool {:?} at /{name}", tool.name);
            let rule = ("invalid-schema", Severity::Error);
            let finding = Found::new(rule, place, error.to_string(), "use a valid JSON Schema");
            found.push(finding.of(&tool.name));
        }
    }
    found
}
