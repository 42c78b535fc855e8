//! A handler that is not async.

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Pair {
    a: f64,
    b: f64,
}

fn main() {
    let _ = oxmcp::Tool::new("add", "Add two numbers", |pair: Pair| pair.a + pair.b);
}
