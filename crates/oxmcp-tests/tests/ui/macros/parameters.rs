//! Parameters without a plain name, without a concrete type, with a condition, or of a type that is taken twice.

use oxmcp::RequestContext;

struct Pair(u8, u8);

/// Add.
#[oxmcp::tool]
async fn pattern(Pair(a, b): Pair) -> u8 {
    a + b
}

/// Add.
#[oxmcp::tool]
async fn nameless(_: u8) -> u8 {
    0
}

/// Add.
#[oxmcp::tool]
async fn opaque(text: impl ToString) -> String {
    text.to_string()
}

/// Add.
#[oxmcp::tool]
async fn conditional(#[cfg(unix)] a: u8) -> u8 {
    a
}

/// Add.
#[oxmcp::tool]
async fn twice(cx: RequestContext, again: RequestContext) -> bool {
    cx.is_cancelled() && again.is_cancelled()
}

fn main() {}
