//! Lenient reading of the params and results of all methods: a sample of each is changed in every place in the ways in which real peers
//! deviate from the specification.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]; and the samples are a table"
)]

use oxmcp_protocol::{
    Method, Notification, lenient,
    method::{
        self as m, NOTIFICATIONS_TO_CLIENT, NOTIFICATIONS_TO_SERVER, REQUESTS_TO_CLIENT,
        REQUESTS_TO_SERVER,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A valid value with every member, and the functions that read it and write it again.
struct Sample {
    method: &'static str,
    value: Value,
    strictly: fn(&Value) -> Option<Value>,
    leniently: fn(&Value) -> Option<Value>,
}

impl Sample {
    fn new<T: Serialize + DeserializeOwned>(method: &'static str, value: Value) -> Self {
        Self {
            method,
            value,
            strictly: |value| {
                let value: T = serde_json::from_str(&value.to_string()).ok()?;
                Some(serde_json::to_value(value).unwrap())
            },
            leniently: |value| {
                let value: T = lenient::read(&value.to_string()).ok()?.value;
                Some(serde_json::to_value(value).unwrap())
            },
        }
    }

    /// The name of the place, if a changed value is not read leniently like strictly, or else as the value that is meant.
    fn failure(&self, place: &str, changed: &Value, meant: Option<Value>) -> Option<String> {
        let expected = (self.strictly)(changed).or(meant)?;
        let leniently = (self.leniently)(changed);
        (leniently.as_ref() != Some(&expected)).then(|| {
            let read = leniently.map_or("nothing", |_| "another value");
            format!(
                "{} is read as {read} after a change of {place}",
                self.method
            )
        })
    }
}

/// Asserts that nothing fails at any place of the samples.
fn check(failure: impl Fn(&Sample, &str) -> Option<String>) {
    let samples = samples();
    let mut failures = Vec::new();
    for sample in &samples {
        let places = places(&sample.value).into_iter();
        // The fields of a form are named by its author, and `[]` is a schema of its kind.
        let places = places.filter(|it| !it.contains("/properties/") && !it.ends_with("Schema"));
        failures.extend(places.filter_map(|place| failure(sample, &place)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn request<M: Method>(params: Value, result: Value) -> [Sample; 2] {
    [
        Sample::new::<M::Params>(M::NAME, params),
        Sample::new::<M::Result>(M::NAME, result),
    ]
}

fn notification<N: Notification>(params: Value) -> [Sample; 1] {
    [Sample::new::<N::Params>(N::NAME, params)]
}

fn samples() -> Vec<Sample> {
    let meta = json!({"a/b": 1});
    let icons = json!([{"src": "a:b", "mimeType": "image/png", "sizes": ["1x1"], "theme": "dark"}]);
    let software = json!({"name": "n", "title": "t", "version": "1", "description": "d", "websiteUrl": "a:b", "icons": icons});
    let annotations = json!({"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"});
    let text = json!({"type": "text", "text": "x", "annotations": annotations, "_meta": meta});
    let image = json!({"type": "image", "data": "AQID", "mimeType": "image/png", "annotations": annotations, "_meta": meta});
    let resource = json!({"uri": "a:b", "name": "n", "title": "t", "description": "d", "mimeType": "a/b", "annotations": annotations, "size": 5, "icons": icons, "_meta": meta});
    let mut link = resource.clone();
    link["type"] = "resource_link".into();
    let contents = json!([
        {"uri": "a:b", "mimeType": "a/b", "text": "x", "_meta": meta},
        {"uri": "a:b", "mimeType": "a/b", "blob": "AQID", "_meta": meta},
    ]);
    let embedded = json!({"type": "resource", "resource": contents[0], "annotations": annotations, "_meta": meta});
    let content = json!([text, image, {"type": "audio", "data": "AQID", "mimeType": "a/b", "annotations": annotations}, link, embedded]);
    let tool = json!({
        "name": "n", "title": "t", "description": "d", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
        "annotations": {"title": "t", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
        "execution": {"taskSupport": "optional"}, "icons": icons, "_meta": meta,
    });
    let messages = json!([
        {"role": "user", "content": [text, image], "_meta": meta},
        {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "n", "input": {"a": null}, "_meta": meta}},
        {"role": "user", "content": {"type": "tool_result", "toolUseId": "1", "content": content, "structuredContent": {"a": 1}, "isError": true, "_meta": meta}},
    ]);
    let task = json!({
        "taskId": "1", "status": "working", "statusMessage": "s", "createdAt": "2025-01-12T15:00:58Z",
        "lastUpdatedAt": "2025-01-12T15:00:58Z", "ttl": 5, "pollInterval": 5, "_meta": meta,
    });
    let tasks = |request: &str, method: &str| json!({"list": {}, "cancel": {}, "requests": {request: {method: {}}}});
    let client = json!({
        "roots": {"listChanged": true}, "sampling": {"context": {}, "tools": {}}, "elicitation": {"form": {}, "url": {}},
        "tasks": tasks("sampling", "createMessage"), "experimental": {"a": {}}, "extensions": {"a/b": {}},
    });
    let server = json!({
        "tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}, "prompts": {"listChanged": true},
        "completions": {}, "logging": {}, "tasks": tasks("tools", "call"), "experimental": {"a": {}}, "extensions": {"a/b": {}},
    });
    let filter = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["a:b"],
    });
    let form = json!({"type": "object", "properties": {"a": {"type": "string", "title": "t"}}, "required": ["a"]});
    let page = json!({"cursor": "c", "_meta": meta});
    let list = |name: &str, entry: &Value| json!({name: [entry, entry], "nextCursor": "c", "ttlMs": 5, "cacheScope": "private", "_meta": meta});
    let empty = || json!({"_meta": meta});
    let about = |member: &str| json!({member: "a:b", "_meta": meta});
    let answers = json!({"inputResponses": {"a": {"action": "accept"}}, "requestState": "s"});
    let with = |mut value: Value, more: &Value| {
        let members = more.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(members);
        value
    };
    let mut all = Vec::new();
    all.extend(request::<m::CallTool>(
        with(json!({"name": "n", "arguments": {"a": null}, "task": {"ttl": 5}, "_meta": meta}), &answers),
        json!({"content": content, "structuredContent": {"a": [1, null]}, "isError": true, "_meta": meta}),
    ));
    all.extend(request::<m::ListTools>(page.clone(), list("tools", &tool)));
    all.extend(request::<m::ReadResource>(
        with(about("uri"), &answers),
        json!({"contents": contents, "ttlMs": 5, "cacheScope": "public", "_meta": meta}),
    ));
    all.extend(request::<m::ListResources>(
        page.clone(),
        list("resources", &resource),
    ));
    let template = json!({"uriTemplate": "a:{b}", "name": "n", "title": "t", "description": "d", "mimeType": "a/b", "annotations": annotations, "icons": icons, "_meta": meta});
    all.extend(request::<m::ListResourceTemplates>(
        page.clone(),
        list("resourceTemplates", &template),
    ));
    all.extend(request::<m::Subscribe>(about("uri"), empty()));
    all.extend(request::<m::Unsubscribe>(about("uri"), empty()));
    all.extend(request::<m::GetPrompt>(
        with(json!({"name": "n", "arguments": {"a": "b"}, "_meta": meta}), &answers),
        json!({"description": "d", "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": embedded}], "_meta": meta}),
    ));
    let prompt = json!({"name": "n", "title": "t", "description": "d", "arguments": [{"name": "a", "title": "t", "description": "d", "required": true}], "icons": icons, "_meta": meta});
    all.extend(request::<m::ListPrompts>(
        page.clone(),
        list("prompts", &prompt),
    ));
    all.extend(request::<m::Complete>(
        json!({"ref": {"type": "ref/prompt", "name": "n", "title": "t"}, "argument": {"name": "a", "value": "v"}, "context": {"arguments": {"b": "c"}}, "_meta": meta}),
        json!({"completion": {"values": ["a", "b"], "total": 2, "hasMore": true}, "_meta": meta}),
    ));
    all.extend(request::<m::SetLevel>(
        json!({"level": "info", "_meta": meta}),
        empty(),
    ));
    all.extend(request::<m::Ping>(empty(), empty()));
    all.extend(request::<m::Initialize>(
        json!({"protocolVersion": "2025-11-25", "capabilities": client, "clientInfo": software, "_meta": meta}),
        json!({"protocolVersion": "2025-11-25", "capabilities": server, "serverInfo": software, "instructions": "i", "_meta": meta}),
    ));
    all.extend(request::<m::Discover>(
        empty(),
        json!({"supportedVersions": ["2026-07-28"], "capabilities": server, "instructions": "i", "ttlMs": 5, "cacheScope": "public", "_meta": meta}),
    ));
    all.extend(request::<m::Listen>(
        json!({"notifications": filter, "_meta": meta}),
        empty(),
    ));
    all.extend(request::<m::CreateMessage>(
        json!({
            "messages": messages, "modelPreferences": {"hints": [{"name": "n"}], "costPriority": 0.5, "speedPriority": 1, "intelligencePriority": 0},
            "systemPrompt": "s", "includeContext": "none", "temperature": 0.5, "maxTokens": 5, "stopSequences": ["s"], "metadata": {"a": null},
            "tools": [tool], "toolChoice": {"mode": "auto"}, "task": {"ttl": 5}, "_meta": meta,
        }),
        json!({"role": "assistant", "content": [text, image], "model": "m", "stopReason": "endTurn", "_meta": meta}),
    ));
    all.extend(request::<m::ListRoots>(
        empty(),
        json!({"roots": [{"uri": "a:b", "name": "n", "_meta": meta}], "_meta": meta}),
    ));
    all.extend(request::<m::Elicit>(
        json!({"mode": "form", "message": "m", "requestedSchema": form, "task": {"ttl": 5}, "_meta": meta}),
        json!({"action": "accept", "content": {"a": "b"}, "_meta": meta}),
    ));
    all.extend(request::<m::Elicit>(
        json!({"mode": "url", "message": "m", "url": "a:b", "elicitationId": "1", "_meta": meta}),
        json!({"action": "decline", "_meta": meta}),
    ));
    all.extend(request::<m::GetTask>(about("taskId"), task.clone()));
    all.extend(request::<m::GetTaskPayload>(
        about("taskId"),
        json!({"content": content}),
    ));
    all.extend(request::<m::CancelTask>(about("taskId"), task.clone()));
    all.extend(request::<m::ListTasks>(
        page,
        json!({"tasks": [task], "nextCursor": "c", "_meta": meta}),
    ));
    all.extend(notification::<m::Cancelled>(
        json!({"requestId": 1, "reason": "r", "_meta": meta}),
    ));
    all.extend(notification::<m::Progress>(
        json!({"progressToken": 1, "progress": 0.5, "total": 1, "message": "m", "_meta": meta}),
    ));
    all.extend(notification::<m::Initialized>(empty()));
    all.extend(notification::<m::RootsListChanged>(empty()));
    all.extend(notification::<m::LoggingMessage>(
        json!({"level": "info", "logger": "l", "data": [null], "_meta": meta}),
    ));
    all.extend(notification::<m::ResourceUpdated>(about("uri")));
    all.extend(notification::<m::ResourceListChanged>(empty()));
    all.extend(notification::<m::ToolListChanged>(empty()));
    all.extend(notification::<m::PromptListChanged>(empty()));
    all.extend(notification::<m::ElicitationComplete>(about(
        "elicitationId",
    )));
    all.extend(notification::<m::SubscriptionsAcknowledged>(
        json!({"notifications": filter, "_meta": meta}),
    ));
    all.extend(notification::<m::TaskStatusChanged>(task));
    all
}

/// The places in a value, as JSON pointers: members and items at all depths.
fn places(value: &Value) -> Vec<String> {
    let inner = |(key, value): (String, &Value)| {
        let own = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        let below = places(value)
            .into_iter()
            .map(|place| format!("{own}{place}"));
        std::iter::once(own.clone())
            .chain(below)
            .collect::<Vec<_>>()
    };
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), value));
            members.flat_map(inner).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, item)| (index.to_string(), item))
                .flat_map(inner)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The value with another value in a place, or nothing there.
