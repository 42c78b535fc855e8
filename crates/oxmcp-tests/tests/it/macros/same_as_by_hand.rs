//! The same tools, prompts and resources by attributes and by hand: clients cannot tell them apart.

use std::sync::Arc;

use oxmcp::{
    JsonSchema, Prompt, RequestContext, Resource, ResourceTemplate, Revision, Server, Structured,
    Tool, ToolError, protocol::PromptMessage, with_state,
};
use serde_json::json;

use crate::support::answer;

type Notes = Arc<Vec<String>>;

#[derive(Clone, Copy, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Metric,
    /// as in a kitchen of old
    Imperial,
}

#[derive(serde::Serialize, JsonSchema)]
struct Weather {
    celsius: f64,
}

fn one() -> f64 {
    1.0
}

/// The tools by attributes.
mod by_attribute {
    use super::*;

    /// Divide a by b.
    ///
    /// The result is
    /// a number.
    ///
    /// # Errors
    /// Where b is 0.
    #[oxmcp::tool(read_only, title("Division"))]
    pub(super) async fn divide(
        /// the dividend
        a: f64,
        /// the divisor,
        /// not 0
        #[serde(default = "one")]
        b: f64,
    ) -> Result<f64, ToolError> {
        if b == 0.0 {
            return Err(ToolError::new("b must not be 0"));
        }
        Ok(a / b)
    }

    /// Do nothing.
    #[oxmcp::tool]
    pub(super) async fn nothing() {}

    /// Tell the weather.
    #[oxmcp::tool(name("weather.tell"))]
    pub(super) async fn weather(city: String, unit: Option<Unit>) -> Structured<Weather> {
        let _ = (city, unit);
        Structured(Weather { celsius: 20.0 })
    }

    /// Count the notes.
    #[oxmcp::tool(idempotent, open_world(false))]
    pub(super) async fn count(
        #[state] notes: Notes,
        cx: RequestContext,
        author: Option<String>,
    ) -> usize {
        let _ = (cx, author);
        notes.len()
    }

    /// List the notes.
    #[oxmcp::tool]
    pub(super) async fn list(
        mut limit: u8,
        cx: RequestContext,
        #[state] notes: Notes,
        #[state] more: Notes,
    ) -> String {
        limit = limit.min(10);
        let _ = cx;
        notes
            .iter()
            .chain(&*more)
            .take(limit.into())
            .cloned()
            .collect()
    }

    /// Who calls
    #[oxmcp::tool(meta("com.example/price", 3))]
    pub(super) async fn caller(cx: RequestContext) -> String {
        cx.peer_info().map(|it| it.name.clone()).unwrap_or_default()
    }

    /// Set the units.
    #[oxmcp::tool(destructive(false))]
    pub(super) async fn units(
        /// all of them
        units: Vec<Unit>,
        #[serde(default, rename = "keep")] keeps: bool,
        #[schemars(range(min = 1, max = 5))] count: u32,
    ) -> u32 {
        u32::from(keeps) + count + u32::try_from(units.len()).unwrap()
    }

    /** Say it in
     * two lines. */
    #[oxmcp::tool(input(|s| s.property("type", |p| p.description("the kind"))))]
    pub(super) async fn r#type(
        r#type: String,
        #[expect(unused_variables, reason = "a lint stays with the function")] divide: u8,
    ) -> String {
        r#type
    }

    /// Tell the "best" of \ all, é.
    #[oxmcp::tool(visible_to(|cx| !cx.is_cancelled()))]
    pub(super) async fn best(all: [u8; 3], pairs: std::collections::BTreeMap<String, u8>) -> bool {
        all.len() > pairs.len()
    }

    #[oxmcp::tool(description(concat!("Shout", " it.")), crate = "::oxmcp")]
    pub(super) async fn shout(text: String) -> String {
        text.to_uppercase()
    }
}

