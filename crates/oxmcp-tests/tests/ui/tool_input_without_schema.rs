//! The input of a tool derives `Deserialize`, but has no JSON Schema.

#[derive(serde::Deserialize)]
struct Pair {
    a: f64,
    b: f64,
}

fn main() {
    let _ = oxmcp::Tool::new("add", "Add two numbers", |Pair { a, b }: Pair| async move { a + b });
}
