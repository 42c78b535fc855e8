//! The rules for one tool, one resource, its contents, and the result of a call.

use oxmcp::protocol::{
    CallToolResult, ContentBlock, JsonObject, Meta, ReadResourceResult, Resource, ResourceBody,
    ResourceContents, Tool,
};
use serde_json::Value;

use super::finding::{Finding, Rule};
use crate::{
    MIME_TYPE,
    csp::{Csp, LISTS, check_origin},
    html::is_html5,
    metadata::{FLAT_URI, Permission, UI},
};

/// The start of the URI of each app.
pub(crate) const SCHEME: &str = "ui://";

/// Checks the metadata of a tool. A tool without any follows the rules.
///
/// ```
/// use oxmcp::protocol::Tool;
/// use oxmcp_apps::rules;
/// use serde_json::json;
///
/// let mut tool = Tool::new("now", json!({"type": "object"}));
/// tool.meta.insert("ui", json!({"resourceUri": "https://example.com"}));
/// let findings = rules::check_tool(&tool);
/// assert_eq!(findings[0].rule.id(), "APP-001");
/// ```
#[must_use]
pub fn check_tool(tool: &Tool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |rule, problem: String| {
        findings.push(Finding::of_tool(rule, &tool.name, problem));
    };
    let flat = tool.meta.get(FLAT_URI);
    if flat.is_some_and(|it| !it.is_string()) {
        add(Rule::ToolMetadata, expected(FLAT_URI, "a string"));
    }
    let ui = match tool.meta.get(UI) {
        None => None,
        Some(Value::Object(ui)) => Some(ui),
        Some(_) => {
            add(Rule::ToolMetadata, expected("_meta.ui", "an object"));
            None
        }
    };
    let uri = ui.and_then(|ui| ui.get("resourceUri"));
    match uri {
        Some(Value::String(uri)) if !uri.starts_with(SCHEME) => add(
            Rule::UriScheme,
            format!("`resourceUri` is {uri:?}; it must begin with `{SCHEME}`"),
        ),
        None | Some(Value::String(_)) => {}
        Some(_) => add(Rule::ToolMetadata, expected("resourceUri", "a string")),
    }
    if flat.is_some() && flat != uri {
        add(
            Rule::FlatKey,
            format!(
                "`{FLAT_URI}` is deprecated and differs from `ui.resourceUri`; set both to the same URI"
            ),
        );
    }
    if let Some(problem) = ui.and_then(|ui| ui.get("visibility")).and_then(visibility) {
        add(Rule::Visibility, problem);
    }
    findings
}

fn visibility(value: &Value) -> Option<String> {
    const RIGHT: &str = "use a list of \"model\", \"app\" or both";
    let Some(names) = value.as_array() else {
        return Some(format!("`visibility` is not a list; {RIGHT}"));
    };
    if names.is_empty() {
        return Some(format!(
            "`visibility` is empty, so that nothing can call the tool; {RIGHT}"
        ));
    }
    let is_unknown = |it: &&Value| *it != "model" && *it != "app";
    let unknown = names.iter().find(is_unknown)?;
    Some(format!("unknown `visibility` {unknown}; {RIGHT}"))
}

/// Checks the entry of a resource in a listing. A resource that is not an app follows the rules.
#[must_use]
pub fn check_resource(resource: &Resource) -> Vec<Finding> {
    let is_app = resource.uri.starts_with(SCHEME);
    let mime_type = resource.mime_type.as_deref();
    let mut findings = Vec::new();
    if !is_app && mime_type == Some(MIME_TYPE) {
        let problem = format!("the URI of an app must begin with `{SCHEME}`");
        findings.push(Finding::of_resource(
            Rule::UriScheme,
            &resource.uri,
            problem,
        ));
    }
    if is_app {
        findings.extend(check_mime_type(&resource.uri, mime_type));
        check_metadata(&resource.uri, &resource.meta, &mut findings);
    }
    findings
}

