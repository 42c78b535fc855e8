//! The target of lenient reading in `oxmcp-protocol`: valid values, changed in the ways in which peers depart from the specification.

use oxmcp_protocol::{
    AcknowledgedParams, CallToolParams, CallToolResult, CancelledParams, CompleteParams,
    CompleteResult, CreateMessageParams, CreateMessageResult, CreateTaskResult, DiscoverResult,
    ElicitParams, ElicitResult, GetPromptParams, GetPromptResult, InitializeParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListRootsResult, ListTasksResult, ListToolsResult, ListenParams, LoggingMessageParams,
    PaginatedParams, ProgressParams, ReadResourceParams, ReadResourceResult, ResourceUpdatedParams,
    Revision, SetLevelParams, SubscribeParams, Task, TaskParams,
    internal::{Envelope, HasMeta, Params, Project, RequestParams, encode_result},
    lenient::{mend_message, read},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The maximum number of deviations that are reported.
const MAX_REPORTED: usize = 16;
/// In a name: marks the second member with that name.
const SECOND: char = '\u{1}';
/// In a string: half of a surrogate pair.
const HALF: char = '\u{2}';

/// A valid value of a type.
struct Sample {
    json: &'static str,
    /// The members that the value requires, as JSON pointers.
    needed: &'static [&'static str],
    is_result: bool,
    read: fn(&str) -> Result<Option<String>, serde_json::Error>,
}

macro_rules! samples {
    ($( $kind:ident $type:ident $needed:expr, $json:literal; )+) => {
        const SAMPLES: &[Sample] = &[$( Sample {
            json: $json,
            needed: &$needed,
            is_result: is_result!($kind),
            read: read_as::<$type>,
        }, )+];
    };
}

macro_rules! is_result {
    (params) => {
        false
    };
    (result) => {
        true
    };
}

