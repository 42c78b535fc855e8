//! Tools of methods: an `impl` block has no place for the items that the attribute generates.

use std::sync::Arc;

struct Notes;

impl Notes {
    /// Count the notes.
    #[oxmcp::tool]
    async fn count(&self) -> usize {
        0
    }

    /// Clear the notes.
    #[oxmcp::tool]
    async fn clear(self: Arc<Self>, all: bool) -> bool {
        all
    }
}

fn main() {}
