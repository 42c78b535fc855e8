//! The type of an argument needs both derives.

struct Kind;

/// Order something.
#[oxmcp::tool]
async fn order(count: u8, kind: Kind) -> usize {
    let _ = kind;
    usize::from(count)
}

fn main() {}
