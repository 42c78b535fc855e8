//! A mistake in the body: the error points at its place, as without the attribute.

/// Count.
#[oxmcp::tool]
async fn count(text: String) -> usize {
    text
}

fn main() {}
