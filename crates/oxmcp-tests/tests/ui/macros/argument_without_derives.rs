//! An argument whose type lacks both derives that it needs.

struct Kind;

/// Order something.
#[oxmcp::tool]
async fn order(count: u8, kind: Kind) -> usize {
    let _ = kind;
    usize::from(count)
}

fn main() {}
