//! Shared state that is not `Clone`.

struct Db;

async fn status(_db: Db) -> &'static str {
    "up"
}

fn main() {
    let _ = oxmcp::Tool::new("status", "Tell whether it is up", oxmcp::with_state(Db, status));
}
