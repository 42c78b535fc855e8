//! `JsonSchema` derived for a `union`, of which there is no schema.

#[derive(oxmcp::JsonSchema)]
union Both {
    a: f32,
    b: u32,
}

fn main() {}
