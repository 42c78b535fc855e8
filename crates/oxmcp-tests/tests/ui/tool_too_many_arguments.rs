//! A handler that takes its arguments as separate parameters.

async fn add(a: f64, b: f64) -> f64 {
    a + b
}

fn main() {
    let _ = oxmcp::Tool::new("add", "Add two numbers", add);
}
