//! The members of an object, picked out while it is checked.
//!
//! `cargo run -p oxmcp-json --example members`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp_json::{Cursor, SyntaxError, Text};

const MESSAGE: &str =
    r#"{"jsonrpc": "2.0", "id": 7, "params": {"name": "add", "arguments": {"a": 1, "b": [2, 3]}}}"#;

fn main() -> Result<(), SyntaxError> {
    let mut params = Text::EMPTY;
    // One pass: the whole text is checked, and `params` is kept as it is.
    Cursor::new(MESSAGE).read_object(|key, cursor| {
        let value = cursor.value()?;
        if key.is_str("params") {
            params = value;
        }
        Ok(())
    })?;
    // No second check: the text is known to be JSON.
    for (key, value) in params.members() {
        println!("{}: {}", key.get(), value.get());
    }
    Ok(())
}
