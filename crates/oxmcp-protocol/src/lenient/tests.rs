//! Tests of lenient reading.

use serde_json::{Value, json};

use super::*;
use crate::{
    mrtr::requests::{InputRequest, InputRequiredResult},
    types::{
        CallToolResult, CompleteParams, ContentBlock, CreateMessageParams, ElicitParams,
        GetPromptResult, InitializeParams, InitializeResult, ListPromptsResult,
        ListResourcesResult, ListToolsResult, LoggingLevel, PrimitiveSchema, ReadResourceResult,
        SetLevelParams,
    },
};

/// Reads a value leniently, and returns its JSON and what was tolerated.
fn reading<T: serde::Serialize + serde::de::DeserializeOwned>(value: &str) -> (Value, Vec<String>) {
    let reading = read::<T>(value).unwrap_or_else(|error| panic!("{value}: {error}"));
    let tolerated = reading.tolerated.iter();
    let tolerated = tolerated
        .map(|it| format!("{} {}", it.leniency, it.place))
        .collect();
    (serde_json::to_value(&reading.value).unwrap(), tolerated)
}

#[test]
fn null_members_are_absent() {
    let (value, tolerated) = reading::<InitializeResult>(
        r#"{"protocolVersion":"2025-06-18","capabilities":null,"serverInfo":{"name":"a","version":"1","icons":null},"instructions":null}"#,
    );
    assert_eq!(
        value,
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}})
    );
    assert_eq!(
        tolerated,
        ["null-member /capabilities", "null-member /serverInfo/icons"]
    );
}

#[test]
fn empty_arrays_are_empty_objects() {
    let (value, tolerated) = reading::<InitializeParams>(
        r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":[],"sampling":[]},"clientInfo":[],"_meta":[]}"#,
    );
    assert_eq!(
        value,
        json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {}, "sampling": {}}, "clientInfo": {"name": "", "version": ""}})
    );
    assert_eq!(
        tolerated,
        [
            "empty-array /capabilities/roots",
            "empty-array /capabilities/sampling",
            "empty-array /clientInfo",
            "missing-member /clientInfo/version",
            "missing-member /clientInfo/name",
            "member-left-out /_meta"
        ]
    );
}

#[test]
fn only_the_invalid_entry_is_dropped() {
    let list = r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b"},null,5,
        {"name":"c","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes","destructiveHint":"true"},"icons":["x"],"title":["t"]},
        {"inputSchema":{"type":"object"}}],"nextCursor":5}"#;
    let (value, tolerated) = reading::<ListToolsResult>(list);
    assert_eq!(
        value,
        json!({"tools": [
            {"name": "a", "inputSchema": {"type": "object"}},
            {"name": "c", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}},
        ], "nextCursor": "5"})
    );
    assert_eq!(
        tolerated,
        [
            "entry-left-out /tools/1",
            "entry-left-out /tools/2",
            "entry-left-out /tools/3",
            "other-type /tools/4/annotations/destructiveHint",
            "entry-left-out /tools/4/icons/0",
            "member-left-out /tools/4/annotations/readOnlyHint",
            "member-left-out /tools/4/title",
            "entry-left-out /tools/5",
            "other-type /nextCursor"
        ]
    );
}

