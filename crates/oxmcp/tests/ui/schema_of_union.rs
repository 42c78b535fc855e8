//! JSON has no unions.

#[derive(oxmcp::JsonSchema)]
union Both {
    a: f32,
    b: u32,
}

fn main() {}
