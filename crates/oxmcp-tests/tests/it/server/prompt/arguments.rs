//! Arguments of prompts: strings on the wire, typed in the handler, with required and invalid ones.

use std::{collections::HashMap, net::IpAddr};

use oxmcp::{JsonSchema, Prompt, Revision, Server, testing};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::answer;

#[derive(Debug, Default, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(default)]
struct Everything {
    text: String,
    maybe_text: Option<String>,
    letter: Option<char>,
    small: u8,
    #[schemars(range(max = 100))]
    integer: Option<i64>,
    huge: Option<u64>,
    number: Option<f64>,
    flag: Option<bool>,
    choice: Option<Choice>,
    newtype: Option<Newtype>,
    either: Option<Either>,
    address: Option<IpAddr>,
    anything: Option<Value>,
}

#[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    /// the one
    FirstOne,
    Second,
}

#[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
struct Newtype(u16);

#[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Count(u32),
    Name(String),
}

fn server() -> Server {
    let handler = |everything: Everything| async move { format!("{everything:?}") };
    Server::new("everything", "1.0.0").prompt(Prompt::new("p", "", handler))
}

/// The text of the prompt, or the error message.
pub(crate) async fn read(server: &Server, arguments: Value) -> Result<String, String> {
    let params = json!({"name": "p", "arguments": arguments});
    let answer = answer(server, Revision::LATEST, "prompts/get", params).await;
    if let Some(text) = answer.pointer("/result/messages/0/content/text") {
        return Ok(text.as_str().unwrap().to_owned());
    }
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    Err(answer["error"]["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn strings_are_parsed_as_the_field_types() {
    let mut expected = Everything {
        text: " as it is ".to_owned(),
        maybe_text: Some(String::new()),
        letter: Some('ß'),
        small: 255,
        integer: Some(-7),
        huge: Some(u64::MAX),
        number: Some(0.5),
        flag: Some(true),
        choice: Some(Choice::FirstOne),
        newtype: Some(Newtype(9)),
        either: Some(Either::Count(5)),
        address: Some("::1".parse().unwrap()),
        anything: Some(json!("7")),
    };
    let arguments = json!({
        "text": " as it is ", "maybe_text": "", "letter": "ß", "small": "255", "integer": " -7 ",
        "huge": "18446744073709551615", "number": "5e-1", "flag": "True", "choice": "first-one", "newtype": "9",
        "either": "5", "address": "::1", "anything": "7", "unknown": "ignored",
    });
    assert_eq!(
        read(&server(), arguments).await.unwrap(),
        format!("{expected:?}")
    );

    // Forms send an empty string for an empty field, and a string may look like a number.
    expected = Everything {
        maybe_text: Some(String::new()),
        either: Some(Either::Name("007".to_owned())),
        ..Everything::default()
    };
    let arguments = json!({
        "text": "", "maybe_text": "", "integer": "", "number": " ", "flag": "", "choice": "", "newtype": "",
        "small": "", "either": "007",
    });
    assert_eq!(
        read(&server(), arguments).await.unwrap(),
        format!("{expected:?}")
    );
}

#[tokio::test]
async fn invalid_arguments_are_reported_with_expected_type() {
    let cases = [
        ("small", "300", "300 is too large; expected at most 255"),
        ("small", "-1", "-1 is too small; expected at least 0"),
        (
            "small",
            "1.5",
            "expected an integer from 0 to 255, got the string \"1.5\"",
        ),
        (
            "integer",
            "many",
            "expected an integer of at most 100, got the string \"many\"",
        ),
        ("integer", "101", "101 is too large; expected at most 100"),
        ("number", "NaN", "expected a number, got the string \"NaN\""),
        (
            "flag",
            "yes",
            "expected true or false, got the string \"yes\"",
        ),
        (
            "choice",
            "third",
            "\"third\" is not accepted; expected one of \"second\", \"first-one\"",
        ),
        (
            "letter",
            "no",
            "\"no\" is too long (length 2); expected at most 1",
        ),
        (
            "address",
            "nowhere",
            "\"nowhere\" is not an IP address; expected a value such as 192.0.2.1 or 2001:db8::1",
        ),
        ("text", "", ""),
    ];
    for (name, given, what) in cases {
        let arguments = json!({"maybe_text": "x", (name): given, "other": "y"});
        let told = read(&server(), arguments).await;
        let expected = format!("The arguments of p are not valid.\n\"{name}\": {what}");
        match told {
            Err(told) => assert_eq!(told, expected),
            Ok(_) => assert!(what.is_empty(), "{name} {given} was accepted"),
        }
    }
    let several = read(&server(), json!({"small": "x", "flag": "y"}))
        .await
        .unwrap_err();
    assert_eq!(several.lines().count(), 3, "{several}");
}

#[derive(serde::Deserialize, JsonSchema)]
struct Ends {
    from: u32,
    to: u32,
}

/// A struct that checks more than each of its fields.
#[derive(serde::Deserialize, JsonSchema)]
#[serde(try_from = "Ends")]
struct Range {
    from: u32,
    to: u32,
}

impl TryFrom<Ends> for Range {
    type Error = &'static str;

    fn try_from(Ends { from, to }: Ends) -> Result<Self, Self::Error> {
        let range = Self { from, to };
        (from <= to)
            .then_some(range)
            .ok_or("the range ends before it begins")
    }
}

#[tokio::test]
async fn joint_argument_problem_names_no_single_argument() {
    let handler = |range: Range| async move { format!("{}-{}", range.from, range.to) };
    let server = Server::new("s", "1.0.0").prompt(Prompt::new("p", "", handler));
    assert_eq!(
        read(&server, json!({"from": "1", "to": "2"}))
            .await
            .unwrap(),
        "1-2"
    );
    let told = read(&server, json!({"from": "2", "to": "1"}))
        .await
        .unwrap_err();
    assert_eq!(
        told,
        "The arguments of p are not valid.\nthe range ends before it begins"
    );
}

#[tokio::test]
async fn type_stricter_than_schema_is_reported_accordingly() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Odd {
        first: String,
        /// Serde insists on fields with a function of their own, whatever their type.
        #[serde(deserialize_with = "serde::Deserialize::deserialize")]
        second: Option<String>,
    }
    let handler = |odd: Odd| async move { odd.first + &odd.second.unwrap_or_default() };
    let server = Server::new("s", "1.0.0").prompt(Prompt::new("p", "", handler));
    let told = read(&server, json!({"first": "x"})).await.unwrap_err();
    assert_eq!(
        told,
        "The arguments of p are not valid.\n\"second\" is missing"
    );
}

#[tokio::test]
async fn unknown_arguments_follow_the_types_policy() {
    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        code: String,
    }
    #[derive(serde::Deserialize, JsonSchema)]
    struct Open {
        code: String,
        #[serde(flatten)]
        rest: HashMap<String, String>,
    }
    let strict = Prompt::new("p", "", |it: Strict| async move { it.code });
    let strict = Server::new("s", "1.0.0").prompt(strict);
    let told = read(&strict, json!({"code": "x", "cod": "y"}))
        .await
        .unwrap_err();
    assert!(told.contains("\"cod\" is not accepted"), "{told}");
    let open = Prompt::new("p", "", |it: Open| async move {
        format!("{} {:?}", it.code, it.rest)
    });
    let open = Server::new("s", "1.0.0").prompt(open);
    let text = read(&open, json!({"code": "x", "n": "7"})).await.unwrap();
    assert_eq!(text, r#"x {"n": "7"}"#);
}

proptest! {
    /// A printed value is read back as the same value, and arbitrary text does no harm.
    #[test]
    fn printed_values_are_read_back(
        text: String, small: u8, integer in i64::MIN..=100, huge: u64, tenths in -1_000_000..1_000_000, flag: bool, odd: String,
    ) {
        let number = f64::from(tenths) / 10.0;
        let expected = Everything {
            text: text.clone(),
            small,
            integer: Some(integer),
            huge: Some(huge),
            number: Some(number),
            flag: Some(flag),
            ..Everything::default()
        };
        let arguments = json!({
            "text": text, "small": small.to_string(), "integer": integer.to_string(), "huge": huge.to_string(),
            "number": number.to_string(), "flag": flag.to_string(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = server();
        let read_back = runtime.block_on(read(&server, arguments)).unwrap();
        prop_assert_eq!(read_back, format!("{expected:?}"));
        for field in ["small", "integer", "number", "flag", "choice", "letter", "newtype", "either", "address", "anything"] {
            // The text is read or refused; `read` checks the error code.
            drop(runtime.block_on(read(&server, json!({(field): odd}))));
        }
    }
}

#[derive(serde::Deserialize, JsonSchema)]
struct Required {
    code: String,
    count: u32,
    #[serde(default)]
    spare: String,
}

fn requiring() -> Server {
    let handler = |it: Required| async move { format!("{}{}{}", it.code, it.count, it.spare) };
    Server::new("s", "1.0.0").prompt(Prompt::new("p", "", handler))
}

#[tokio::test]
async fn missing_arguments_are_all_named_in_every_revision() {
    for revision in Revision::ALL {
        let session = testing::connect(&requiring())
            .revision(revision)
            .await
            .unwrap();
        let error = session.get_prompt("p", ()).await.unwrap_err();
        let expected =
            "The arguments of p are not valid.\n\"code\" is missing\n\"count\" is missing";
        assert_eq!((error.code().value(), error.message()), (-32602, expected));
        let error = session
            .get_prompt("p", [("cod", "x"), ("count", "1")])
            .await
            .unwrap_err();
        assert!(
            error
                .message()
                .ends_with("\n\"code\" is missing; found \"cod\" instead"),
            "{error}"
        );
        session
            .get_prompt("p", [("code", "x"), ("count", "1")])
            .await
            .unwrap();
    }
    let absent = answer(
        &requiring(),
        Revision::LATEST,
        "prompts/get",
        json!({"name": "p"}),
    )
    .await;
    assert_eq!(absent["error"]["code"], -32602, "{absent}");
    // An empty string is a valid string, but not a number.
    assert_eq!(
        read(&requiring(), json!({"code": "", "count": "7"}))
            .await
            .unwrap(),
        "7"
    );
    let empty = read(&requiring(), json!({"code": "", "count": ""}))
        .await
        .unwrap_err();
    assert!(
        empty.contains("\"count\": expected an integer of at least 0, got the string \"\""),
        "{empty}"
    );
}

#[tokio::test]
async fn non_string_arguments_are_refused_by_name() {
    let code = |value: Value| json!({"code": value, "count": "1"});
    let strict = || requiring().strict_arguments();
    for value in [
        json!(7),
        json!(null),
        json!(true),
        json!(["a"]),
        json!({"a": "b"}),
    ] {
        let told = read(&strict(), code(value)).await.unwrap_err();
        assert!(told.contains("\"code\": expected a string"), "{told}");
    }
    for value in [json!(["a"]), json!({"a": "b"})] {
        let told = read(&requiring(), code(value)).await.unwrap_err();
        assert!(told.contains("\"code\": expected a string"), "{told}");
    }
    for whole in [json!([1]), json!("code"), json!(7)] {
        let told = read(&requiring(), whole).await.unwrap_err();
        assert!(told.contains("an object of strings"), "{told}");
    }
}

#[tokio::test]
async fn duplicate_argument_name_is_refused() {
    let mut peer = crate::support::script(&requiring()).await;
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let params = r#"{"name":"p","arguments":{"code":"x","count":"1","spare":"a","spare":"b"}}"#;
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{params}}}"#);
    peer.send_line(line).await.unwrap();
    let answer = peer.receive().await.unwrap();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("duplicate key \"spare\""), "{message}");
}
