//! State that handlers share, without the attribute that says so.

use std::sync::{Arc, Mutex};

/// Write a note.
#[oxmcp::tool]
async fn write(notes: Arc<Mutex<Vec<String>>>, text: String) {
    notes.lock().unwrap().push(text);
}

fn main() {
    let notes = Arc::default();
    let _ = oxmcp::Server::new("notes", "1").tool(write::tool(notes));
}
