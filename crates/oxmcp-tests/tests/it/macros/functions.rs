//! Functions with attributes: the places where they can stand, and the forms that they may have.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{JsonSchema, RequestContext, Server, ToolError, protocol::ContentBlock, testing};
use serde_json::{Value, json};

/// In a module of its own, seen from outside.
mod inner {
    pub(crate) mod deeper {
        /// Double it.
        #[oxmcp::tool]
        pub(in crate::macros) async fn double(value: u32) -> u32 {
            value * 2
        }
    }

    pub(super) use deeper::double;
}

// One `use` brings both the function and what makes the tool.
use inner::double;

async fn text(server: &Server, tool: &str, arguments: Value) -> String {
    let t = testing::connect(server).await.unwrap();
    t.call_tool(tool, arguments).await.unwrap().to_text()
}

#[tokio::test]
async fn function_can_still_be_called() {
    assert_eq!(double(21).await, 42);
    let server = Server::new("a", "1.0.0").tool(double::tool());
    assert_eq!(text(&server, "double", json!({"value": 4})).await, "8");
}

#[tokio::test]
async fn function_may_be_nested_in_a_function() {
    #[derive(Debug, serde::Deserialize, JsonSchema)]
    enum Kind {
        Green,
    }

    const SUFFIX: &str = "!";

    /// Say it.
    #[oxmcp::tool]
    async fn say(kind: Kind, mut text: String) -> Result<String, ToolError> {
        text.push_str(SUFFIX);
        Ok(format!("{kind:?} {text}"))
    }

    let server = Server::new("a", "1.0.0").tool(say::tool());
    let said = text(&server, "say", json!({"kind": "Green", "text": "tea"})).await;
    assert_eq!(said, "Green tea!");
}

/// Names that clash with what is written around them.
mod names {
    /// Not what the arguments are read as.
    #[derive(serde::Deserialize, oxmcp::JsonSchema)]
    pub(super) struct Input {
        pub(super) value: u8,
    }

    /// Say all.
    #[oxmcp::tool]
    pub(super) async fn input(
        input: Input,
        #[state] context: &'static str,
        tool: Option<u8>,
        #[context] name: std::sync::Arc<oxmcp::RequestContext>,
    ) -> String {
        format!("{} {context} {tool:?} {}", input.value, name.is_cancelled())
    }
}

#[tokio::test]
async fn generated_names_do_not_clash() {
    let server = Server::new("a", "1.0.0").tool(names::input::tool("shared"));
    let said = text(&server, "input", json!({"input": {"value": 3}})).await;
    assert_eq!(said, "3 shared None false");
}

macro_rules! doubles {
    ($(#[$meta:meta])* $visibility:vis $name:ident($argument:ident: $type:ty) -> $result:ty) => {
        $(#[$meta])*
        #[oxmcp::tool]
        $visibility async fn $name($argument: $type) -> $result {
            $argument + $argument
        }
    };
}

doubles! {
    /// Double a number.
    pub(super) number(value: u64) -> u64
}

#[tokio::test]
async fn function_may_come_from_a_macro() {
    let server = Server::new("a", "1.0.0").tool(number::tool());
    assert_eq!(text(&server, "number", json!({"value": 4})).await, "8");
    let t = testing::connect(&server).await.unwrap();
    let tools = t.tools().all().await.unwrap();
    assert_eq!(tools[0].description.as_deref(), Some("Double a number."));
}

#[tokio::test]
async fn state_is_cloned_for_each_call() {
    struct Counted(Arc<AtomicUsize>);

    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, Ordering::Relaxed);
            Self(self.0.clone())
        }
    }

    /// Count.
    #[oxmcp::tool]
    async fn count(#[state] counted: Counted, cx: RequestContext) -> usize {
        let _ = cx;
        counted.0.load(Ordering::Relaxed)
    }

    let server = Server::new("a", "1.0.0").tool(count::tool(Counted(Arc::default())));
    assert_eq!(text(&server, "count", json!({})).await, "1");
    assert_eq!(text(&server, "count", json!({})).await, "2");
}

