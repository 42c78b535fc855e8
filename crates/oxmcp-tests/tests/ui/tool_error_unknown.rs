//! A handler whose error is no error.

async fn read() -> Result<String, String> {
    Err("no".to_owned())
}

fn main() {
    let _ = oxmcp::Tool::new("read", "Read a file", read);
}
