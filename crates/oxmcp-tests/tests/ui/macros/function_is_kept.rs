//! A function with a mistake in its attribute, which is still there, as is its companion: one mistake, one error.

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
