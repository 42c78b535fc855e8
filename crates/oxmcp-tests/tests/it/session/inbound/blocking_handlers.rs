//! Handlers that block their thread: the watchdog names them, and the process of a stdio server ends all the same.

use std::{
    fmt::{self, Write as _},
    io::{BufRead, BufReader, Write as _},
    process::Stdio,
    thread,
    time::Duration,
};

use oxmcp::{Limits, Prompt, Resource, Server, Tool, protocol::ReadResourceResult, stdio};
use serde_json::json;
use tracing::{Event, Subscriber, field::Field};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    util::SubscriberInitExt,
};

use crate::{child, support::modern};

/// The variable with the role of the child: what it is asked for.
const ROLE: &str = "OXMCP_TEST_BLOCKING";
const BLOCKING: &str = "a handler is blocking its thread";

fn block() {
    thread::sleep(Duration::from_secs(3600));
}

/// Writes each event to standard error, as one line.
struct ToStderr;

impl<S: Subscriber> Layer<S> for ToStderr {
    #[expect(
        clippy::print_stderr,
        reason = "the test reads what its process prints"
    )]
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = String::new();
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            let _ = write!(line, "{field}={value:?} ");
        });
        eprintln!("{line}");
    }
}

/// A stdio server whose handlers block their thread.
#[test]
#[ignore = "the process that the other tests start"]
fn child() {
    let Some(role) = child::role(ROLE) else {
        return;
    };
    tracing_subscriber::registry().with(ToStderr).init();
    let limits = Limits::default()
        .drain(Duration::from_millis(100))
        .cancel_grace(Duration::from_millis(100));
    let server = Server::new("blocking", "1.0.0")
        .limits(limits)
        .tool(Tool::new("render", "Render", || async { block() }))
        .prompt(Prompt::new("ask", "Ask", || async {
            tokio::task::yield_now().await;
            block();
            "asked"
        }))
        .resource(Resource::new("file:///x", "x", || async {
            block();
            ReadResourceResult::default()
        }));
    let mut runtime = match role.as_str() {
        "current thread" => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().worker_threads(2).build().unwrap();
    runtime.block_on(server.run(stdio())).unwrap();
    eprintln!("run has returned");
    // This waits for the handler.
    drop(runtime);
}

/// Makes a request of a child, and waits until its handler is named. If the input `ends`, waits for the end of the process, too.
/// Returns the lines of its log, and the exit code.
fn run(
    role: &str,
    method: &str,
    params: serde_json::Value,
    ends: bool,
) -> (Vec<String>, Option<i32>) {
    let name = "session::inbound::blocking_handlers::child";
    let mut command = child::command(name, ROLE, role);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let request = modern(1, method, params);
    writeln!(stdin, "{request}").unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let mut until = |text: &str, said: &mut Vec<String>| {
        for line in lines.by_ref() {
            let line = line.unwrap();
            let is_found = line.contains(text);
            said.push(line);
            if is_found {
                return;
            }
        }
    };
    until(BLOCKING, &mut said);
    if !ends {
        process.kill().unwrap();
        process.wait().unwrap();
        return (said, None);
    }
    drop(stdin);
    until("exiting without waiting", &mut said);
    (said, process.wait().unwrap().code())
}

#[test]
fn blocking_handlers_are_named_in_every_runtime() {
    let children = [
        (
            "multi thread",
            "prompts/get",
            json!({"name": "ask"}),
            "prompt ask",
        ),
        (
            "multi thread",
            "resources/read",
            json!({"uri": "file:///x"}),
            "resource file:///x",
        ),
        (
            "current thread",
            "tools/call",
            json!({"name": "render"}),
            "tool render",
        ),
    ];
    let children = children.map(|(role, method, params, label)| {
        thread::spawn(move || {
            let (said, _) = run(role, method, params, false);
            let warning = said.last().unwrap();
            assert!(
                warning.contains(BLOCKING) && warning.contains(label),
                "{said:?}"
            );
            assert!(warning.contains("spawn_blocking"), "{warning}");
        })
    });
    for child in children {
        child.join().unwrap();
    }
}

#[test]
fn blocking_handler_does_not_outlive_its_input() {
    let (said, code) = run(
        "multi thread",
        "tools/call",
        json!({"name": "render"}),
        true,
    );
    let has = |text: &str| said.iter().any(|line| line.contains(text));
    assert!(has("run has returned"), "{said:?}");
    assert!(has("exiting without waiting"), "{said:?}");
    assert_eq!(code, Some(1), "{said:?}");
}
