//! A field whose type has no schema.

struct Inner;

#[derive(oxmcp::JsonSchema)]
struct Outer {
    inner: Inner,
}

fn main() {}
