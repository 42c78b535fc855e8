//! Completers that are neither lists nor functions of what they complete.

async fn by_value(value: String) -> Vec<String> {
    vec![value]
}

fn main() {
    let _ = oxmcp::Completer::new("red, green");
    let _ = oxmcp::Completer::new(by_value);
}