#[test]
fn non_object_schemas_are_dropped() {
    let odd = ["null", "true", "5", "\"{}\"", "[1]"];
    for schema in odd {
        let required = format!(r#"{{"tools":[{{"name":"a","inputSchema":{schema}}}]}}"#);
        assert!(serde_json::from_str::<ListToolsResult>(&required).is_err());
        let (value, tolerated) = reading::<ListToolsResult>(&required);
        assert_eq!(value, json!({"tools": []}), "{schema}");
        assert_eq!(tolerated, ["entry-left-out /tools/0"], "{schema}");
    }
    for schema in &odd[1..] {
        let optional =
            format!(r#"{{"tools":[{{"name":"a","inputSchema":{{}},"outputSchema":{schema}}}]}}"#);
        assert!(serde_json::from_str::<ListToolsResult>(&optional).is_err());
        let (value, tolerated) = reading::<ListToolsResult>(&optional);
        let kept = json!({"tools": [{"name": "a", "inputSchema": {}}]});
        assert_eq!(value, kept, "{schema}");
        assert_eq!(tolerated, ["member-left-out /tools/0/outputSchema"]);
    }
    let (value, tolerated) = reading::<ListToolsResult>(
        r#"{"tools":[{"name":"a","inputSchema":[],"outputSchema":[ ]}]}"#,
    );
    assert_eq!(
        value,
        json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}]})
    );
    assert_eq!(
        tolerated,
        [
            "empty-array /tools/0/inputSchema",
            "empty-array /tools/0/outputSchema"
        ]
    );
}

#[test]
fn unexpected_content_is_preserved() {
    let result = r#"{"content":["bare",{"text":"untyped"},{"type":"image","data":"AQI","mimeType":"image/png"},
        {"type":"image","data":"data:image/png;base64,AQ ID","mimeType":"image/png"},{"type":"image","data":"-_-_","mimeType":"i/p"},
        {"type":"audio","data":"!","mimeType":"a/b"},{"type":"image","data":"AQID"},{"type":"text","text":5},
        {"type":"text","text":"x","annotations":{"audience":["robot","user"],"priority":"1"}},{"type":null}],"isError":"true"}"#;
    let reading = read::<CallToolResult>(result).unwrap();
    let kinds: Vec<_> = reading
        .value
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => format!("{:?}", &*image.data),
            ContentBlock::Unknown(object) => Value::from(object.clone()).to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "bare",
            "untyped",
            "[1, 2]",
            "[1, 2, 3]",
            "[251, 255, 191]",
            r#"{"data":"!","mimeType":"a/b","type":"audio"}"#,
            r#"{"data":"AQID","type":"image"}"#,
            "5",
            "x",
            r#"{"type":null}"#,
        ]
    );
    assert!(reading.value.is_error);
}

