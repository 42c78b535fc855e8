//! The input of a tool derives neither of the traits that it needs.

struct Pair {
    a: f64,
    b: f64,
}

async fn add(Pair { a, b }: Pair) -> f64 {
    a + b
}

fn main() {
    let _ = oxmcp::Tool::new("add", "Add two numbers", add);
}
