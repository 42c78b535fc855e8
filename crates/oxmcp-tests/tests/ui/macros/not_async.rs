//! Tools of items that are not async functions.

/// Count.
#[oxmcp::tool]
fn count(text: String) -> usize {
    text.len()
}

/// Count.
#[oxmcp::tool]
struct Count;

/// Count.
#[oxmcp::tool]
async unsafe fn danger() -> usize {
    0
}

fn main() {}
