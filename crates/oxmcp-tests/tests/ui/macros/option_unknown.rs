//! Options that are not methods of the builder.

/// Count.
#[oxmcp::tool(readonly, title("Count"))]
async fn count(text: String) -> usize {
    text.len()
}

/// Count.
#[oxmcp::tool(title = "Count")]
async fn title(text: String) -> usize {
    text.len()
}

fn main() {}