samples! {
    params InitializeParams ["/protocolVersion"], r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}}}},"experimental":{"x":{}},"extensions":{"a/b":{}}},"clientInfo":{"name":"c","version":"1","title":"C","description":"d","websiteUrl":"https://a.example","icons":[{"src":"https://a.example/i","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]},"_meta":{"progressToken":1}}"#;
    result InitializeResult ["/protocolVersion"], r#"{"protocolVersion":"2024-11-05","capabilities":{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{}},"experimental":{"x":{}}},"serverInfo":{"name":"s","version":"1"},"instructions":"i","_meta":{"a":1}}"#;
    result DiscoverResult ["/supportedVersions"], r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"i","ttlMs":1000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    params PaginatedParams [], r#"{"cursor":"c","_meta":{"progressToken":"t"}}"#;
    result ListToolsResult [], r#"{"tools":[{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"outputSchema":{"type":"object"},"annotations":{"title":"t","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"execution":{"taskSupport":"optional"},"icons":[{"src":"https://a.example/i"}],"_meta":{"a":1}},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"c","ttlMs":5,"cacheScope":"private","_meta":{}}"#;
    params CallToolParams ["/name"], r#"{"name":"a","arguments":{"n":1,"t":"x"},"task":{"ttl":60000},"_meta":{"progressToken":"t"}}"#;
    result CallToolResult [], r#"{"content":[{"type":"text","text":"a","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-01T00:00:00Z"},"_meta":{}},{"type":"image","data":"AQID","mimeType":"image/png"},{"type":"audio","data":"AQID","mimeType":"audio/wav"},{"type":"resource_link","uri":"a:b","name":"n","title":"t","description":"d","mimeType":"text/plain","size":5,"icons":[{"src":"a:b"}]},{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","text":"t"}},{"type":"resource","resource":{"uri":"a:b","blob":"AQID"}}],"structuredContent":{"n":1},"isError":false,"_meta":{"a":1}}"#;
    result ListPromptsResult [], r#"{"prompts":[{"name":"p","title":"P","description":"d","arguments":[{"name":"a","title":"A","description":"d","required":true}],"icons":[{"src":"a:b"}],"_meta":{}}],"nextCursor":"c"}"#;
    params GetPromptParams ["/name"], r#"{"name":"p","arguments":{"a":"x"},"_meta":{}}"#;
    result GetPromptResult [], r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":{"type":"image","data":"AQID","mimeType":"image/png"}}]}"#;
    result ListResourcesResult [], r#"{"resources":[{"uri":"a:b","name":"n","title":"t","description":"d","mimeType":"text/plain","size":5,"annotations":{"audience":["user"],"priority":1},"icons":[{"src":"a:b"}],"_meta":{}}],"nextCursor":"c"}"#;
    result ListResourceTemplatesResult [], r#"{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"n","title":"t","description":"d","mimeType":"text/plain","annotations":{"priority":1}}]}"#;
    params ReadResourceParams ["/uri"], r#"{"uri":"a:b","_meta":{}}"#;
    result ReadResourceResult [], r#"{"contents":[{"uri":"a:b","mimeType":"text/plain","text":"t","_meta":{}},{"uri":"a:c","blob":"AQID"}],"ttlMs":5,"cacheScope":"public"}"#;
    params SubscribeParams ["/uri"], r#"{"uri":"a:b"}"#;
    params ResourceUpdatedParams ["/uri"], r#"{"uri":"a:b"}"#;
    params CompleteParams ["/ref/type", "/ref/name", "/argument/name", "/argument/value"], r#"{"ref":{"type":"ref/prompt","name":"p","title":"t"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}}"#;
    params CompleteParams ["/ref/type", "/ref/uri", "/argument/name", "/argument/value"], r#"{"ref":{"type":"ref/resource","uri":"a:{b}"},"argument":{"name":"b","value":"v"}}"#;
    result CompleteResult [], r#"{"completion":{"values":["a","b"],"total":2,"hasMore":false}}"#;
    params CreateMessageParams ["/messages", "/maxTokens"], r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"t"}],"isError":false,"structuredContent":{}}]}],"modelPreferences":{"hints":[{"name":"m"}],"costPriority":0.5,"speedPriority":1,"intelligencePriority":0},"systemPrompt":"s","includeContext":"none","temperature":0.5,"maxTokens":100,"stopSequences":["s"],"metadata":{"a":1},"tools":[{"name":"a","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"},"task":{"ttl":5}}"#;
    result CreateMessageResult ["/role", "/content", "/model"], r#"{"role":"assistant","content":{"type":"text","text":"a"},"model":"m","stopReason":"endTurn"}"#;
    params ElicitParams ["/mode", "/message", "/requestedSchema/properties"], r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","title":"t","format":"email","minLength":1},"n":{"type":"integer","minimum":1,"maximum":5},"b":{"type":"boolean","default":true},"e":{"type":"string","enum":["x","y"]}},"required":["a"]},"task":{"ttl":5}}"#;
    params ElicitParams ["/mode", "/message", "/url", "/elicitationId"], r#"{"mode":"url","message":"m","url":"https://a.example","elicitationId":"1"}"#;
    result ElicitResult ["/action"], r#"{"action":"accept","content":{"own-t":"x","own-n":1,"own-b":true,"own-l":["x"]}}"#;
    result ListRootsResult [], r#"{"roots":[{"uri":"file:///a","name":"a","_meta":{}}]}"#;
    params SetLevelParams ["/level"], r#"{"level":"warning"}"#;
    params LoggingMessageParams ["/level", "/data"], r#"{"level":"info","logger":"l","data":{"a":1}}"#;
    params ProgressParams ["/progressToken", "/progress"], r#"{"progressToken":"t","progress":1,"total":2,"message":"m"}"#;
    params CancelledParams ["/requestId"], r#"{"requestId":1,"reason":"r"}"#;
    params ListenParams ["/notifications"], r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:b"]},"_meta":{}}"#;
    params AcknowledgedParams ["/notifications"], r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}}"#;
    result CreateTaskResult ["/task/taskId", "/task/status", "/task/createdAt", "/task/lastUpdatedAt"], r#"{"task":{"taskId":"t","status":"working","statusMessage":"m","createdAt":"2025-01-01T00:00:00Z","lastUpdatedAt":"2025-01-01T00:00:00Z","ttl":5,"pollInterval":5},"_meta":{}}"#;
    result Task ["/taskId", "/status", "/createdAt", "/lastUpdatedAt"], r#"{"taskId":"t","status":"input_required","statusMessage":"m","createdAt":"2025-01-01T00:00:00Z","lastUpdatedAt":"2025-01-01T00:00:00Z","ttl":5,"pollInterval":5}"#;
    params TaskParams ["/taskId"], r#"{"taskId":"t"}"#;
    result ListTasksResult [], r#"{"tasks":[{"taskId":"t","status":"failed","createdAt":"2025-01-01T00:00:00Z","lastUpdatedAt":"2025-01-01T00:00:00Z","ttl":5}],"nextCursor":"c"}"#;
}

