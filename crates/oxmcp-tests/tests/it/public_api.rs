//! The public API as the compiler sees it: its futures are `Send`, its handles are shared, and the
//! errors of wrong uses are helpful.

use std::future::IntoFuture;

use oxmcp::{
    Client, ClientSession, Command, Error, Listing, RequestContext, Schema, Server, ServerSession,
    Tool, ToolError, in_memory,
    middleware::{Next, Request, Response},
    protocol, stdio,
    testing::{self, ScriptedPeer},
};

fn send<T: Send>(_: T) {}
fn send_and_sync<T: Send + Sync>() {}
fn stays<T: Send + Sync + Clone + 'static>() {}
fn moves<T: Send + 'static>() {}

#[test]
fn handles_can_be_shared() {
    stays::<Server>();
    stays::<Client>();
    stays::<ServerSession>();
    stays::<ClientSession>();
    stays::<RequestContext>();
    stays::<Next>();
    send_and_sync::<Error>();
    send_and_sync::<Schema>();
    moves::<Tool>();
    moves::<ToolError>();
    moves::<Request>();
    moves::<Response>();
    moves::<Command>();
    moves::<Listing<protocol::Tool>>();
    moves::<ScriptedPeer>();
}

#[test]
fn futures_can_be_spawned() {
    // The futures are made and never polled.
    let _ = || {
        let server = Server::new("s", "1");
        send(server.connect(in_memory().0));
        send(server.run(stdio()));
        let client = Client::new("c", "1");
        send(client.connect(in_memory().0));
        send(client.connect(Command::new("server")));
        send(testing::connect(&server).into_future());
        send(ScriptedPeer::new());
    };
    let _ = |session: ServerSession| {
        send(session.ping());
        send(session.close());
        send(session.wait());
    };
    let _ = |session: ClientSession| {
        send(session.call_tool("t", ()).into_future());
        send(session.call_tool("t", ()).structured::<u8>());
        send(session.call_tool("t", ()).manual());
        send(session.read_resource("x").into_future());
        send(session.set_log_level(protocol::LoggingLevel::Info));
        send(session.discover());
        send(session.ping());
        send(session.close());
        send(session.wait());
        send(session.tools().all());
        send(session.tools());
    };
    let _ = |cx: RequestContext| {
        send(cx.progress(1).into_future());
        send(cx.cancelled());
    };
}

#[test]
fn compile_errors_teach() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.compile_fail("tests/ui/macros/*.rs");
}
