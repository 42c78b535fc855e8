//! Features that take another state than that of their scope.

use std::sync::Arc;

use oxmcp::{Server, Tool};

struct Db;

/// Query the database.
#[oxmcp::tool]
async fn query(#[state] _db: Arc<Db>, sql: String) -> String {
    sql
}

async fn status(_db: Arc<Db>) -> &'static str {
    "up"
}

fn main() {
    let _ = Server::new("database", "1.0.0").state("a database", |s| {
        s.tool(query::tool)
            .tool(Tool::new("status", "Tell whether it is up", s.with_state(status)))
    });
}
