//! Tools of functions with a state, registered without the state.

use std::sync::Arc;

/// Count.
#[oxmcp::tool]
async fn count(#[state] notes: Arc<Vec<String>>) -> usize {
    notes.len()
}

fn main() {
    let _ = oxmcp::Server::new("notes", "1").tool(count::tool());
}
