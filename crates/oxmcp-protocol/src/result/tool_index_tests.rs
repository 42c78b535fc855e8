//! Tests of the index: results read by it equal the results read by serde.

use proptest::{collection, prelude::*, sample};

use crate::{
    result::tool_index::LARGEST_WASTE,
    types::{content::ContentBlock, tools::CallToolResult},
};

/// A JSON value of each kind, and pieces of tool results.
fn a_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        sample::select(vec![
            "null",
            "true",
            "false",
            "1",
            "[]",
            "{}",
            r#""text""#,
            r#""complete""#,
            r#""a\u0041""#,
            r#""\ud800""#
        ])
        .prop_map(str::to_owned),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let members = (a_key(), inner.clone()).prop_map(|(key, value)| format!("{key}:{value}"));
        let text = inner
            .clone()
            .prop_map(|text| format!(r#"{{"type":"text","text":{text}}}"#));
        prop_oneof![
            collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(" ,"))),
            collection::vec(members, 0..3).prop_map(|it| format!("{{{}}}", it.join(", "))),
            collection::vec(text, 0..3).prop_map(|items| format!("[{}]", items.join(","))),
        ]
    })
}

fn a_key() -> impl Strategy<Value = &'static str> {
    sample::select(vec![
        r#""content""#,
        r#""type""#,
        r#""text""#,
        r#""isError""#,
        r#""structuredContent""#,
        r#""_meta""#,
        r#""annotations""#,
        r#""resultType""#,
        r#""conten\u0074""#,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn plain_results_are_read_as_they_are_deserialized(
        members in collection::vec((a_key(), a_value()), 0..4),
        // Without white space, as nearly all servers write it, and with white space, as some do.
        colon in sample::select(vec![":", " : "]),
    ) {
        let members: Vec<_> = members.iter().map(|(key, value)| format!("{key}{colon}{value}")).collect();
        let json = format!("{{{}}}", members.join(","));
        if let Some(read) = CallToolResult::read_plain(&mut json.as_str().into()) {
            let expected: CallToolResult = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(
                serde_json::to_string(&read).unwrap(),
                serde_json::to_string(&expected).unwrap()
            );
        }
    }
}

#[test]
fn long_text_needs_no_excess_memory() {
    let read = |structured: &str| {
        let text = "0123456789".repeat(100);
        let json = format!(
            r#"{{"structuredContent":"{structured}","content":[{{"type":"text","text":"{text}"}}]}}"#
        );
        let mut read = CallToolResult::read_plain(&mut json.into()).unwrap();
        assert_eq!(read.as_text(), Some(&*text));
        let Some(ContentBlock::Text(text)) = read.content.pop() else {
            panic!("it is text");
        };
        text.text.capacity()
    };
    assert!(read("short") <= 1000 + LARGEST_WASTE);
    assert!(read(&"long".repeat(100)) <= 1000 + LARGEST_WASTE);
}

#[test]
fn common_results_are_plain() {
    for json in [
        r#"{"content":[{"type":"text","text":"4"}]}"#,
        r#"{"resultType":"complete","content":[{"text":"a\nb","type":"text"}],"isError":true}"#,
        r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{},"isError":false}"#,
        r#"{"content":[]}"#,
        r#"{"content":[{"type":"text","text":"a"},{"text":"b\u0063","type":"text"}]}"#,
        r#"{"_meta":{"a":[1]},"content":[{"type":"text","text":"\u00e9"} ]}"#,
    ] {
        let read = CallToolResult::read_plain(&mut json.into()).unwrap();
        let expected: CallToolResult = serde_json::from_str(json).unwrap();
        assert_eq!(format!("{read:?}"), format!("{expected:?}"));
    }
    for json in [
        r#"{"content":[{"type":"image","text":"4"}]}"#,
        r#"{"content":[{"type":"text","text":"4","_meta":{}}]}"#,
        r#"{"content":[],"content":[]}"#,
        r#"{"content":[],"_meta":[]}"#,
        r#"{"content":[],"_meta":{},"_meta":{}}"#,
        r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
        r#"{"content":[],"resultType":"task"}"#,
        r#"{"content":null}"#,
    ] {
        assert!(CallToolResult::read_plain(&mut json.into()).is_none());
    }
}
