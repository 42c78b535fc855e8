//! A handler that takes the context after its input.

use oxmcp::RequestContext;

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Pair {
    a: f64,
    b: f64,
}

async fn add(pair: Pair, _cx: RequestContext) -> f64 {
    pair.a + pair.b
}

fn main() {
    let _ = oxmcp::Tool::new("add", "Add two numbers", add);
}
