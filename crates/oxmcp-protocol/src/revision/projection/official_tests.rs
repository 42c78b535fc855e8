//! Tests of the projection against the official schemas: each message fits the revision of the peer, whatever revision
//! it was read from.
//!
//! Every instance of every message of every revision is read, projected to every revision, and validated against the
//! closed schema of that revision. A closed schema allows no member that it does not name, so the tests find every
//! member that the revision does not have.

use std::collections::HashMap;

use jsonschema::Validator;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use self::schema::Schema;
use crate::{internal::*, *};

#[path = "../../../tests/official/generate.rs"]
mod generate;
#[path = "../../../tests/official/schema.rs"]
#[expect(dead_code, reason = "the tests from outside use the rest")]
mod schema;

const SERVER_INFO: &str = r#"{"name":"server","version":"1"}"#;
const CLIENT: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"client","version":"1"}"#;

#[test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
fn sent_messages_fit_the_peers_revision() {
    let schemas = Schema::all();
    let mut proof = Proof::new(&schemas);
    for from in &schemas {
        for to in &schemas {
            proof.requests(from, to);
            proof.results(from, to);
        }
    }
    assert!(proof.count > 10_000, "only {} messages", proof.count);
}

/// Checks the test itself: messages that are not projected do not fit.
#[test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
fn unprojected_messages_do_not_fit() {
    let schemas = Schema::all();
    let mut proof = Proof::new(&schemas);
    let find = |revision| {
        schemas
            .iter()
            .find(|schema| schema.revision == revision)
            .unwrap()
    };
    let to = find(Revision::V2025_06_18);
    let from = find(Revision::V2026_07_28);
    let rejected = generate::instances(from, "ListToolsResult")
        .iter()
        .filter(|tools| {
            proof
                .validator(to, "ListToolsResult", "")
                .validate(tools)
                .is_err()
        })
        .count();
    assert!(rejected > 10, "only {rejected} are rejected");
}

#[test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
fn errors_fit_their_definitions() {
    let supported = UnsupportedProtocolVersionData::new(["2026-07-28"], "1900-01-01");
    let missing = MissingClientCapabilityData::new(
        ClientCapabilities::default().with_sampling(SamplingCapability::default()),
    );
    let url = ElicitUrlParams::new("m", "https://example.com/").with_elicitation_id("1");
    let required = UrlElicitationRequiredData::new([url]);
    let errors = [
        (
            "UnsupportedProtocolVersionError",
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
            json!(supported),
        ),
        (
            "MissingRequiredClientCapabilityError",
            ErrorCode::MISSING_CLIENT_CAPABILITY,
            json!(missing),
        ),
        (
            "URLElicitationRequiredError",
            ErrorCode::URL_ELICITATION_REQUIRED,
            json!(required),
        ),
        (
            "HeaderMismatchError",
            ErrorCode::HEADER_MISMATCH,
            json!(null),
        ),
        ("ParseError", ErrorCode::PARSE_ERROR, json!(null)),
        (
            "InvalidRequestError",
            ErrorCode::INVALID_REQUEST,
            json!(null),
        ),
        (
            "MethodNotFoundError",
            ErrorCode::METHOD_NOT_FOUND,
            json!(null),
        ),
        ("InvalidParamsError", ErrorCode::INVALID_PARAMS, json!(null)),
        ("InternalError", ErrorCode::INTERNAL_ERROR, json!(null)),
    ];
    for schema in Schema::all() {
        for (name, code, data) in &errors {
            let Some(definition) = schema.definitions().get(*name) else {
                continue;
            };
            let mut object = ErrorObject::new(*code, "message").with_data(data);
            project_error(&mut object, schema.revision);
            let message = if definition["properties"].get("error").is_some() {
                json!({"jsonrpc": "2.0", "id": 1, "error": object})
            } else {
                json!(object)
            };
            let mut root = schema.root.clone();
            root["$ref"] = json!(pointer(&schema, name, ""));
            let validator = jsonschema::validator_for(&root).unwrap();
            let result = validator.validate(&message);
            assert!(result.is_ok(), "{name} of {}: {message}", schema.revision);
        }
    }
}

/// The closed schemas, and the validators compiled from them.
struct Proof {
    closed: HashMap<Revision, Value>,
    validators: HashMap<(Revision, String), Validator>,
    count: usize,
}