/// Parts of places outside the protocol: duplicates there are the reader's responsibility.
const FOREIGN: &[&str] = &[
    "/_meta/",
    "/arguments/",
    "/structuredContent/",
    "/inputSchema/",
    "/outputSchema/",
    "/requestedSchema/",
    "/experimental/",
    "/extensions/",
    "/requests/",
    "/metadata/",
    "/input/",
    "/data/",
    "/own-",
];

/// The first byte selects a value; every two bytes after it select a member and its change. The value that is read can be written
/// strictly, fails only if a required member is missing, and has no duplicate names. The same holds for the message around it.
pub fn lenient(data: &[u8]) {
    let Some((&first, changes)) = data.split_first() else {
        return;
    };
    let Some(sample) = SAMPLES.get(usize::from(first) % SAMPLES.len()) else {
        return;
    };
    let Ok(mut value) = serde_json::from_str::<Value>(sample.json) else {
        panic!("not JSON: {}", sample.json);
    };
    let mut made: Vec<(String, u8)> = Vec::new();
    for change in changes.chunks_exact(2).take(3) {
        let &[member, kind] = change else { continue };
        made.extend(change_value(&mut value, member, kind));
    }
    let text = written(&value);
    let result = (sample.read)(&text);
    if let [(place, TWICE)] = &*made {
        let is_foreign = FOREIGN.iter().any(|part| place.contains(part));
        assert!(is_foreign || result.is_err(), "{place} twice in {text}");
    }
    let is_needed = made.iter().any(|(place, kind)| {
        let is_in = |needed: &&str| *needed == place || needed.starts_with(&format!("{place}/"));
        *kind == TWICE || sample.needed.iter().any(is_in)
    });
    if !is_needed {
        match result {
            Ok(Some(wrong)) => panic!("{text} is written as {wrong}"),
            Ok(None) => {}
            Err(error) => panic!("{error} in {text}, after {made:?}"),
        }
    }
    mended(&value, sample, changes);
}

/// A repaired message is strict, and needs no further repairs.
fn mended(value: &Value, sample: &Sample, changes: &[u8]) {
    let mut message = Map::from_iter([
        ("jsonrpc".to_owned(), "2.0".into()),
        ("id".to_owned(), 1.into()),
    ]);
    if sample.is_result {
        message.insert("result".to_owned(), value.clone());
    } else {
        message.insert("method".to_owned(), "any".into());
        message.insert("params".to_owned(), value.clone());
    }
    let mut message = Value::Object(message);
    let mut is_marked = false;
    if let [.., kind, member] = changes {
        is_marked = kind % 5 == 0;
        // Most members are deep in the message: the top ones are changed here.
        let names = ["jsonrpc", "id", "method", "params", "result", "error"];
        if let (Some(name), Some(message)) =
            (names.get(usize::from(*member) % 8), message.as_object_mut())
        {
            change_member(message, name, *kind);
        }
    }
    let text = written(&message);
    let mark = if is_marked { "\u{feff}" } else { "" };
    let sent = format!("{mark}{text}");
    let Some((again, tolerated)) = mend_message(sent.as_bytes()) else {
        return;
    };
    assert!(!tolerated.is_empty() && tolerated.len() <= MAX_REPORTED);
    let shown = String::from_utf8_lossy(&again);
    let mut params = RequestParams::UNREAD;
    let envelope = Envelope::parse(&again, &mut params);
    assert!(envelope.is_ok(), "{sent} became {shown}");
    let more = mend_message(&again);
    assert!(more.is_none(), "{sent} became {shown}, then {more:?}");
}

