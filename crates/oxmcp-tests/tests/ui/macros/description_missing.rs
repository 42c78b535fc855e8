//! A model decides by the description, so there is one.

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