/// Checks the contents of an app, as `resources/read` returns them.
///
/// ```
/// use oxmcp::protocol::{ReadResourceResult, ResourceContents};
/// use oxmcp_apps::{MIME_TYPE, rules};
///
/// let contents = ResourceContents::text("ui://a", "<p>Hello</p>").with_mime_type(MIME_TYPE);
/// let findings = rules::check_contents("ui://a", &ReadResourceResult::new([contents]));
/// assert_eq!(findings[0].rule.id(), "APP-004");
/// ```
#[must_use]
pub fn check_contents(uri: &str, result: &ReadResourceResult) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(contents) = app_contents(uri, result) else {
        let problem = "it has no contents; return the HTML as `text` or `blob`";
        findings.push(Finding::of_resource(Rule::Contents, uri, problem));
        return findings;
    };
    findings.extend(check_mime_type(uri, contents.mime_type.as_deref()));
    findings.extend(check_html(uri, &contents.body));
    check_metadata(uri, &contents.meta, &mut findings);
    findings
}

/// The contents of an app: those with its URI, or else the first.
pub(crate) fn app_contents<'a>(
    uri: &str,
    result: &'a ReadResourceResult,
) -> Option<&'a ResourceContents> {
    let mut all = result.contents.iter();
    all.find(|it| it.uri == uri)
        .or_else(|| result.contents.first())
}

