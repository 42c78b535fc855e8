//! Tests of headers: values, annotations, and a server's check of a client's headers.

use oxmcp_json::Text;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::http_headers::value::HeaderValueError;

fn headers(schema: &Value) -> Result<ParamHeaders, String> {
    ParamHeaders::of(Text::checked(&schema.to_string()), 1 << 20)
}

/// A tool whose argument `a` has the header `Mcp-Param-A`.
fn one(kind: &str) -> ParamHeaders {
    headers(&json!({"type": "object", "properties": {"a": {"type": kind, "x-mcp-header": "A"}}}))
        .unwrap()
}

/// The header that a client sends, if any.
fn sent(tool: &ParamHeaders, arguments: &str) -> Result<Option<String>, Mismatch> {
    let mut sent = tool.for_arguments(Text::checked(arguments))?;
    assert!(sent.len() <= 1);
    Ok(sent.pop().map(|(name, value)| {
        assert_eq!(name, "mcp-param-a");
        value
    }))
}

fn accepts(tool: &ParamHeaders, arguments: &str, header: Option<&str>) -> bool {
    let given = header.map_or(ReceivedHeader::Nothing, |value| {
        ReceivedHeader::Value(value.as_bytes())
    });
    let found = tool.check(Text::checked(arguments), |name| {
        assert_eq!(name, "mcp-param-a");
        given
    });
    found.is_ok()
}

#[test]
fn examples_of_the_specification_are_encoded() {
    let table = [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ];
    for (text, value) in table {
        assert_eq!(encode(text), value);
        assert_eq!(decode(value.as_bytes()).unwrap(), text);
    }
}

#[test]
fn only_header_safe_values_are_sent_unencoded() {
    for text in [
        "",
        "a b",
        "=?base64?SGVsbG8=",
        "SGVsbG8=",
        "=?BASE64?SGVsbG8=?=",
        "file:///a%20b",
    ] {
        assert_eq!(encode(text), text);
    }
    for text in ["a\tb", "\0", "é", "\u{7f}", "=?base64??=", "=?base64?="] {
        let value = encode(text);
        assert!(value.starts_with("=?base64?") && value.len() > text.len());
    }
}

#[test]
fn badly_encoded_values_decode_to_nothing() {
    let table: &[(&[u8], HeaderValueError)] = &[
        (b"=?base64?SGVsbG8?=", HeaderValueError::Base64),
        (b"=?base64?SGVs!!!bG8=?=", HeaderValueError::Base64),
        (b"=?base64?SGVsbG9=?=", HeaderValueError::Base64),
        (b"=?base64?SGVs bG8=?=", HeaderValueError::Base64),
        (b"=?base64?_-8=?=", HeaderValueError::Base64),
        (b"=?base64?/w==?=", HeaderValueError::Utf8),
        ("é".as_bytes(), HeaderValueError::Characters),
        (b"a\rb", HeaderValueError::Characters),
        (b"a\0b", HeaderValueError::Characters),
    ];
    for (value, why) in table {
        assert_eq!(decode(value), Err(*why), "{value:?}");
    }
    assert_eq!(decode(b"  tool\t").unwrap(), "tool");
    assert_eq!(decode(b"=?base64?=").unwrap(), "=?base64?=");
    assert_eq!(decode(b"=?base64??=").unwrap(), "");
}

proptest! {
    // Attack: header injection.
    #[test]
    fn any_text_round_trips_as_a_legal_header(
        text in prop_oneof![
            "(?s).{0,60}",
            "[ -~]{0,60}",
            "[ \t]{0,2}[a-z]{0,9}[ \t\r\n]{0,2}",
            "=\\?base64\\?[A-Za-z0-9=]{0,8}\\?=",
            "[a-z\r\n]{3000}",
        ],
    ) {
        let value = encode(&text);
        prop_assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{value:?}");
        prop_assert_eq!(value.trim(), &*value, "nothing is cut off on the way");
        prop_assert_eq!(decode(value.as_bytes()).unwrap(), text.as_str());
    }

    // Attack: header injection.
    #[test]
    fn reader_accepts_any_bytes_without_failing(value in prop::collection::vec(any::<u8>(), 0..40)) {
        let wrapped = [b"=?base64?", &value[..], b"?="].concat();
        for value in [value, wrapped] {
            if let Ok(text) = decode(&value) {
                let again = encode(&text);
                prop_assert_eq!(decode(again.as_bytes()).unwrap(), &*text);
            }
        }
    }

    #[test]
    fn server_accepts_the_headers_clients_send(
        value in prop_oneof![
            any::<String>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            (-(1_i64 << 53) + 1..1 << 53).prop_map(Value::from),
            any::<f64>().prop_filter("too large to be sure", |it| it.abs() < 1e15).prop_map(Value::from),
            Just(Value::Null),
        ],
    ) {
        let arguments = json!({"a": value, "b": 1}).to_string();
        let tool = one("string");
        let header = sent(&tool, &arguments).unwrap();
        prop_assert!(accepts(&tool, &arguments, header.as_deref()));
        prop_assert_eq!(header.is_none(), value.is_null());
        if header.is_some() {
            prop_assert!(!accepts(&tool, &arguments, None));
            prop_assert!(!accepts(&tool, &arguments, Some("something else")));
        }
    }
}