/// The same tools by hand.
mod by_hand {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    pub(super) struct Divide {
        /// the dividend
        pub(super) a: f64,
        /// the divisor,
        /// not 0
        #[serde(default = "one")]
        pub(super) b: f64,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    pub(super) struct Place {
        pub(super) city: String,
        pub(super) unit: Option<Unit>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    pub(super) struct Count {
        pub(super) author: Option<String>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    pub(super) struct List {
        pub(super) limit: u8,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    pub(super) struct Units {
        /// all of them
        pub(super) units: Vec<Unit>,
        #[serde(default, rename = "keep")]
        pub(super) keeps: bool,
        #[schemars(range(min = 1, max = 5))]
        pub(super) count: u32,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    pub(super) struct Type {
        pub(super) r#type: String,
        pub(super) divide: u8,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    pub(super) struct Best {
        pub(super) all: [u8; 3],
        pub(super) pairs: std::collections::BTreeMap<String, u8>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    pub(super) struct Text {
        pub(super) text: String,
    }
}

fn tools_by_attribute(notes: &Notes) -> [Tool; 10] {
    use by_attribute::*;
    [
        divide::tool(),
        nothing::tool(),
        weather::tool(),
        count::tool(notes.clone()),
        list::tool(notes.clone(), Notes::default()),
        caller::tool(),
        units::tool(),
        r#type::tool(),
        best::tool(),
        shout::tool(),
    ]
}

fn tools_by_hand(notes: &Notes) -> [Tool; 10] {
    use by_attribute as f;
    use by_hand::*;
    let count =
        |notes: Notes, cx: RequestContext, Count { author }: Count| f::count(notes, cx, author);
    let list = |notes: Notes, cx: RequestContext, List { limit }: List| {
        f::list(limit, cx, notes, Notes::default())
    };
    [
        Tool::new(
            "divide",
            "Divide a by b.\n\nThe result is\na number.",
            |Divide { a, b }: Divide| f::divide(a, b),
        )
        .read_only()
        .title("Division"),
        Tool::new("nothing", "Do nothing.", f::nothing),
        Tool::new(
            "weather.tell",
            "Tell the weather.",
            |Place { city, unit }: Place| f::weather(city, unit),
        ),
        Tool::new(
            "count",
            "Count the notes.",
            with_state(notes.clone(), count),
        )
        .idempotent()
        .open_world(false),
        Tool::new("list", "List the notes.", with_state(notes.clone(), list)),
        Tool::new("caller", "Who calls", f::caller).meta("com.example/price", 3),
        Tool::new("units", "Set the units.", |it: Units| {
            f::units(it.units, it.keeps, it.count)
        })
        .destructive(false),
        Tool::new("type", "Say it in\ntwo lines.", |it: Type| {
            f::r#type(it.r#type, it.divide)
        })
        .input(|s| s.property("type", |p| p.description("the kind"))),
        Tool::new("best", "Tell the \"best\" of \\ all, é.", |it: Best| {
            f::best(it.all, it.pairs)
        })
        .visible_to(|cx| !cx.is_cancelled()),
        Tool::new("shout", "Shout it.", |it: Text| f::shout(it.text)),
    ]
}

/// Write a poem.
#[oxmcp::prompt(title("A poem"), argument("topic", |a| a.title("Topic")))]
async fn poem(
    /// what it is about
    topic: String,
    /// how many
    count: Option<u8>,
    unit: Unit,
) -> PromptMessage {
    let _ = unit;
    PromptMessage::user(format!("{topic} {}", count.unwrap_or(1)))
}

#[derive(serde::Deserialize, JsonSchema)]
struct Poem {
    /// what it is about
    topic: String,
    /// how many
    count: Option<u8>,
    unit: Unit,
}

/// The weather as it is.
#[oxmcp::resource("weather://now", mime_type("text/plain"), name("weather"))]
async fn now(#[state] notes: Notes) -> String {
    notes.concat()
}

/// The weather as it will be.
#[oxmcp::resource("weather://{city}/{day}{?unit}", complete("city", ["Paris", "Rome"]))]
async fn forecast(city: String, day: u8, unit: Option<Unit>) -> Option<String> {
    let _ = unit;
    (day < 7).then_some(city)
}

#[derive(serde::Deserialize, JsonSchema)]
struct Forecast {
    city: String,
    day: u8,
    unit: Option<Unit>,
}

fn by_attribute(notes: &Notes) -> Server {
    Server::new("same", "1.0.0")
        .tools(tools_by_attribute(notes))
        .prompt(poem::prompt())
        .resource(now::resource(notes.clone()))
        .resource_template(forecast::template())
}

fn by_hand(notes: &Notes) -> Server {
    Server::new("same", "1.0.0")
        .tools(tools_by_hand(notes))
        .prompt(
            Prompt::new("poem", "Write a poem.", |it: Poem| {
                poem(it.topic, it.count, it.unit)
            })
            .title("A poem")
            .argument("topic", |a| a.title("Topic")),
        )
        .resource(
            Resource::new("weather://now", "weather", with_state(notes.clone(), now))
                .description("The weather as it is.")
                .mime_type("text/plain"),
        )
        .resource_template(
            ResourceTemplate::new(
                "weather://{city}/{day}{?unit}",
                "forecast",
                |it: Forecast| forecast(it.city, it.day, it.unit),
            )
            .description("The weather as it will be.")
            .complete("city", ["Paris", "Rome"]),
        )
}

#[tokio::test]
async fn lists_equal_handwritten_definitions() {
    let notes: Notes = Arc::new(vec!["tea".to_owned()]);
    let (ours, theirs) = (by_attribute(&notes), by_hand(&notes));
    for revision in Revision::ALL {
        for method in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
        ] {
            let [ours, theirs] = [
                answer(&ours, revision, method, json!({})).await.to_string(),
                answer(&theirs, revision, method, json!({}))
                    .await
                    .to_string(),
            ];
            assert!(ours.contains("\"result\""), "{ours}");
            assert_eq!(ours, theirs, "{revision} {method}");
        }
    }
}

#[tokio::test]
async fn member_order_equals_handwritten_definitions() {
    let notes = Notes::default();
    let schemas = |tools: [Tool; 10]| async {
        let t = oxmcp::testing::connect(&Server::new("same", "1.0.0").tools(tools))
            .await
            .unwrap();
        let tools = t.tools().all().await.unwrap();
        let texts = tools.iter().map(|it| serde_json::to_string(it).unwrap());
        texts.collect::<Vec<_>>()
    };
    let ours = schemas(tools_by_attribute(&notes)).await;
    assert_eq!(ours, schemas(tools_by_hand(&notes)).await);
    assert_eq!(ours.len(), 10);
}

#[tokio::test]
async fn results_equal_handwritten_definitions() {
    let notes: Notes = Arc::new(vec!["tea".to_owned()]);
    let (ours, theirs) = (by_attribute(&notes), by_hand(&notes));
    for (method, params) in [
        (
            "tools/call",
            json!({"name": "divide", "arguments": {"a": 6}}),
        ),
        (
            "tools/call",
            json!({"name": "divide", "arguments": {"a": "six"}}),
        ),
        ("tools/call", json!({"name": "count", "arguments": {}})),
        (
            "tools/call",
            json!({"name": "list", "arguments": {"limit": 300}}),
        ),
        (
            "tools/call",
            json!({"name": "type", "arguments": {"type": "a", "divide": 1}}),
        ),
        (
            "prompts/get",
            json!({"name": "poem", "arguments": {"topic": "tea", "unit": "metric"}}),
        ),
        (
            "prompts/get",
            json!({"name": "poem", "arguments": {"topic": "tea", "unit": "mile"}}),
        ),
        ("resources/read", json!({"uri": "weather://now"})),
        ("resources/read", json!({"uri": "weather://Rome/3"})),
        (
            "resources/read",
            json!({"uri": "weather://Rome/9?unit=metric"}),
        ),
    ] {
        let [ours, theirs] = [
            answer(&ours, Revision::LATEST, method, params.clone())
                .await
                .to_string(),
            answer(&theirs, Revision::LATEST, method, params.clone())
                .await
                .to_string(),
        ];
        assert_eq!(ours, theirs, "{params}");
    }
}
