//! Resource templates: definitions and matching.

mod definition;
mod reading;

use oxmcp::{JsonSchema, RequestContext, Resource, ResourceTemplate, Revision, Server, testing};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::answer;

#[derive(Debug, serde::Deserialize, JsonSchema)]
struct Row {
    table: String,
    id: u32,
}

fn server(templates: impl IntoIterator<Item = ResourceTemplate>) -> Server {
    Server::new("database", "1.0.0").resource_templates(templates)
}

async fn read(server: &Server, revision: Revision, uri: &str) -> Value {
    answer(server, revision, "resources/read", json!({"uri": uri})).await
}

/// The text of the resource.
async fn text(server: &Server, revision: Revision, uri: &str) -> String {
    let answer = read(server, revision, uri).await;
    let text = answer["result"]["contents"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn row(Row { table, id }: Row) -> String {
    format!("{table} {id}")
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Asc,
    Desc,
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
struct Query {
    name: String,
    offset: Option<i64>,
    ratio: Option<f64>,
    all: Option<bool>,
    order: Option<Order>,
    #[serde(default)]
    tag: Vec<u8>,
    ids: Option<Vec<String>>,
}
