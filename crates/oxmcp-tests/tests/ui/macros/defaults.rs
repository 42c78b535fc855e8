//! Defaults of parameters that cannot be.

use oxmcp::RequestContext;

/// Count.
#[oxmcp::tool]
async fn no_value(#[default] limit: u8) -> u8 {
    limit
}

/// Count.
#[oxmcp::tool]
async fn assigned(#[default = 3] limit: u8) -> u8 {
    limit
}

/// Count.
#[oxmcp::tool]
async fn optional(#[default(Some(3))] limit: Option<u8>) -> Option<u8> {
    limit
}

/// Count.
#[oxmcp::tool]
async fn twice(
    #[default(3)]
    #[serde(default)]
    limit: u8,
) -> u8 {
    limit
}

/// Count.
#[oxmcp::tool]
async fn context(#[default(3)] cx: RequestContext) {
    drop(cx);
}

/// Count.
#[oxmcp::tool]
async fn state(
    #[state]
    #[default(3)]
    limit: u8,
) -> u8 {
    limit
}

/// Count.
#[oxmcp::tool]
async fn other_type(#[default(300)] limit: u8, #[default(true)] name: String) -> usize {
    name.len() + usize::from(limit)
}

fn main() {}
