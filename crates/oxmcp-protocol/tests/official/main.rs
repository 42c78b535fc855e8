//! The types against the official schemas of all revisions.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy knows tests by their attribute, and these are their helpers"
)]

mod generate;
mod schema;

use std::collections::BTreeSet;

use oxmcp_protocol::{
    self as p, ErrorObject, Revision,
    method::{
        INPUT_REQUESTS, NOTIFICATIONS_TO_CLIENT, NOTIFICATIONS_TO_SERVER, REQUESTS_TO_CLIENT,
        REQUESTS_TO_SERVER, Row,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use self::schema::Schema;

#[test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
fn method_tables_match_the_official_schemas() {
    let unions: [(&str, &[Row]); 5] = [
        ("ClientRequest", REQUESTS_TO_SERVER),
        ("ServerRequest", REQUESTS_TO_CLIENT),
        ("InputRequest", INPUT_REQUESTS),
        ("ClientNotification", NOTIFICATIONS_TO_SERVER),
        ("ServerNotification", NOTIFICATIONS_TO_CLIENT),
    ];
    for schema in Schema::all() {
        for (union, table) in unions {
            let rows = table.iter().filter(|row| row.is_in(schema.revision));
            let mut ours: Vec<&str> = rows.map(|row| row.name).collect();
            ours.sort_unstable();
            assert_eq!(
                ours,
                schema.methods(union),
                "{union} of {}",
                schema.revision
            );
        }
    }
}

#[test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
fn every_instance_of_every_definition_round_trips() {
    let mut count = 0;
    for schema in Schema::all() {
        for name in schema.definitions().keys() {
            let Some(check) = check(name) else { continue };
            for instance in generate::instances(&schema, name) {
                let expected = normal(instance.clone());
                match check(&instance.to_string()) {
                    Ok(back) => assert_eq!(normal(back), expected, "{name} of {}", schema.revision),
                    Err(error) => panic!("{name} of {}: {error}: {instance}", schema.revision),
                }
                count += 1;
            }
        }
    }
    assert!(count > 10_000, "only {count} instances");
}

#[test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
fn every_official_example_round_trips() {
    for schema in Schema::all() {
        for (name, text) in schema.examples() {
            let mut example: Value = serde_json::from_str(&text).unwrap();
            let mut name = &*name;
            if let Some(result) = name.strip_suffix("Response") {
                (name, example) = (result, example["result"].take());
            }
            let check = check(name).unwrap_or_else(|| panic!("{name} has no type"));
            let back = check(&example.to_string());
            let back = back.unwrap_or_else(|error| panic!("{name}: {error}: {example}"));
            assert_eq!(
                normal(back),
                normal(example),
                "{name} of {}",
                schema.revision
            );
        }
    }
}

/// A definition without a type would go untested.
#[test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
fn every_definition_has_a_type() {
    for schema in Schema::all() {
        let names = schema.definitions().keys().map(String::as_str);
        let forgotten: BTreeSet<&str> = names
            .filter(|name| check(name).is_none() && !OTHERWISE.contains(name))
            .filter(|name| !name.ends_with("ResultResponse"))
            .collect();
        assert!(forgotten.is_empty(), "{}: {forgotten:?}", schema.revision);
    }
}

/// The value in a normal form, so that equivalent values are equal.
fn normal(value: Value) -> Value {
    match value {
        Value::Object(object) => object
            .into_iter()
            // `resultType` follows from the type, and a request without a mode is a form.
            .filter(|(key, value)| key != "resultType" && !(key == "mode" && value == "form"))
            .map(|(key, value)| (key, normal(value)))
            // Members whose default is false are left out if they are false.
            .filter(|(key, value)| !(matches!(&**key, "isError" | "hasMore") && *value == false))
            .filter(|(key, value)| {
                !matches!(&**key, "_meta" | "params") || *value != Value::Object(Map::new())
            })
            // A single piece of content may be written without an array.
            .map(|(key, value)| match value {
                Value::Array(mut items) if key == "content" && items.len() == 1 => {
                    (key, items.remove(0))
                }
                value => (key, value),
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(normal).collect(),
        other => other,
    }
}

type Check = fn(&str) -> serde_json::Result<Value>;

fn survives<T: Serialize + DeserializeOwned>(text: &str) -> serde_json::Result<Value> {
    let first: T = serde_json::from_str(text)?;
    let text = serde_json::to_string(&first)?;
    // Members in another order, with the tag of a union behind its members, are read as well.
    let value: Value = serde_json::from_str(&text)?;
    let second: T = serde_json::from_str(&value.to_string())?;
    let again: Value = serde_json::from_str(&serde_json::to_string(&second)?)?;
    assert_eq!(value, again, "read in another order");
    Ok(value)
}

/// A message: its `params`, by the method.
fn message(text: &str) -> serde_json::Result<Value> {
    let mut message: Value = serde_json::from_str(text)?;
    let method = message["method"]
        .as_str()
        .expect("it has a method")
        .to_owned();
    if let Some(params) = message.get_mut("params") {
        *params = params_of(&method)(&params.to_string())?;
    }
    Ok(message)
}

fn params_of(method: &str) -> Check {
    macro_rules! by_method {
        ($($kind:ident: $($name:ident),+;)+) => {
            $($(if method == <p::method::$name as p::$kind>::NAME {
                return survives::<<p::method::$name as p::$kind>::Params>;
            })+)+
        };
    }
    by_method! {
        Method: CallTool, ListTools, ReadResource, ListResources, ListResourceTemplates, Subscribe, Unsubscribe,
            GetPrompt, ListPrompts, Complete, SetLevel, Ping, Initialize, Discover, Listen, CreateMessage, ListRoots,
            Elicit, GetTask, GetTaskPayload, CancelTask, ListTasks;
        Notification: Cancelled, Progress, Initialized, RootsListChanged, LoggingMessage, ResourceUpdated,
            ResourceListChanged, ToolListChanged, PromptListChanged, ElicitationComplete, SubscriptionsAcknowledged,
            TaskStatusChanged;
    }
    panic!("unknown method {method}")
}

/// Definitions without a separate type: those of JSON-RPC, unions of messages, and base interfaces.
const OTHERWISE: &[&str] = &[
    "Annotated",
    "BaseMetadata",
    "CacheableResult",
    "ClientNotification",
    "ClientRequest",
    "ClientResult",
    "Icons",
    "JSONArray",
    "JSONObject",
    "JSONRPCBatchRequest",
    "JSONRPCBatchResponse",
    "JSONRPCError",
    "JSONRPCErrorResponse",
    "JSONRPCMessage",
    "JSONRPCNotification",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "JSONRPCResultResponse",
    "JSONValue",
    "Notification",
    "PaginatedRequest",
    "PaginatedResult",
    "Request",
    "RequestId",
    "ResourceContents",
    "Result",
    "ResultType",
    "ServerNotification",
    "ServerRequest",
    "ServerResult",
    "TaskAugmentedRequestParams",
    "InputResponseRequestParams",
];

/// How instances of a definition are read and written.
fn check(definition: &str) -> Option<Check> {
    if let Some(check) = part(definition).or_else(|| whole(definition)) {
        return Some(check);
    }
    if OTHERWISE.contains(&definition) {
        return None;
    }
    match definition {
        "InputRequest" => Some(survives::<p::InputRequest>),
        "UnsupportedProtocolVersionError" => Some(error::<p::UnsupportedProtocolVersionData>),
        "MissingRequiredClientCapabilityError" => Some(error::<p::MissingClientCapabilityData>),
        "URLElicitationRequiredError" => Some(error::<p::UrlElicitationRequiredData>),
        "HeaderMismatchError" => Some(error::<Value>),
        name if name == "Error" || name.ends_with("Error") => Some(survives::<ErrorObject>),
        name if name.ends_with("Request") || name.ends_with("Notification") => Some(message),
        _ => None,
    }
}

/// An error response, with the data of its code.
fn error<Data: Serialize + DeserializeOwned>(text: &str) -> serde_json::Result<Value> {
    let mut response: Value = serde_json::from_str(text)?;
    let error = &mut response["error"];
    let object: ErrorObject = serde_json::from_str(&error.to_string())?;
    *error = survives::<ErrorObject>(&error.to_string())?;
    if let Some(data) = object.data {
        error["data"] = survives::<Data>(data.get())?;
    }
    Ok(response)
}

/// Parts of messages.
fn part(definition: &str) -> Option<Check> {
    Some(match definition {
        "Annotations" => survives::<p::Annotations>,
        "AudioContent" | "ContentBlock" | "EmbeddedResource" | "ImageContent" | "ResourceLink"
        | "TextContent" => survives::<p::ContentBlock>,
        "SamplingMessageContentBlock" | "ToolResultContent" | "ToolUseContent" => {
            survives::<p::SamplingContent>
        }
        "BlobResourceContents" | "TextResourceContents" => survives::<p::ResourceContents>,
        "BooleanSchema"
        | "EnumSchema"
        | "LegacyTitledEnumSchema"
        | "MultiSelectEnumSchema"
        | "NumberSchema"
        | "PrimitiveSchemaDefinition"
        | "SingleSelectEnumSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => known_field,
        "ClientCapabilities" => survives::<p::ClientCapabilities>,
        "ServerCapabilities" => survives::<p::ServerCapabilities>,
        "Cursor" => survives::<p::Cursor>,
        "Icon" => survives::<p::Icon>,
        "Implementation" => survives::<p::Implementation>,
        "InputRequests" => survives::<p::InputRequests>,
        "InputResponse" => survives::<p::InputResponse>,
        "InputResponses" => survives::<p::InputResponses>,
        "LoggingLevel" => survives::<p::LoggingLevel>,
        "MetaObject"
        | "NotificationMetaObject"
        | "RequestMetaObject"
        | "ResultMetaObject"
        | "SubscriptionsListenResultMeta"
        | "SubscriptionsListenResultMetaObject" => survives::<p::Meta>,
        "ModelHint" => survives::<p::ModelHint>,
        "ModelPreferences" => survives::<p::ModelPreferences>,
        "ProgressToken" => survives::<p::ProgressToken>,
        "Prompt" => survives::<p::Prompt>,
        "PromptArgument" => survives::<p::PromptArgument>,
        "PromptMessage" => survives::<p::PromptMessage>,
        "PromptReference" | "ResourceReference" | "ResourceTemplateReference" => {
            survives::<p::CompletionReference>
        }
        "RelatedTaskMetadata" => survives::<p::RelatedTaskMetadata>,
        "Resource" => survives::<p::Resource>,
        "ResourceTemplate" => survives::<p::ResourceTemplate>,
        "Role" => survives::<p::Role>,
        "Root" => survives::<p::Root>,
        "SamplingMessage" => survives::<p::SamplingMessage>,
        "SubscriptionFilter" => survives::<p::SubscriptionFilter>,
        "Task" => survives::<p::Task>,
        "TaskMetadata" => survives::<p::TaskMetadata>,
        "TaskStatus" => survives::<p::TaskStatus>,
        "Tool" => survives::<p::Tool>,
        "ToolAnnotations" => survives::<p::ToolAnnotations>,
        "ToolChoice" => survives::<p::ToolChoice>,
        "ToolExecution" => survives::<p::ToolExecution>,
        _ => return None,
    })
}

/// A field of a form, which must not be taken for an unknown one.
fn known_field(text: &str) -> serde_json::Result<Value> {
    let field: p::PrimitiveSchema = serde_json::from_str(text)?;
    assert!(!matches!(field, p::PrimitiveSchema::Unknown(_)), "{text}");
    survives::<p::PrimitiveSchema>(text)
}

/// Params and results.
fn whole(definition: &str) -> Option<Check> {
    Some(match definition {
        "CallToolRequestParams" => survives::<p::CallToolParams>,
        "CallToolResult" => survives::<p::CallToolResult>,
        "CancelledNotificationParams" => survives::<p::CancelledParams>,
        "CompleteRequestParams" => survives::<p::CompleteParams>,
        "CompleteResult" => survives::<p::CompleteResult>,
        "CreateMessageRequestParams" => survives::<p::CreateMessageParams>,
        "CreateMessageResult" => survives::<p::CreateMessageResult>,
        "CreateTaskResult" => survives::<p::CreateTaskResult>,
        "DiscoverResult" => survives::<p::DiscoverResult>,
        "ElicitRequestFormParams" | "ElicitRequestParams" | "ElicitRequestURLParams" => {
            survives::<p::ElicitParams>
        }
        "ElicitResult" => survives::<p::ElicitResult>,
        "EmptyResult" => survives::<p::EmptyResult>,
        "GetPromptRequestParams" => survives::<p::GetPromptParams>,
        "GetPromptResult" => survives::<p::GetPromptResult>,
        "GetTaskPayloadResult" => survives::<p::TaskPayload>,
        "GetTaskResult" | "CancelTaskResult" | "TaskStatusNotificationParams" => {
            survives::<p::Task>
        }
        "InitializeRequestParams" => survives::<p::InitializeParams>,
        "InitializeResult" => survives::<p::InitializeResult>,
        "InputRequiredResult" => survives::<p::InputRequiredResult>,
        "ListPromptsResult" => survives::<p::ListPromptsResult>,
        "ListResourceTemplatesResult" => survives::<p::ListResourceTemplatesResult>,
        "ListResourcesResult" => survives::<p::ListResourcesResult>,
        "ListRootsResult" => survives::<p::ListRootsResult>,
        "ListTasksResult" => survives::<p::ListTasksResult>,
        "ListToolsResult" => survives::<p::ListToolsResult>,
        "LoggingMessageNotificationParams" => survives::<p::LoggingMessageParams>,
        "NotificationParams" => survives::<p::NotificationParams>,
        "PaginatedRequestParams" => survives::<p::PaginatedParams>,
        "ProgressNotificationParams" => survives::<p::ProgressParams>,
        "ReadResourceRequestParams" | "ResourceRequestParams" => survives::<p::ReadResourceParams>,
        "ReadResourceResult" => survives::<p::ReadResourceResult>,
        "RequestParams" => survives::<p::EmptyParams>,
        "ResourceUpdatedNotificationParams" => survives::<p::ResourceUpdatedParams>,
        "SetLevelRequestParams" => survives::<p::SetLevelParams>,
        "SubscribeRequestParams" | "UnsubscribeRequestParams" => survives::<p::SubscribeParams>,
        "SubscriptionsAcknowledgedNotificationParams" => survives::<p::AcknowledgedParams>,
        "SubscriptionsListenRequestParams" => survives::<p::ListenParams>,
        "SubscriptionsListenResult" => survives::<p::ListenResult>,
        _ => return None,
    })
}