fn changed(value: &Value, place: &str, new: Option<Value>) -> Value {
    let mut changed = value.clone();
    let (parent, key) = place.rsplit_once('/').unwrap();
    let parent = changed.pointer_mut(parent).unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match (parent, new) {
        (Value::Object(members), Some(new)) => drop(members.insert(key, new)),
        (Value::Object(members), None) => drop(members.remove(&key)),
        (Value::Array(items), Some(new)) => {
            *items.get_mut(key.parse::<usize>().unwrap()).unwrap() = new;
        }
        (Value::Array(items), None) => drop(items.remove(key.parse().unwrap())),
        _ => panic!("{place} is in neither an object nor an array"),
    }
    changed
}

#[test]
fn all_methods_have_samples_that_are_valid() {
    let samples = samples();
    let tables = [
        REQUESTS_TO_SERVER,
        REQUESTS_TO_CLIENT,
        NOTIFICATIONS_TO_SERVER,
        NOTIFICATIONS_TO_CLIENT,
    ];
    for row in tables.into_iter().flatten() {
        assert!(
            samples.iter().any(|it| it.method == row.name),
            "{}",
            row.name
        );
    }
    for sample in samples {
        let read = (sample.strictly)(&sample.value);
        assert!(read.is_some(), "{}: {}", sample.method, sample.value);
        assert_eq!((sample.leniently)(&sample.value), read, "{}", sample.method);
    }
}

