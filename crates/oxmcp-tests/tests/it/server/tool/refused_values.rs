//! Values that the schema accepts and the type refuses: the model reads what is expected, and no parser's words.

use std::net::IpAddr;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use oxmcp::{JsonSchema, Prompt, Revision, Server, Tool};
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use crate::support::{answer, call, text};

#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(default)]
struct Formats {
    date: Option<NaiveDate>,
    time: Option<NaiveTime>,
    local: Option<NaiveDateTime>,
    instant: Option<DateTime<Utc>>,
    id: Option<Uuid>,
    page: Option<Url>,
    address: Option<IpAddr>,
    nested: Vec<Nested>,
    tuple: Option<(u8, NaiveDate)>,
    even: Option<Even>,
    either: Option<Either>,
    small: Option<std::num::NonZeroU8>,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it is there to be read")]
struct Nested {
    due: NaiveDate,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(try_from = "u8")]
struct Even(#[expect(dead_code, reason = "it is there to be read")] u8);

impl TryFrom<u8> for Even {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number % 2 {
            0 => Ok(Self(number)),
            _ => Err("the number must be even".to_owned()),
        }
    }
}

#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
enum Either {
    #[expect(dead_code, reason = "it is there to be read")]
    Number(u8),
}

impl schemars::JsonSchema for Either {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Either".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer"})
    }
}

fn server() -> Server {
    let said = |formats: Formats| async move { format!("{formats:?}") };
    Server::new("s", "1.0.0").tool(Tool::new("t", "Take it.", said))
}

#[tokio::test]
async fn formats_are_named_in_words() {
    let table = [
        (
            json!({"date": "tomorrow"}),
            r#"/date: "tomorrow" is not a date; expected YYYY-MM-DD"#,
        ),
        (
            json!({"date": "2025-02-30"}),
            r#"/date: "2025-02-30" is not a date; expected YYYY-MM-DD"#,
        ),
        (
            json!({"time": "noon"}),
            r#"/time: "noon" is not a time; expected HH:MM:SS"#,
        ),
        (
            json!({"local": "2026-01-31"}),
            r#"/local: "2026-01-31" is not a date and time; expected YYYY-MM-DDTHH:MM:SS without an offset"#,
        ),
        (
            json!({"instant": "2026-01-31T09:30:00"}),
            r#"/instant: "2026-01-31T09:30:00" is not a date and time; expected YYYY-MM-DDTHH:MM:SS with an offset, such as 2026-01-31T09:30:00Z"#,
        ),
        (
            json!({"id": "seven"}),
            r#"/id: "seven" is not a UUID; expected a value such as 67e55044-10b1-426f-9247-bb680e5fe0c8"#,
        ),
        (
            json!({"page": "example.com"}),
            r#"/page: "example.com" is not a URI; expected a value such as https://example.com/page"#,
        ),
        (
            json!({"page": "https://exa mple.com"}),
            r#"/page: "https://exa mple.com" is not a URI; expected a value such as https://example.com/page"#,
        ),
        (
            json!({"address": "home"}),
            r#"/address: "home" is not an IP address; expected a value such as 192.0.2.1 or 2001:db8::1"#,
        ),
        (
            json!({"nested": [{"due": "2026-01-31"}, {"due": "soon"}]}),
            r#"/nested/1/due: "soon" is not a date; expected YYYY-MM-DD"#,
        ),
        (
            json!({"tuple": [1, ""]}),
            r#"/tuple/1: "" is not a date; expected YYYY-MM-DD"#,
        ),
        (
            json!({"date": "x", "id": "y"}),
            "/date: \"x\" is not a date; expected YYYY-MM-DD\n/id: \"y\" is not a UUID; expected a value such as 67e55044-10b1-426f-9247-bb680e5fe0c8",
        ),
        // The words of the author's own type.
        (json!({"even": 3}), "/even: the number must be even"),
        // No name of a Rust type.
        (
            json!({"either": 300}),
            "/either: the number 300 is not accepted; expected an integer",
        ),
    ];
    for (sent, expected) in table {
        let answer = call(&server(), Revision::LATEST, "t", sent.clone()).await;
        let expected = format!("The arguments of t are not valid.\n{expected}");
        assert_eq!(text(&answer), expected, "{sent}");
    }
    let valid = json!({"date": "2026-01-31", "instant": "2026-01-31T09:30:00Z", "address": "::1"});
    let answer = call(&server(), Revision::LATEST, "t", valid).await;
    assert_eq!(answer["result"].get("isError"), None, "{answer}");
}

#[tokio::test]
async fn prompts_name_formats_too() {
    #[derive(Debug, serde::Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its text is compared")]
    struct Due {
        due: NaiveDate,
    }
    let prompt = Prompt::new("p", "Plan.", |due: Due| async move { format!("{due:?}") });
    let server = Server::new("s", "1.0.0").prompt(prompt);
    let params = json!({"name": "p", "arguments": {"due": "tomorrow"}});
    let answer: Value = answer(&server, Revision::LATEST, "prompts/get", params).await;
    assert_eq!(
        answer["error"]["message"],
        "The arguments of p are not valid.\n\"due\": \"tomorrow\" is not a date; expected YYYY-MM-DD"
    );
}
