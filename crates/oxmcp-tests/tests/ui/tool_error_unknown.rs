//! A handler whose error type is not an error.

async fn read() -> Result<String, String> {
    Err("no".to_owned())
}

fn main() {
    let _ = oxmcp::Tool::new("read", "Read a file", read);
}
