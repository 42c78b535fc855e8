//! Completers that are neither lists of strings nor functions of `CompletionInput`.

async fn by_value(value: String) -> Vec<String> {
    vec![value]
}

fn main() {
    let _ = oxmcp::Completer::new("red, green");
    let _ = oxmcp::Completer::new(by_value);
}
