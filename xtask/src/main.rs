//! The project's own commands: `cargo xtask lint | test | bench`.
fn main() {}
