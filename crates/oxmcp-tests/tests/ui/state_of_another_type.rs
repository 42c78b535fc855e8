//! Shared state of another type than the first argument of the handler.

use std::sync::Arc;

struct Db;

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Query {
    sql: String,
}

async fn query(_db: Arc<Db>, Query { sql }: Query) -> String {
    sql
}

fn main() {
    let db = "a database";
    let _ = oxmcp::Tool::new("query", "Query the database", oxmcp::with_state(db, query));
}