/// Checks the document of an app.
pub(crate) fn check_html(uri: &str, body: &ResourceBody) -> Option<Finding> {
    let finding = |rule, problem: &str| Some(Finding::of_resource(rule, uri, problem));
    let html = match body {
        ResourceBody::Text(text) => Some(&**text),
        ResourceBody::Blob(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    };
    let Some(html) = html else {
        return finding(Rule::Html, "it is not UTF-8; encode the document as UTF-8");
    };
    if html.trim().is_empty() {
        return finding(
            Rule::Contents,
            "it is empty; return the HTML as `text` or `blob`",
        );
    }
    if is_html5(html) {
        return None;
    }
    finding(
        Rule::Html,
        "it is not an HTML5 document; begin it with `<!doctype html>`",
    )
}

/// Checks the result of a call of a tool that has an app. Hosts that show no apps, and the model, need its content.
///
/// ```
/// use oxmcp::protocol::CallToolResult;
/// use oxmcp_apps::rules;
///
/// assert_eq!(rules::check_result("now", &CallToolResult::text("ten past two")), None);
/// let finding = rules::check_result("now", &CallToolResult::default()).unwrap();
/// assert_eq!(finding.rule.id(), "APP-010");
/// ```
#[must_use]
pub fn check_result(tool: &str, result: &CallToolResult) -> Option<Finding> {
    let is_empty = |block: &ContentBlock| block.as_text().is_some_and(|it| it.trim().is_empty());
    result.content.iter().all(is_empty).then(|| {
        let problem = "the result has no content; describe the result in text, for the model and for hosts without apps";
        Finding::of_tool(Rule::Content, tool, problem)
    })
}

fn check_mime_type(uri: &str, mime_type: Option<&str>) -> Option<Finding> {
    let problem = match mime_type {
        Some(MIME_TYPE) => return None,
        Some(other) => format!("the MIME type is {other:?}; use \"{MIME_TYPE}\""),
        None => format!("the MIME type is missing; use \"{MIME_TYPE}\""),
    };
    Some(Finding::of_resource(Rule::MimeType, uri, problem))
}

/// Whether a value has the type of its member.
type TypeCheck = fn(&Value) -> bool;

/// Checks `_meta.ui` of an app.
fn check_metadata(uri: &str, meta: &Meta, findings: &mut Vec<Finding>) {
    let mut add = |rule, problem: String| findings.push(Finding::of_resource(rule, uri, problem));
    let ui = match meta.get(UI) {
        None => return,
        Some(Value::Object(ui)) => ui,
        Some(_) => return add(Rule::AppMetadata, expected("_meta.ui", "an object")),
    };
    let members: [(&str, &str, TypeCheck); 4] = [
        ("csp", "an object", Value::is_object),
        ("permissions", "an object", Value::is_object),
        ("domain", "a string", Value::is_string),
        ("prefersBorder", "true or false", Value::is_boolean),
    ];
    for (member, right, is_right) in members {
        if ui.get(member).is_some_and(|it| !is_right(it)) {
            add(Rule::AppMetadata, expected(member, right));
        }
    }
    let members = |name| ui.get(name).and_then(Value::as_object);
    for (name, value) in members("permissions").into_iter().flatten() {
        let is_known = Permission::ALL.iter().any(|it| it.member() == name);
        if !is_known {
            let known = Permission::ALL.map(Permission::member).join("`, `");
            add(
                Rule::AppMetadata,
                format!("unknown permission `{name}`; use `{known}`"),
            );
        } else if !value.is_object() {
            add(
                Rule::AppMetadata,
                expected(&format!("permissions.{name}"), "an empty object"),
            );
        }
    }
    if let Some(csp) = members("csp") {
        check_csp(csp, add);
    }
}

fn check_csp(csp: &JsonObject, mut add: impl FnMut(Rule, String)) {
    let mut origins = 0;
    for (name, value) in csp {
        if !LISTS.contains(&&**name) {
            let known = LISTS.join("`, `");
            add(
                Rule::AppMetadata,
                format!("unknown member `csp.{name}`; use `{known}`"),
            );
            continue;
        }
        let Some(entries) = value.as_array() else {
            let problem = expected(&format!("csp.{name}"), "a list of origins");
            add(Rule::AppMetadata, problem);
            continue;
        };
        for entry in entries {
            let checked = entry.as_str().map(|it| check_origin(it, name));
            let problem = match checked {
                Some(Ok(())) => {
                    origins += 1;
                    continue;
                }
                Some(Err(problem)) => problem,
                None => format!("{entry} is not a string"),
            };
            add(Rule::Origin, format!("`csp.{name}`: {problem}"));
        }
    }
    let enforced = Csp::read(&Value::Object(csp.clone())).count();
    if enforced < origins {
        let problem = format!(
            "`csp` has {origins} origins, of which only {enforced} fit in a policy; declare fewer, for example with \"*.\""
        );
        add(Rule::AppMetadata, problem);
    }
}

fn expected(member: &str, right: &str) -> String {
    format!("`{member}` must be {right}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ids(findings: impl IntoIterator<Item = Finding>) -> Vec<&'static str> {
        findings.into_iter().map(|it| it.rule.id()).collect()
    }

    fn meta(value: &Value) -> Meta {
        let mut meta = Meta::default();
        for (key, value) in value.as_object().cloned().unwrap_or_default() {
            meta.insert(key, value);
        }
        meta
    }

    #[test]
    fn tool_metadata_follows_the_rules() {
        let cases = [
            (json!({}), vec![]),
            (
                json!({"ui": {"resourceUri": "ui://a", "visibility": ["model", "app"]}, "ui/resourceUri": "ui://a"}),
                vec![],
            ),
            (json!({"ui": {"visibility": ["app"]}}), vec![]),
            (json!({"ui": {"resourceUri": "http://a"}}), vec!["APP-001"]),
            (json!({"ui/resourceUri": "ui://a"}), vec!["APP-006"]),
            (
                json!({"ui": {"resourceUri": "ui://a"}, "ui/resourceUri": "ui://b"}),
                vec!["APP-006"],
            ),
            (json!({"ui": "ui://a"}), vec!["APP-007"]),
            (json!({"ui": {"resourceUri": 7}}), vec!["APP-007"]),
            (json!({"ui/resourceUri": 7}), vec!["APP-007", "APP-006"]),
            (json!({"ui": {"visibility": "app"}}), vec!["APP-011"]),
            (json!({"ui": {"visibility": []}}), vec!["APP-011"]),
            (json!({"ui": {"visibility": ["user"]}}), vec!["APP-011"]),
        ];
        for (value, expected) in cases {
            let mut tool = Tool::new("t", json!({"type": "object"}));
            tool.meta = meta(&value);
            assert_eq!(ids(check_tool(&tool)), expected, "{value}");
        }
    }

    #[test]
    fn listed_resources_follow_the_rules() {
        let html = Some(MIME_TYPE);
        let csp = |csp: Value| json!({"ui": {"csp": csp}});
        let cases = [
            ("docs://a", None, json!({"ui": 7}), vec![]),
            ("ui://a", html, json!({}), vec![]),
            (
                "ui://a",
                html,
                json!({"ui": {"csp": {"connectDomains": ["wss://a.example"]}, "permissions": {"camera": {}},
                       "domain": "d", "prefersBorder": true}}),
                vec![],
            ),
            ("docs://a", html, json!({}), vec!["APP-001"]),
            ("ui://a", None, json!({}), vec!["APP-002"]),
            ("ui://a", Some("text/html"), json!({}), vec!["APP-002"]),
            ("ui://a", html, json!({"ui": []}), vec!["APP-008"]),
            (
                "ui://a",
                html,
                json!({"ui": {"domain": 1, "prefersBorder": "yes"}}),
                vec!["APP-008", "APP-008"],
            ),
            ("ui://a", html, csp(json!([])), vec!["APP-008"]),
            ("ui://a", html, csp(json!({"connect": []})), vec!["APP-008"]),
            (
                "ui://a",
                html,
                csp(json!({"connectDomains": "x"})),
                vec!["APP-008"],
            ),
            (
                "ui://a",
                html,
                json!({"ui": {"permissions": {"usb": {}, "camera": true}}}),
                vec!["APP-008", "APP-008"],
            ),
            (
                "ui://a",
                html,
                csp(
                    json!({"connectDomains": ["a.example", 7], "frameDomains": ["https://a.example/x"]}),
                ),
                vec!["APP-009", "APP-009", "APP-009"],
            ),
        ];
        for (uri, mime_type, value, expected) in cases {
            let mut resource = Resource::new(uri, "a");
            resource.mime_type = mime_type.map(str::to_owned);
            resource.meta = meta(&value);
            let mut found = ids(check_resource(&resource));
            found.sort_unstable();
            assert_eq!(found, expected, "{uri}: {value}");
        }
    }

    #[test]
    fn origins_beyond_the_policy_are_found() {
        let mut resource = Resource::new("ui://a", "a");
        resource.mime_type = Some(MIME_TYPE.to_owned());
        let origins = |count: u8| -> Vec<_> {
            let origins = (0..count).map(|it| format!("https://{it}.example"));
            origins.collect()
        };
        for (count, expected) in [(64, vec![]), (65, vec!["APP-008"])] {
            resource.meta = meta(&json!({"ui": {"csp": {"connectDomains": origins(count)}}}));
            assert_eq!(ids(check_resource(&resource)), expected);
        }
    }

    #[test]
    fn contents_follow_the_rules() {
        const HTML: &str = "<!doctype html><p>hi";
        let text = |text: &str| ResourceContents::text("ui://a", text).with_mime_type(MIME_TYPE);
        let bytes =
            |it: &[u8]| ResourceContents::blob("ui://a", it.to_vec()).with_mime_type(MIME_TYPE);
        let mut bad_meta = text(HTML);
        bad_meta.meta = meta(&json!({"ui": {"csp": {"frameDomains": ["*"]}}}));
        let cases = [
            (vec![text(HTML)], vec![]),
            (vec![bytes(HTML.as_bytes())], vec![]),
            (vec![], vec!["APP-003"]),
            (vec![text("  \n")], vec!["APP-003"]),
            (vec![text("<p>hi")], vec!["APP-004"]),
            (vec![bytes(b"<!doctype html>\xff")], vec!["APP-004"]),
            (
                vec![ResourceContents::text("ui://a", HTML)],
                vec!["APP-002"],
            ),
            (vec![bad_meta], vec!["APP-009"]),
            // The contents with the URI of the app count, whichever their place.
            (
                vec![ResourceContents::text("ui://other", ""), text(HTML)],
                vec![],
            ),
        ];
        for (contents, expected) in cases {
            let result = ReadResourceResult::new(contents);
            assert_eq!(ids(check_contents("ui://a", &result)), expected);
        }
    }

    #[test]
    fn results_need_content() {
        let image = CallToolResult::new([ContentBlock::image(vec![1], "image/png")]);
        assert_eq!(check_result("t", &image), None);
        assert_eq!(
            ids(check_result("t", &CallToolResult::text(" "))),
            ["APP-010"]
        );
        assert_eq!(
            ids(check_result("t", &CallToolResult::default())),
            ["APP-010"]
        );
    }

    #[test]
    fn rules_have_the_identifiers_of_other_tools() {
        let ids: Vec<_> = Rule::ALL.map(Rule::id).to_vec();
        let expected: Vec<_> = (1..=11).map(|it| format!("APP-{it:03}")).collect();
        assert_eq!(ids, expected);
        let finding = Finding::of_tool(Rule::Content, "now", "empty");
        assert_eq!(finding.to_string(), "APP-010: tool \"now\": empty");
    }
}