#[test]
fn one_item_is_a_list() {
    let text = r#"{"content":{"type":"text","text":"a"}}"#;
    assert_eq!(read::<CallToolResult>(text).unwrap().value.to_text(), "a");
    let text = r#"{"content":"a","structuredContent":{"n":1.50}}"#;
    let result = read::<CallToolResult>(text).unwrap().value;
    assert_eq!(result.to_text(), "a");
    assert_eq!(result.structured_content.unwrap().get(), r#"{"n":1.50}"#);
    let text = r#"{"messages":[{"role":"User","content":[{"type":"text","text":"a"}]},{"role":"user","content":"b"},{"role":"system","content":"c"}]}"#;
    let messages = read::<GetPromptResult>(text).unwrap().value.messages;
    let texts: Vec<_> = messages
        .iter()
        .filter_map(|it| it.content.as_text())
        .collect();
    assert_eq!(texts, ["a", "b"]);
    let text = r#"{"contents":{"uri":"a:b","blob":"AQI"}}"#;
    assert_eq!(
        read::<ReadResourceResult>(text)
            .unwrap()
            .value
            .contents
            .len(),
        1
    );
}

#[test]
fn numbers_and_names_are_read_as_meant() {
    let text = r#"{"messages":[{"role":"user","content":"x"}],"maxTokens":100.0,"temperature":"0.5","stopSequences":null,"modelPreferences":[]}"#;
    let params = read::<CreateMessageParams>(text).unwrap().value;
    assert_eq!((params.max_tokens, params.temperature), (100, Some(0.5)));
    for (level, expected) in [
        ("warn", LoggingLevel::Warning),
        ("INFO", LoggingLevel::Info),
    ] {
        let text = json!({"level": level}).to_string();
        assert_eq!(read::<SetLevelParams>(&text).unwrap().value.level, expected);
    }
    assert!(read::<SetLevelParams>(r#"{"level":"loud"}"#).is_err());
}

#[test]
fn lone_surrogates_become_replacement_characters() {
    let text = r#"{"content":[{"type":"text","text":"a\ud83d \ud83d\ude00 \udc00\\ud83d"}],"structuredContent":{"a":"\ud83d"}}"#;
    let result = read::<CallToolResult>(text).unwrap().value;
    assert_eq!(result.to_text(), "a\u{fffd} 😀 \u{fffd}\\ud83d");
    assert_eq!(
        result.structured_content.unwrap().get(),
        r#"{"a":"\ufffd"}"#
    );
}

#[test]
fn required_values_are_never_invented() {
    assert!(read::<InitializeResult>(r#"{"capabilities":{}}"#).is_err());
    assert!(read::<crate::types::CallToolParams>(r#"{"name":null}"#).is_err());
    assert!(read::<crate::types::ReadResourceParams>(r#"{"uri":{}}"#).is_err());
}

#[test]
fn duplicate_names_are_refused() {
    let text = r#"{"content":[{"type":"text","text":"a","text":"b"}],"isError":null}"#;
    assert!(read::<CallToolResult>(text).is_err());
    assert!(read::<CallToolResult>(r#"{"content":[],"content":[],"isError":null}"#).is_err());
    // A member that is left out, a tag, and a member of a block that is kept as it came are not seen by the type.
    for text in [
        r#"{"content":[],"_meta":"odd","_meta":{}}"#,
        r#"{"content":[{"type":"text","type":"image","text":"a"}],"isError":null}"#,
        r#"{"content":[{"type":[],"type":"text","text":"a"}]}"#,
        r#"{"content":[{"type":"image","data":"!","data":"AQID","mimeType":"image/png"}]}"#,
    ] {
        assert!(read::<CallToolResult>(text).is_err(), "{text}");
    }
}

#[test]
fn unknown_tag_is_omitted() {
    let text = r#"{"mode":[],"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
    let read = read::<ElicitParams>(text).unwrap();
    assert!(matches!(read.value, ElicitParams::Form(_)));
    let [left_out] = &*read.tolerated else {
        panic!("{:?}", read.tolerated)
    };
    assert_eq!(
        left_out.to_string(),
        "member-left-out at `/mode`: expected a string, got an array"
    );
}

#[test]
fn fields_of_forms_keep_their_kind() {
    let form = r#"{"message":"m","requestedSchema":{"type":"object","properties":{
        "a":{"type":"string","enum":null,"oneOf":null,"items":null,"title":null,"minLength":"5","maxLength":null,"format":null},
        "b":{"type":"integer","minimum":"1","maximum":null,"default":null,"title":[1,2]},
        "c":{"type":"boolean","default":"true","description":null},
        "d":{"type":"string","enum":["5"],"enumNames":null,"default":5},
        "e":{"enum":["x"]},
        "f":{"type":"array","items":{"type":"string","enum":["x"],"anyOf":null},"minItems":1.0,"default":null},
        "g":{"type":"string","pattern":{}},
        "h":{"type":"tea","kind":null},
        "i":{"type":"string","enum":["x"],"default":["x"]},
        "j":{"type":"array","items":{"type":"string","enum":["x"]},"default":"x"}
    },"required":null}}"#;
    let read = read::<ElicitParams>(form).unwrap();
    let ElicitParams::Form(form) = read.value else {
        panic!("{:?}", read.value)
    };
    assert_eq!(
        serde_json::to_value(&form.requested_schema.properties).unwrap(),
        json!({
            "a": {"type": "string", "minLength": 5},
            "b": {"type": "integer", "minimum": 1},
            "c": {"type": "boolean", "default": true},
            "d": {"type": "string", "enum": ["5"], "default": "5"},
            "e": {"type": "string", "enum": ["x"]},
            "f": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "minItems": 1},
            "g": {"type": "string"},
            "h": {"type": "tea", "kind": null},
            "i": {"type": "string", "enum": ["x"]},
            "j": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "default": ["x"]},
        })
    );
    let tolerated: Vec<_> = read.tolerated.iter().map(ToString::to_string).collect();
    let place = "/requestedSchema/properties";
    for expected in [
        format!("other-type at `{place}/a/minLength`"),
        format!("missing-member at `{place}/e/type`"),
        format!("other-type at `{place}/d/default`"),
        format!("member-left-out at `{place}/g/pattern`"),
        format!("member-left-out at `{place}/i/default`"),
        format!("single-item at `{place}/j/default`"),
    ] {
        let is_listed = tolerated.iter().any(|it| it.starts_with(&expected));
        assert!(is_listed, "{expected}: {tolerated:?}");
    }
    // Strictly, a field of a known type is refused, and one of an unknown type kept.
    for (field, is_read) in [
        (r#"{"type":"string","minLength":"5"}"#, false),
        (r#"{"type":"string","enum":["x"],"default":5}"#, false),
        (r#"{"type":"string","enum":["x"],"default":["x"]}"#, false),
        (r#"{"type":"tea","minLength":"5"}"#, true),
    ] {
        let read = serde_json::from_str::<PrimitiveSchema>(field);
        assert_eq!(read.is_ok(), is_read, "{field}: {read:?}");
    }
}

#[test]
fn known_tags_name_their_variant() {
    for params in [
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{}},"task":5}"#,
        r#"{"task":"x","message":"m","requestedSchema":{"type":"object","properties":null},"_meta":[]}"#,
        r#"{"mode":null,"message":5,"requestedSchema":{"type":"object","properties":[]}}"#,
        r#"{"message":"m","requestedSchema":{"properties":{}},"mode":"form","task":[1]}"#,
    ] {
        let read = read::<ElicitParams>(params).unwrap();
        assert!(
            matches!(read.value, ElicitParams::Form(_)),
            "{params}: {read:?}"
        );
    }
    let url = r#"{"message":"m","url":"https://a.example","mode":"url","elicitationId":{}}"#;
    let read_url = read::<ElicitParams>(url).unwrap().value;
    assert!(matches!(read_url, ElicitParams::Url(_)), "{read_url:?}");
    let odd = r#"{"ref":{"name":"n","title":{},"type":"ref/prompt"},"argument":{"name":"a","value":"v"}}"#;
    let params = read::<CompleteParams>(odd).unwrap().value;
    assert_eq!(params.reference.prompt_name(), Some("n"));
    // The variant lacks what it needs.
    for odd in [
        r#"{"ref":{"type":"ref/prompt","title":null},"argument":{"name":"a","value":"v"}}"#,
        r#"{"ref":{"type":"ref/prompt","name":{}},"argument":{"name":"a","value":"v"}}"#,
        r#"{"ref":{"type":"ref/resource","uri":[1,2]},"argument":{"name":"a","value":"v"}}"#,
    ] {
        assert!(read::<CompleteParams>(odd).is_err(), "{odd}");
    }
    for odd in [
        r#"{"mode":"url","message":"m","task":null}"#,
        r#"{"mode":"form","message":"m","task":5}"#,
        r#"{"message":"m","requestedSchema":5}"#,
    ] {
        assert!(read::<ElicitParams>(odd).is_err(), "{odd}");
    }
}

#[test]
fn input_requests_are_read_by_their_method() {
    let asked = r#"{"inputRequests":{
        "a":{"params":{"message":"m","requestedSchema":{"type":"object","properties":{}},"task":5},"method":"elicitation/create"},
        "b":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":"x"}],"maxTokens":5.0}},
        "c":{"method":"roots/list","params":null}
    },"requestState":null}"#;
    let read = read::<InputRequiredResult>(asked).unwrap();
    let requests = read.value.input_requests.unwrap();
    let methods: Vec<_> = requests
        .iter()
        .map(|(key, it)| (key, it.method()))
        .collect();
    assert_eq!(
        methods,
        [
            ("a", "elicitation/create"),
            ("b", "sampling/createMessage"),
            ("c", "roots/list")
        ]
    );
    let first = requests.get("a").unwrap();
    assert!(
        matches!(first, InputRequest::Elicit(ElicitParams::Form(_))),
        "{first:?}"
    );
}

#[test]
fn hostile_lists_are_read_with_bounded_work() {
    // Each entry fails, and each has a list whose entries fail: without a budget this would be thousands of readings.
    let icon = r#"{"src":5,"mimeType":{},"sizes":{},"theme":{}}"#;
    let icons = vec![icon; 500].join(",");
    let tool = format!(
        r#"{{"name":"a","title":{{}},"description":[1,2],"inputSchema":{{}},"icons":[{icons}],"annotations":5}}"#
    );
    let text = format!(r#"{{"tools":[{}]}}"#, vec![tool; 20].join(","));
    let reading = read::<ListToolsResult>(&text).unwrap();
    assert!(reading.tolerated.len() <= 16);
    let prompts = format!(r#"{{"prompts":[{}]}}"#, vec!["{}"; 20_000].join(","));
    assert_eq!(
        read::<ListPromptsResult>(&prompts)
            .unwrap()
            .value
            .prompts
            .len(),
        0
    );
    let deep = format!(
        r#"{{"resources":[{{"uri":"a:b","name":"n","_meta":{}{}}}]}}"#,
        "[".repeat(100),
        "]".repeat(100)
    );
    assert_eq!(
        read::<ListResourcesResult>(&deep)
            .unwrap()
            .value
            .resources
            .len(),
        1
    );
}

#[test]
fn malformed_envelopes_are_repaired() {
    let mended = |message: &str| {
        let (message, tolerated) = mend_message(message.as_bytes())?;
        let names = tolerated.iter().map(|it| it.leniency.name());
        Some((
            String::from_utf8(message).unwrap(),
            names.collect::<Vec<_>>().join(" "),
        ))
    };
    let table = [
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "envelope-member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":null,"params":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "envelope-member",
        ),
        (
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "jsonrpc-version",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2.0,"method":"ping","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"ping","params":{}}"#,
            "text-id empty-array",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"notifications/n"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/n"}"#,
            "envelope-member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":"broken"}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"broken"}}"#,
            "error-object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":5,"data":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"the peer reported {\"code\":5,\"data\":{}}","data":{}}}"#,
            "error-object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[],"a":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#,
            "empty-array",
        ),
    ];
    for (message, expected, names) in table {
        assert_eq!(
            mended(message),
            Some((expected.to_owned(), names.to_owned())),
            "{message}"
        );
    }
    for message in [
        "",
        "[]",
        "{}",
        "nonsense",
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"3.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
        r#"{"JsonRpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":[],"method":"m","params":[]}"#,
        r#"{"id":null,"result":{}}"#,
        r#"{"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[],"_meta":{}}}"#,
    ] {
        assert_eq!(mended(message), None, "{message}");
    }
}

#[test]
fn losses_are_reported_before_other_deviations() {
    let odd = r#"{"name":"a","inputSchema":{},"icons":null}"#;
    let tools = [&*vec![odd; 30].join(","), "{}", "null"].join(",");
    let reading = read::<ListToolsResult>(&format!(r#"{{"tools":[{tools}]}}"#)).unwrap();
    assert_eq!(reading.value.tools.len(), 30);
    assert_eq!(reading.tolerated.len(), 16);
    let losses = reading
        .tolerated
        .iter()
        .filter(|it| it.leniency.leaves_out());
    let losses: Vec<_> = losses.map(ToString::to_string).collect();
    assert_eq!(
        losses,
        [
            "entry-left-out at `/tools/30`: missing field `name`",
            "entry-left-out at `/tools/31`: the entry is null"
        ]
    );
    assert_eq!(reading.tolerated[0].leniency, Leniency::NullMember);
}

#[test]
fn leniencies_have_distinct_names() {
    let mut names: Vec<_> = Leniency::ALL.iter().map(|it| it.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Leniency::ALL.len());
}
