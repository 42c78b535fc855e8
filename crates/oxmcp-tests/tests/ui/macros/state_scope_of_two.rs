//! A function with two states, in a scope that has one.

use oxmcp::Server;

/// Count.
#[oxmcp::tool]
async fn count(#[state] _a: u8, #[state] _b: u8) -> u8 {
    0
}

fn main() {
    let _ = Server::new("a", "1.0.0").state(7_u8, |s| s.tool(count::tool));
}