/// Reads a value leniently, and returns its text for a revision if that cannot be read strictly.
fn read_as<T: Project + HasMeta + Clone + DeserializeOwned>(
    text: &str,
) -> Result<Option<String>, serde_json::Error> {
    let reading = read::<T>(text)?;
    assert!(reading.tolerated.len() <= MAX_REPORTED);
    for to in Revision::ALL {
        let mut sent = Vec::new();
        let is_written = encode_result(&mut sent, &mut reading.value.clone(), to, None).is_ok();
        let again = serde_json::from_slice::<T>(&sent);
        if let (true, Err(error)) = (is_written, again) {
            return Ok(Some(format!("{}: {error}", String::from_utf8_lossy(&sent))));
        }
        assert!(is_written, "{text} cannot be written");
    }
    Ok(None)
}

/// The kind of change after which a name occurs twice.
const TWICE: u8 = 5;

/// Changes the member of the value that a byte names. Returns its place as a JSON pointer, and the kind of change.
fn change_value(value: &mut Value, member: u8, kind: u8) -> Option<(String, u8)> {
    let mut places = Vec::new();
    collect(value, &mut String::new(), &mut places);
    let place = places.get(usize::from(member) % places.len().max(1))?;
    let (parent, name) = place.rsplit_once('/')?;
    let object = value.pointer_mut(parent)?.as_object_mut()?;
    change_member(object, name, kind).map(|kind| (place.clone(), kind))
}

/// Collects the places of all members, as JSON pointers.
fn collect(value: &Value, place: &mut String, places: &mut Vec<String>) {
    let length = place.len();
    match value {
        Value::Object(members) => {
            for (name, value) in members
                .iter()
                .filter(|(name, _)| !name.contains(['/', SECOND]))
            {
                place.extend(["/", name]);
                places.push(place.clone());
                collect(value, place, places);
                place.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                place.extend(["/", &index.to_string()]);
                collect(value, place, places);
                place.truncate(length);
            }
        }
        _ => {}
    }
}

/// Changes a member in one of the ways of real peers. Returns the kind of change, if there was one.
fn change_member(object: &mut Map<String, Value>, name: &str, kind: u8) -> Option<u8> {
    let old = object.get(name).cloned().unwrap_or_default();
    let changed = match (kind % 7, &old) {
        (0, _) => Value::Null,
        (1, _) => Value::Array(Vec::new()),
        (2, _) => {
            object.remove(name);
            return Some(2);
        }
        (3, Value::Number(number)) => number.to_string().into(),
        (3, Value::Bool(it)) => it.to_string().into(),
        (4, Value::String(_)) => 7.5.into(),
        (TWICE, _) => {
            let other = match kind / 7 % 5 {
                0 => old.clone(),
                1 => Value::Null,
                2 => Value::Array(Vec::new()),
                3 => Value::Object(Map::new()),
                _ => "other".into(),
            };
            // Either of the two comes first.
            let (first, second) = if (kind / 7).is_multiple_of(2) {
                (old, other)
            } else {
                (other, old)
            };
            object.insert(name.to_owned(), first);
            object.insert(format!("{name}{SECOND}"), second);
            return Some(TWICE);
        }
        (6, Value::String(text)) => format!("{text}{HALF}").into(),
        _ => return None,
    };
    object.insert(name.to_owned(), changed);
    Some(kind % 7)
}

/// The value as JSON, with what [`SECOND`] and [`HALF`] stand for.
fn written(value: &Value) -> String {
    value
        .to_string()
        .replace("\\u0001", "")
        .replace("\\u0002", "\\ud83d")
}
