//! A misspelt attribute: the error points at it.

#[derive(oxmcp::JsonSchema)]
struct Count {
    #[schemars(range(least = 1))]
    count: u32,
}

fn main() {}
