//! A function with the attribute is given in place of the tool that it makes.

/// Add two numbers.
#[oxmcp::tool]
async fn add(a: f64, b: f64) -> f64 {
    a + b
}

fn main() {
    let _ = oxmcp::Server::new("calculator", "1").tool(add);
}
