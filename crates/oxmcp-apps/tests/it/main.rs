//! Servers with apps, and hosts that show them, in one process and in all revisions.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

mod bridge;
mod pages;
mod rules;
mod server;

use oxmcp::{Client, ClientSession, RequestContext, Revision, Server, Tool, testing};
use oxmcp_apps::{App, Permission, ServerExt, ToolExt, client_shows_apps, host};

const URI: &str = "ui://clock/view.html";
const HTML: &str = "<!doctype html><p>ten past two";

fn view() -> App {
    App::new(URI, HTML)
        .title("Clock")
        .connect("https://time.example.com")
        .permission(Permission::ClipboardWrite)
        .border(true)
}

/// The revisions in which tools and resources have metadata.
fn revisions() -> impl Iterator<Item = Revision> {
    let all = Revision::ALL.into_iter();
    all.filter(|it| it.has_entry_metadata())
}

/// A server with an app, and tools for each visibility.
fn clock() -> Server {
    let view = view();
    let now = Tool::new("now", "Tell the time", |cx: RequestContext| async move {
        match client_shows_apps(&cx) {
            true => "ten past two, as shown",
            false => "ten past two",
        }
    });
    let wind = Tool::new("wind", "Wind the clock", || async { "wound" });
    let stop = Tool::new("stop", "Stop the clock", || async { "stopped" });
    Server::new("clock", "1.0.0")
        .tool(now.app(&view))
        .tool(wind.app_only(&view))
        .tool(stop.model_only(&view))
        .tool(Tool::new("plain", "Do nothing", || async { "nothing" }))
        .app(view)
}

async fn session(server: &Server, revision: Revision) -> ClientSession {
    let client = Client::new("host", "1.0.0").extension(host::extension());
    let connect = testing::connect(server).client(&client);
    connect.revision(revision).await.unwrap()
}
