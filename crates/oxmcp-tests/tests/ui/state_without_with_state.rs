//! A handler that takes shared state, registered without `with_state`.

use std::sync::Arc;

use oxmcp::RequestContext;

struct Db;

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Query {
    sql: String,
}

async fn query(_db: Arc<Db>, Query { sql }: Query) -> String {
    sql
}

async fn query_in(_db: Arc<Db>, _cx: RequestContext, Query { sql }: Query) -> String {
    sql
}

fn main() {
    let _ = oxmcp::Tool::new("query", "Query the database", query);
    let _ = oxmcp::Tool::new("query_in", "Query the database", query_in);
}
