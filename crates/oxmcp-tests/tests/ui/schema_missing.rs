//! A type without a schema.

#[derive(serde::Deserialize)]
struct Pair {
    a: f64,
    b: f64,
}

fn main() {
    oxmcp::Schema::of::<Pair>();
}