#[tokio::test]
async fn cfg_condition_applies_to_all_generated_items() {
    /// Not there.
    #[oxmcp::tool]
    #[cfg(any())]
    async fn only(value: NoSuchType) {}

    /// There.
    #[oxmcp::tool]
    #[cfg(not(any()))]
    async fn only(value: u8) -> ContentBlock {
        ContentBlock::text(value.to_string())
    }

    let server = Server::new("a", "1.0.0").tool(only::tool());
    assert_eq!(text(&server, "only", json!({"value": 3})).await, "3");
}

/// A crate that has oxmcp under a name of its own.
mod facade {
    pub(super) use oxmcp as sdk;
}

#[tokio::test]
async fn crate_may_have_another_path() {
    /// Add.
    #[oxmcp::tool(crate = "crate::macros::functions::facade::sdk")]
    async fn add(a: u8, #[serde(default)] b: u8) -> u8 {
        a + b
    }

    /// Say it.
    #[oxmcp::resource("memo://{topic}", crate = "crate::macros::functions::facade::sdk")]
    async fn memo(topic: String) -> String {
        topic
    }

    let server = Server::new("a", "1.0.0")
        .tool(add::tool())
        .resource_template(memo::template());
    assert_eq!(text(&server, "add", json!({"a": 4})).await, "4");
}

#[derive(Clone, Copy, Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Newest,
    Oldest,
}

const MOST: u32 = 10;

/// Search.
#[oxmcp::tool]
#[expect(clippy::too_many_arguments, reason = "it tries many defaults")]
async fn search(
    text: String,
    /// how many at most
    #[default(MOST * 2)]
    limit: u32,
    #[default("any \"one\"")] r#in: String,
    #[default(Order::Newest)] order: Order,
    #[default(-1.5)] least: f64,
    #[default(vec!["a".to_owned()])] tags: Vec<String>,
) -> String {
    let place = r#in;
    format!("{text} {limit} {place} {order:?} {least} {tags:?}")
}

#[tokio::test]
async fn defaults_are_used_and_listed() {
    let server = Server::new("a", "1.0.0").tool(search::tool());
    let said = text(&server, "search", json!({"text": "x"})).await;
    assert_eq!(said, r#"x 20 any "one" Newest -1.5 ["a"]"#);
    let given =
        json!({"text": "x", "limit": 1, "in": "y", "order": "oldest", "least": 0, "tags": []});
    assert_eq!(text(&server, "search", given).await, "x 1 y Oldest 0 []");
    let t = testing::connect(&server).await.unwrap();
    let tools = t.tools().all().await.unwrap();
    let schema: Value = serde_json::from_str(tools[0].input_schema.get()).unwrap();
    assert_eq!(schema["required"], json!(["text"]));
    let default = |name: &str| schema["properties"][name]["default"].clone();
    assert_eq!(default("limit"), 20);
    assert_eq!(default("in"), "any \"one\"");
    assert_eq!(default("order"), "newest");
    assert_eq!(default("least"), -1.5);
    assert_eq!(default("tags"), json!(["a"]));
    assert_eq!(
        schema["properties"]["limit"]["description"],
        "how many at most"
    );
}

/// Write a poem.
#[oxmcp::prompt]
async fn poem(topic: String, #[default(4)] lines: u8) -> String {
    format!("{lines} lines about {topic}")
}

/// The forecast.
#[oxmcp::resource("weather://{city}{?days}")]
async fn forecast(city: String, #[default(7)] days: u8) -> String {
    format!("{days} days in {city}")
}

#[tokio::test]
async fn prompts_and_templates_have_defaults() {
    let server = Server::new("a", "1.0.0")
        .prompt(poem::prompt())
        .resource_template(forecast::template());
    let t = testing::connect(&server).await.unwrap();
    let prompts = t.prompts().all().await.unwrap();
    let required: Vec<_> = prompts[0].arguments.iter().map(|it| it.required).collect();
    assert_eq!(required, [true, false]);
    let got = t.get_prompt("poem", [("topic", "sheep")]).await.unwrap();
    let said = got.messages[0].content.as_text();
    assert_eq!(said, Some("4 lines about sheep"));
    let read = t.read_resource("weather://Oslo").await.unwrap();
    assert_eq!(read.contents[0].as_text(), Some("7 days in Oslo"));
}
