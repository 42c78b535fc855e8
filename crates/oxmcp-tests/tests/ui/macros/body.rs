//! A mistake in the body is told of where it is, as without the attribute.

/// Count.
#[oxmcp::tool]
async fn count(text: String) -> usize {
    text
}

fn main() {}
