//! `JsonSchema` derived for a `union`, which has no schema.

#[derive(oxmcp::JsonSchema)]
union Both {
    a: f32,
    b: u32,
}

fn main() {}
