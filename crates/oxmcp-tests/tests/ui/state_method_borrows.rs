//! A method that borrows the shared state.

use std::sync::Arc;

struct Notes(Vec<String>);

impl Notes {
    async fn count(&self) -> usize {
        self.0.len()
    }
}

fn main() {
    let notes = Arc::new(Notes(Vec::new()));
    let _ = oxmcp::Tool::new("count", "Count", oxmcp::with_state(notes, Notes::count));
}