#[test]
fn null_members_read_as_absent() {
    check(|sample, place| {
        let absent = changed(&sample.value, place, None);
        let null = changed(&sample.value, place, Some(Value::Null));
        sample.failure(place, &null, (sample.strictly)(&absent))
    });
}

#[test]
fn empty_arrays_read_as_empty_objects() {
    check(|sample, place| {
        sample.value.pointer(place)?.as_object()?;
        let empty = changed(&sample.value, place, Some(json!({})));
        let array = changed(&sample.value, place, Some(json!([])));
        sample.failure(place, &array, (sample.strictly)(&empty))
    });
}

#[test]
fn numbers_and_booleans_are_read_from_text() {
    check(|sample, place| {
        let value = sample.value.pointer(place)?;
        let is_plain = value.is_number() || value.is_boolean();
        let text = is_plain.then(|| Value::from(value.to_string()))?;
        let text = changed(&sample.value, place, Some(text));
        sample.failure(place, &text, (sample.strictly)(&sample.value))
    });
}

#[test]
fn unreadable_entries_cost_only_themselves() {
    check(|sample, place| {
        let entries = sample.value.pointer(place)?.as_array()?;
        [json!([1, 2]), json!([[]]), Value::Null]
            .into_iter()
            .find_map(|entry| {
                let mut longer = entries.clone();
                longer.insert(0, entry);
                let longer = changed(&sample.value, place, Some(longer.into()));
                sample.failure(place, &longer, (sample.strictly)(&sample.value))
            })
    });
}
