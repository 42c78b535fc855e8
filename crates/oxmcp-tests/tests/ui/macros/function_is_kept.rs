//! A mistake in the attribute of a function: the function and its companion still exist, so that one mistake gives one error.

use oxmcp::Server;

/// Say it again.
#[oxmcp::tool]
async fn echo(
    /// what to say
    #[serde(default)]
    text: &str,
) -> String {
    text.to_owned()
}

async fn calls() -> Server {
    let _: String = echo("hello").await;
    Server::new("a", "1").tool(echo::tool())
}

fn main() {
    let _ = calls();
}
