//! Parameters that borrow: an argument outlives the message that it came in, a state is cloned, and the context is a value.

use oxmcp::RequestContext;

/// Say it again.
#[oxmcp::tool]
async fn echo(text: &str) -> String {
    text.to_owned()
}

/// Say some again.
#[oxmcp::tool]
async fn some(texts: Vec<&'static str>) -> String {
    texts.concat()
}

/// Say what is shared.
#[oxmcp::tool]
async fn shared(#[state] text: &String, cx: &RequestContext) -> String {
    format!("{text} {:?}", cx.revision())
}

fn main() {}
