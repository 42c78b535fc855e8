//! Tools without a description, by which a model chooses a tool.

#[oxmcp::tool]
async fn count(text: String) -> usize {
    text.len()
}

/// # Errors
/// This is for people.
#[oxmcp::prompt]
async fn poem(topic: String) -> String {
    topic
}

fn main() {}