#[test]
fn values_are_compared_with_headers() {
    let table: &[(&str, Option<&str>, bool)] = &[
        (r#"{"a":"Hello"}"#, Some("Hello"), true),
        (r#"{"a":"Hello"}"#, Some(" Hello\t"), true),
        (r#"{"a":"Hello"}"#, Some("hello"), false),
        (r#"{"a":"Hello"}"#, Some("=?base64?SGVsbG8=?="), true),
        (r#"{"a":"Hello"}"#, Some("=?base64?SGVsbG8?="), false),
        (r#"{"a":"Hello"}"#, Some("=?base64?SGVs!!!bG8=?="), false),
        (r#"{"a":"SGVsbG8="}"#, Some("SGVsbG8="), true),
        (
            r#"{"a":"=?base64?SGVsbG8="}"#,
            Some("=?base64?SGVsbG8="),
            true,
        ),
        (r#"{"a":"Hello"}"#, None, false),
        (r#"{"a":""}"#, Some(""), true),
        (r#"{"a":""}"#, None, false),
        (r#"{"a":null}"#, None, true),
        (r#"{"a":null}"#, Some("null"), false),
        ("{}", None, true),
        ("{}", Some("x"), false),
        (r#"{"a":42}"#, Some("42"), true),
        (r#"{"a":42}"#, Some("42.0"), true),
        (r#"{"a":42.0}"#, Some("42"), true),
        (r#"{"a":4.2e1}"#, Some("420E-1"), true),
        (r#"{"a":42}"#, Some("43"), false),
        (r#"{"a":42}"#, Some("042"), false),
        (r#"{"a":42}"#, Some("+42"), false),
        (r#"{"a":42}"#, Some("=?base64?NDI=?="), true),
        (r#"{"a":-7}"#, Some("-7"), true),
        (r#"{"a":-0}"#, Some("0"), true),
        (r#"{"a":9007199254740991}"#, Some("9007199254740991"), true),
        (r#"{"a":9007199254740992}"#, Some("9007199254740992"), false),
        (
            r#"{"a":9007199254740991}"#,
            Some("9007199254740991.2"),
            false,
        ),
        (r#"{"a":1e999999999999}"#, Some("1e999999999999"), false),
        (r#"{"a":1.5}"#, Some("1.5"), true),
        (r#"{"a":true}"#, Some("true"), true),
        (r#"{"a":true}"#, Some("True"), false),
        (r#"{"a":"42"}"#, Some("42.0"), false),
        // An argument that no header can repeat is refused by the validation of the arguments.
        (r#"{"a":{}}"#, None, true),
        (r#"{"a":[1]}"#, Some("1"), false),
        // Ambiguous arguments.
        (r#"{"a":"x","a":"y"}"#, Some("x"), false),
        (r#"{"a":"x","\u0061":"y"}"#, Some("y"), false),
    ];
    for (arguments, header, fits) in table {
        assert_eq!(
            accepts(&one("string"), arguments, *header),
            *fits,
            "{arguments} and {header:?}"
        );
    }
}

#[test]
fn duplicate_header_is_refused() {
    let found = one("string").check(Text::checked(r#"{"a":"x"}"#), |_| ReceivedHeader::Several);
    let message = found.unwrap_err().to_string();
    assert!(
        message.contains("mcp-param-a") && message.contains("/a"),
        "{message}"
    );
}

#[test]
fn clients_never_send_ambiguous_integers() {
    assert_eq!(
        sent(&one("integer"), r#"{"a":4.20e1}"#),
        Ok(Some("42".to_owned()))
    );
    let error = sent(&one("integer"), r#"{"a":9007199254740993}"#).unwrap_err();
    assert!(error.to_string().contains("2^53"), "{error}");
}

#[test]
fn properties_of_properties_have_headers() {
    let schema = json!({"type": "object", "properties": {
        "to/from": {"type": "object", "properties": {
            "x-mcp-header": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": ["integer", "null"], "x-mcp-header": "N"},
        }},
        "default": {"type": "string", "default": {"x-mcp-header": "no"}, "enum": [{"x-mcp-header": 1}]},
    }});
    let tool = headers(&schema).unwrap();
    let arguments = json!({"to/from": {"x-mcp-header": "eu", "n": 7}}).to_string();
    assert_eq!(
        tool.for_arguments(Text::checked(&arguments)).unwrap(),
        [
            ("mcp-param-n", "7".to_owned()),
            ("mcp-param-region", "eu".to_owned())
        ]
    );
    for arguments in ["{}", r#"{"to/from":"eu"}"#, r#"{"to/from":{}}"#] {
        assert_eq!(tool.for_arguments(Text::checked(arguments)).unwrap(), []);
    }
}

/// Panics if the schema is not refused with this reason at this pointer.
#[track_caller]
fn refused(schema: &Value, reason: &str, pointer: &str) {
    let error = headers(schema).unwrap_err();
    let pointer = format!("at {pointer} of");
    assert!(
        error.contains(reason) && error.contains(&pointer),
        "{schema}: {error}"
    );
}

#[test]
fn error_names_the_invalid_annotation() {
    let names = [
        (json!(""), "empty"),
        (json!("a b"), "' '"),
        (json!("a:b"), "':'"),
        (json!("a\tb"), "'\\t'"),
        (json!("a\r\nX-Evil: 1"), "'\\r'"),
        (json!("Région"), "'é'"),
        (json!(7), "must be a string"),
    ];
    for (name, reason) in names {
        let property = json!({"type": "string", "x-mcp-header": name});
        let schema = json!({"type": "object", "properties": {"a~/b": property}});
        refused(&schema, reason, "/properties/a~0~1b");
    }
    let both =
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A","x\u002dmcp-header":"B"}}}"#;
    let error = ParamHeaders::of(Text::checked(both), 1 << 20).unwrap_err();
    assert!(error.contains("duplicate key"), "{error}");
    let inner = |name: &str| json!({"type": "string", "x-mcp-header": name});
    let same = json!({"properties": {"a": inner("A"), "b": inner("a")}});
    refused(&same, "duplicate header", "/properties/b");
}

#[test]
fn only_scalars_have_headers() {
    let types = [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(["string", "number"]),
        json!(["string", "integer"]),
        json!(["null"]),
        Value::Null,
    ];
    for kind in types {
        let property = json!({"type": kind, "x-mcp-header": "A"});
        let schema = json!({"properties": {"a": property}});
        refused(&schema, "string, integer or boolean", "/properties/a");
    }
    refused(
        &json!({"properties": {"a": {"x-mcp-header": "A"}}}),
        "string, integer or boolean",
        "/properties/a",
    );
}

#[test]
fn only_properties_reachable_by_name_have_headers() {
    let inner = json!({"type": "string", "x-mcp-header": "A"});
    let object = json!({"properties": {"a": inner}});
    let table = [
        (inner.clone(), "/"),
        (
            json!({"properties": {"a": {"items": inner}}}),
            "/properties/a/items",
        ),
        (json!({"items": [inner]}), "/items/0"),
        (json!({"prefixItems": [true, inner]}), "/prefixItems/1"),
        (json!({"oneOf": [object]}), "/oneOf/0/properties/a"),
        (json!({"anyOf": [object]}), "/anyOf/0/properties/a"),
        (json!({"allOf": [object]}), "/allOf/0/properties/a"),
        (json!({"if": object}), "/if/properties/a"),
        (json!({"then": object}), "/then/properties/a"),
        (json!({"else": object}), "/else/properties/a"),
        (json!({"not": inner}), "/not"),
        (json!({"$defs": {"a": inner}}), "/$defs/a"),
        (
            json!({"additionalProperties": inner}),
            "/additionalProperties",
        ),
        (
            json!({"patternProperties": {"a": inner}}),
            "/patternProperties/a",
        ),
    ];
    for (schema, pointer) in table {
        refused(&schema, "reached through `properties`", pointer);
    }
}

/// Each annotation keeps a copy of all names of its path: the total could grow with the square of
/// the schema's size.
#[test]
fn annotation_size_is_checked_before_copying() {
    let deep = "n".repeat(1 << 16);
    let inner = |index: usize| {
        (
            format!("p{index}"),
            json!({"type": "string", "x-mcp-header": format!("H{index}")}),
        )
    };
    let many: Value = (0..5_000).map(inner).collect();
    let schema = json!({"properties": {deep: {"properties": many}}});
    let error = headers(&schema).unwrap_err();
    assert!(error.contains("its mirrored headers exceed"), "{error}");
    // Empty names take memory, too.
    let mut way = json!({"properties": many});
    for _ in 0..40 {
        way = json!({"properties": {"": way}});
    }
    let error = headers(&way).unwrap_err();
    assert!(error.contains("its mirrored headers exceed"), "{error}");
}

/// A quadratic search would be noticeably slow.
#[test]
fn many_annotations_are_collected_in_linear_time() {
    let inner = |index: usize| {
        let name = format!("{:x<9}{index:06}", "");
        (
            name.clone(),
            json!({"type": "string", "x-mcp-header": name}),
        )
    };
    let many: Value = (0..200_000).map(inner).collect();
    let text = json!({"properties": many}).to_string();
    let found = ParamHeaders::of(Text::checked(&text), usize::MAX).unwrap();
    assert_eq!(found.0.len(), 200_000);
}

#[test]
fn annotation_error_is_short() {
    let schema = json!({"properties": {"n".repeat(10_000): {"type": "null", "x-mcp-header": "A"}}});
    let error = headers(&schema).unwrap_err();
    assert!(error.len() < 500, "{error}");
}