impl Proof {
    fn new(schemas: &[Schema]) -> Self {
        let closed = |schema: &Schema| {
            let mut root = schema.root.clone();
            let definitions = ["$defs", "definitions"];
            let definitions = definitions
                .iter()
                .find(|key| root.get(key).is_some())
                .unwrap();
            for (name, definition) in root[definitions].as_object_mut().unwrap() {
                // Capability sets are open, and extensions are used with all revisions.
                if name.ends_with("Capabilities") {
                    definition["properties"]["extensions"] = json!({"type": "object"});
                }
                if !name.ends_with("MetaObject") && !name.ends_with("ResultMeta") {
                    close(definition);
                }
                // The authoritative schema, in TypeScript, has `number` here.
                if matches!(&**name, "ElicitResult" | "NumberSchema") {
                    let text = definition.to_string();
                    let text = text
                        .replace(r#""type":"integer""#, r#""type":"number""#)
                        .replace(
                            r#"["string","integer","boolean"]"#,
                            r#"["string","number","boolean"]"#,
                        );
                    *definition = serde_json::from_str(&text).unwrap();
                }
            }
            (schema.revision, root)
        };
        Self {
            closed: schemas.iter().map(closed).collect(),
            validators: HashMap::new(),
            count: 0,
        }
    }

    /// The validator of a part of a definition.
    fn validator(&mut self, schema: &Schema, definition: &str, part: &str) -> &Validator {
        let key = (schema.revision, format!("{definition}{part}"));
        let closed = &self.closed;
        self.validators.entry(key).or_insert_with(|| {
            // A definition composed of several parts cannot be closed part by part.
            let parts = named(schema, definition, part).get("allOf").is_some();
            let mut root = if parts {
                &schema.root
            } else {
                &closed[&schema.revision]
            }
            .clone();
            root["$ref"] = json!(pointer(schema, definition, part));
            jsonschema::validator_for(&root).unwrap()
        })
    }

    fn validate(&mut self, to: &Schema, definition: &str, part: &str, sent: &Value) {
        let mut checked = sent.clone();
        if !part.is_empty() || to.revision.is_modern() && is_answer(definition) {
            // Every request may have `_meta`, which the schema does not repeat for each.
            if named(to, definition, part)["properties"]
                .get("_meta")
                .is_none()
            {
                checked.as_object_mut().unwrap().remove("_meta");
            }
        }
        let validator = self.validator(to, definition, part);
        if let Err(error) = validator.validate(&checked) {
            let at = error.instance_path();
            panic!(
                "{definition}{part} for {}: {error} at {at}: {sent}",
                to.revision
            );
        }
        self.count += 1;
    }

    /// Params of requests and notifications.
    fn requests(&mut self, from: &Schema, to: &Schema) {
        macro_rules! each {
            ($($kind:ident: $($name:ident),+;)+) => { $($(
                self.params::<<method::$name as $kind>::Params>(from, to, <method::$name as $kind>::NAME);
            )+)+ };
        }
        each! {
            Method: CallTool, ListTools, ReadResource, ListResources, ListResourceTemplates, Subscribe, Unsubscribe,
                GetPrompt, ListPrompts, Complete, SetLevel, Ping, Initialize, Discover, Listen, CreateMessage,
                ListRoots, GetTask, GetTaskPayload, CancelTask, ListTasks;
            Notification: Progress, Initialized, RootsListChanged, LoggingMessage, ResourceUpdated,
                ResourceListChanged, ToolListChanged, PromptListChanged, ElicitationComplete,
                SubscriptionsAcknowledged, TaskStatusChanged;
        }
        self.some_params::<CancelledParams>(from, to, "notifications/cancelled", |params| {
            // Only 2025-11-25 has cancellations without a request id.
            params.request_id.is_some()
        });
        self.some_params::<ElicitParams>(from, to, "elicitation/create", |params| {
            if let ElicitParams::Url(url) = params {
                // Only the requesting side can choose an id for it.
                url.elicitation_id.get_or_insert_with(|| "1".into());
            }
            // If the revision has no URL mode, the request has no equivalent.
            !matches!(params, ElicitParams::Url(_)) || to.revision.has_elicitation_modes()
        });
    }

    fn params<P: Serialize + DeserializeOwned + Project + HasMeta>(
        &mut self,
        from: &Schema,
        to: &Schema,
        method: &str,
    ) {
        self.some_params::<P>(from, to, method, |_| true);
    }

    fn some_params<P: Serialize + DeserializeOwned + Project + HasMeta>(
        &mut self,
        from: &Schema,
        to: &Schema,
        method: &str,
        accept: impl Fn(&mut P) -> bool,
    ) {
        let (Some(source), Some(target)) = (definition(from, method), definition(to, method))
        else {
            return;
        };
        if to.definitions()[target]["properties"]
            .get("params")
            .is_none()
        {
            return;
        }
        let of_client =
            to.revision.is_modern() && method::find(method::REQUESTS_TO_SERVER, method).is_some();
        for instance in generate::instances(from, source) {
            let params = instance
                .get("params")
                .map_or_else(|| "{}".into(), Value::to_string);
            let mut params: P = serde_json::from_str(&params).unwrap();
            if !accept(&mut params) {
                continue;
            }
            let meta = params.meta_mut();
            let said = meta.is_some_and(|meta| meta.get(Meta::PROTOCOL_VERSION).is_some());
            params.project(to.revision);
            let meta = params.meta_mut().map(std::mem::take).unwrap_or_default();
            let extra = ExtraMeta {
                envelope: (of_client && !said).then_some(CLIENT),
                progress: false,
                trace: None,
                meta: meta.as_object(),
            };
            let mut sent = Vec::new();
            let params = serde_json::to_vec(&params).unwrap();
            write_request(&mut sent, 1, method, &params, extra).unwrap();
            let sent: Value = serde_json::from_slice(&sent).unwrap();
            self.validate(to, target, "/properties/params", &sent["params"]);
        }
    }

    fn results(&mut self, from: &Schema, to: &Schema) {
        macro_rules! each {
            ($($name:literal => $type:ty,)+) => { $( self.result::<$type>(from, to, $name); )+ };
        }
        each! {
            "CallToolResult" => CallToolResult,
            "CompleteResult" => CompleteResult,
            "CreateMessageResult" => CreateMessageResult,
            "CreateTaskResult" => CreateTaskResult,
            "DiscoverResult" => DiscoverResult,
            "ElicitResult" => ElicitResult,
            "EmptyResult" => EmptyResult,
            "GetPromptResult" => GetPromptResult,
            "GetTaskResult" => Task,
            "InitializeResult" => InitializeResult,
            "InputRequiredResult" => InputRequiredResult,
            "ListPromptsResult" => ListPromptsResult,
            "ListResourcesResult" => ListResourcesResult,
            "ListResourceTemplatesResult" => ListResourceTemplatesResult,
            "ListRootsResult" => ListRootsResult,
            "ListTasksResult" => ListTasksResult,
            "ListToolsResult" => ListToolsResult,
            "ReadResourceResult" => ReadResourceResult,
            "SubscriptionsListenResult" => ListenResult,
        }
    }

    fn result<R: Serialize + DeserializeOwned + Project + HasMeta>(
        &mut self,
        from: &Schema,
        to: &Schema,
        name: &str,
    ) {
        if !from.definitions().contains_key(name) || !to.definitions().contains_key(name) {
            return;
        }
        for instance in generate::instances(from, name) {
            let mut result: R = serde_json::from_str(&instance.to_string()).unwrap();
            let sent = if to.revision.is_modern() && is_answer(name) {
                result.project(to.revision);
                serde_json::to_value(&result).unwrap()
            } else {
                let mut sent = Vec::new();
                encode_result(&mut sent, &mut result, to.revision, Some(SERVER_INFO)).unwrap();
                serde_json::from_slice(&sent).unwrap()
            };
            self.validate(to, name, "", &sent);
        }
    }
}

/// Whether a definition is the response to an input request of a modern server, and not a separate result.
fn is_answer(name: &str) -> bool {
    ["CreateMessageResult", "ElicitResult", "ListRootsResult"].contains(&name)
}

/// The definition of the message with a method.
fn definition<'a>(schema: &'a Schema, method: &str) -> Option<&'a str> {
    schema.definitions().iter().find_map(|(name, definition)| {
        (definition["properties"]["method"]["const"] == method).then_some(&**name)
    })
}

/// The schema at a part of a definition.
fn named<'a>(schema: &'a Schema, definition: &str, part: &str) -> &'a Value {
    let named = schema.resolve(&pointer(schema, definition, part));
    let reference = named["$ref"].as_str();
    reference.map_or(named, |reference| schema.resolve(reference))
}

fn pointer(schema: &Schema, definition: &str, part: &str) -> String {
    let key = if schema.root.get("$defs").is_some() {
        "$defs"
    } else {
        "definitions"
    };
    format!("#/{key}/{definition}{part}")
}

/// Disallows all members except those that are named, but not within embedded JSON Schemas.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let open = object
                .get("additionalProperties")
                .is_none_or(|more| *more == json!({}));
            if object.contains_key("properties") && open {
                object.insert("additionalProperties".into(), json!(false));
            }
            for (key, value) in object {
                if !matches!(&**key, "inputSchema" | "outputSchema" | "_meta" | "allOf") {
                    close(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
