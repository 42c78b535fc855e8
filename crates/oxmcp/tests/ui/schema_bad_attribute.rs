//! A misspelt attribute is told where it stands.

#[derive(oxmcp::JsonSchema)]
struct Count {
    #[schemars(range(least = 1))]
    count: u32,
}

fn main() {}
