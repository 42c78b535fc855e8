//! A state that is not `Clone`, though it is cloned for each call.

struct Db;

/// Tell whether it is up.
#[oxmcp::tool]
async fn status(#[state] db: Db) -> bool {
    let _ = db;
    true
}

fn main() {}
