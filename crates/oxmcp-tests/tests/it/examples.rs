//! The examples, run as a reader would run them, with the output that they must print.

#![expect(clippy::unwrap_used, reason = "these are tests")]

#[cfg(all(feature = "http-client", feature = "http-server"))]
mod over_http;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::json;

/// The program of an example, which `cargo test --workspace` builds beside the tests.
fn program(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let built = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let program = built
        .join("examples")
        .join(format!("{name}{}", env::consts::EXE_SUFFIX));
    assert!(
        is_fresh(name, &program),
        "{} is older than its source: run `cargo build -p oxmcp-examples --examples --all-features` first",
        program.display()
    );
    program
}

/// Whether the program is at least as new as its source: `cargo test -p oxmcp` does not build the examples.
fn is_fresh(name: &str, program: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut folders = examples.read_dir().unwrap();
    let source = folders.find_map(|folder| {
        let source = folder.unwrap().path().join(format!("{name}.rs"));
        source.exists().then_some(source)
    });
    let written = source.as_deref().and_then(modified);
    modified(program).is_some_and(|built| written.is_some_and(|written| written <= built))
}

fn run(name: &str, args: &[&str]) -> Output {
    Command::new(program(name))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs an example that must succeed. Returns what it prints.
fn prints((name, args): (&str, &[&str])) -> String {
    let output = run(name, args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn crashed_server() {
    insta::assert_snapshot!(prints(("crashed_server", &[])), @r"
    2026-07-28
      the server crashed: true
      the server was restarted
      the server says hello
    2025-11-25
      the server crashed: true
      the server says hello
    ");
}

#[test]
fn skills() {
    let printed = prints(("skills", &[]));
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(
        lines.first(),
        Some(
            &"skill://shop/refunds/SKILL.md of \"shop\": Refund an order. Use it when a customer wants money back."
        )
    );
    assert!(
        printed.contains("\nSkill \"refunds\" of the MCP server \"shop\""),
        "{printed}"
    );
    assert!(printed.contains("\nOrders of up to 100 €"), "{printed}");
    let changed = "could not use the skill skill://shop/refunds/SKILL.md: it has changed; ask the user to approve it again";
    assert_eq!(lines.last(), Some(&changed));
}

#[test]
fn apps() {
    // Without a terminal it ends at once; the URL has a port and a secret.
    let printed = prints(("apps", &[]));
    let lines: Vec<_> = printed.lines().collect();
    let [reset, roll, open] = &lines[..] else {
        panic!("three lines: {printed}");
    };
    assert_eq!(*reset, "reset is for the app");
    assert_eq!(*roll, "roll is for the model and the app");
    assert!(open.starts_with("Open http://127.0.0.1:"), "{open}");
}

#[test]
fn quickstart() {
    insta::assert_snapshot!(prints(("quickstart", &[])), @r#"
    Connected to teahouse. It speaks MCP 2026-07-28.

    Its tools:
      brew    Brew tea, one cup at a time
      divide  Divide a by b

    A call with progress:
      █░░░░ 1 of 5: cup 1
      ██░░░ 2 of 5: cup 2
      ███░░ 3 of 5: cup 3
      ████░ 4 of 5: cup 4
      █████ 5 of 5: cup 5
      => 5 cups of tea

    A call with a typed result:
      22 / 7 => 3.142857142857143

    What the model sees when a tool fails:
      divide({"a":1,"b":0})
      => b must not be 0

    What the model sees when its arguments are wrong:
      divide({"a":"one","c":2})
      => The arguments of divide are not valid.
      => /: "b" is missing (a number); found "c" instead
      => /a: expected a number, got the string "one"

    The session is closed, and the server has exited.
    "#);
}

/// The server of an example, with a client of the SDK.
#[tokio::test]
async fn calculator() {
    let (name, client) = ("calculator", oxmcp::Client::new("tests", "1.0.0"));
    let command = oxmcp::Command::new(program(name));
    let session = client.connect(command).await.unwrap();
    let call = session.call_tool("divide", json!({"a": 6, "b": 4}));
    assert_eq!(call.structured::<f64>().await.unwrap(), 1.5);
    session.close().await.unwrap();
}

#[test]
fn client_lists_and_calls() {
    let calculator = program("calculator");
    let server = calculator.to_str().unwrap();
    insta::assert_snapshot!(prints(("client", &[server])), @r#"
    add: Add two numbers
        {"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}
    divide: Divide a by b
        {"type":"object","properties":{"a":{"type":"number","description":"the dividend"},"b":{"type":"number","description":"the divisor"}},"required":["a","b"]}
    "#);

    let sum = prints((
        "client",
        &["--call", "add", r#"{"a": 1, "b": 2.5}"#, server],
    ));
    assert_eq!(sum, "3.5\n");
}

#[test]
fn client_reports_errors() {
    let fails = |args: &[&str]| {
        let output = run("client", args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let calculator = program("calculator");
    let server = calculator.to_str().unwrap();
    assert!(fails(&[]).contains("usage: client"));
    assert!(fails(&["--call", "divide", "{}", server]).contains("the tool failed"));
    assert!(
        fails(&["--call", "subtract", "{}", server])
            .contains("Unknown tool: subtract (available: add, divide)")
    );
    assert!(fails(&["no-such-program"]).contains("cannot start the server no-such-program"));
    // The log of a server is printed as it is: its words are not in the command, which the error names.
    let logged = fails(&["sh", "-c", "echo l''ast words >&2; exit 3"]);
    assert!(
        logged.starts_with("last words\n") && logged.contains("status 3"),
        "{logged}"
    );
}

#[test]
fn agent() {
    insta::assert_snapshot!(prints(("agent", &[])), @r#"
    calculator is Ready
    notes is Ready
    calculator_add {"a":19,"b":23}
      {"content":[{"text":"42.0","type":"text"}],"tool_use_id":"1","type":"tool_result"}
    notes_write {"text":"The sum is 42.0"}
    notes asks the user: Write "The sum is 42.0"?
      {"content":[{"text":"written","type":"text"}],"tool_use_id":"3","type":"tool_result"}
    calculator_add {"a":"nineteen"}
      {"content":[{"text":"The arguments of add are not valid.\n/: \"b\" is missing (a number)\n/a: expected a number, got the string \"nineteen\"","type":"text"}],"is_error":true,"tool_use_id":"5","type":"tool_result"}
    I wrote a note, and learned what a number is.
    "#);
}

#[test]
fn mounting() {
    insta::assert_snapshot!(prints(("mounting", &[])), @r#"
    travel_book
    weather_now
    weather_now: sunny in Oslo
    the gateway asks: travel: Where to?
    travel_book: booked a train to Lyon
    Some("two socks")
    "#);
}

#[test]
fn asking() {
    insta::assert_snapshot!(prints(("asking", &[])), @r#"
    2025-11-25
      the user is asked: Delete teahouse with 8 files?
      the user is asked: Tell the others why.
      deleted 8 files of file:///home/ann (Tonight, "done", copy: true)
      the user is asked: Delete archive with 7 files?
      The user was asked "Delete archive with 7 files?" and declined. Do not try again unless the user wants it.
      counted 2 times
    2026-07-28
      the user is asked: Delete teahouse with 8 files?
      the user is asked: Tell the others why.
      deleted 8 files of file:///home/ann (Tonight, "done", copy: true)
      the user is asked: Delete archive with 7 files?
      The user was asked "Delete archive with 7 files?" and declined. Do not try again unless the user wants it.
      counted 2 times
    "#);
}

/// Runs an example that needs a Redis. `None` if there is none.
fn prints_with_redis(name: &str) -> Option<String> {
    let Some(redis) = xtask::packages::REDIS.bring().unwrap() else {
        xtask::packages::left_out(&format!("the example {name}: there is no redis-server"));
        return None;
    };
    let paths = env::var_os("PATH").unwrap_or_default();
    let beside = redis.parent().map(Path::to_owned);
    let paths = env::join_paths(beside.into_iter().chain(env::split_paths(&paths))).unwrap();
    let output = Command::new(program(name))
        .env("PATH", paths)
        .env_remove("REDIS_URL")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn cluster() {
    let Some(printed) = prints_with_redis("cluster") else {
        return;
    };
    let lines: Vec<_> = printed.lines().collect();
    // The nodes' names depend on how many requests came before.
    assert_eq!(lines.len(), 7, "{printed}");
    for (asked, killed, booked) in [
        (lines[0], lines[1], lines[2]),
        (lines[3], lines[4], lines[5]),
    ] {
        let name = killed.trim().strip_suffix(" was killed").unwrap();
        assert!(asked.contains(&format!("({name} asks)")), "{printed}");
        assert!(booked.contains("booked it, window: true"), "{printed}");
        assert!(!booked.contains(name), "{printed}");
    }
    assert_eq!(lines[6], "=> soup, in the older session");
}

#[test]
fn gateway_cluster() {
    let Some(printed) = prints_with_redis("gateway_cluster") else {
        return;
    };
    let (before, after) = printed.split_once("Ann was killed\n").unwrap();
    for (part, nodes) in [(before, &["Ann", "Bob"][..]), (after, &["Bob"][..])] {
        let lines: Vec<_> = part.lines().collect();
        let [older, newer] = [&lines[..5], &lines[5..]];
        for lines in [older, newer] {
            let asked = lines[1].trim().strip_prefix("travel: ").unwrap();
            let asked = asked.strip_suffix(" asks: where to?").unwrap();
            let booked = lines[2].trim().strip_prefix("travel_book: ").unwrap();
            let booked = booked.strip_suffix(" booked a train to Lyon").unwrap();
            assert_eq!(lines[0], "  weather_now: sunny");
            assert_eq!(
                lines[3..],
                ["  notes_list: packing", "  note://1 has changed: true"]
            );
            assert!(
                nodes.contains(&asked) && nodes.contains(&booked),
                "{printed}"
            );
            // The call of a session stays at its node, and the answer is forwarded to it.
            assert!(lines != older || asked == booked, "{printed}");
        }
    }
}

#[test]
fn state() {
    insta::assert_snapshot!(prints(("state", &[])), @r#"
    2 notes; the program has 2
    tea: Buy some (oxmcp-testing)
    teapot: Mend it (oxmcp-testing)
    Summarize these notes.
    Buy some (oxmcp-testing)
    Mend it (oxmcp-testing)
    "#);
}

#[test]
fn structured_output() {
    insta::assert_snapshot!(prints(("structured_output", &[])), @r#"
    by_hand: output schema none
    flag: output schema none
    weather: output schema {"type":"object","description":"the weather of a place","properties":{"temperature":{"type":"number","description":"degrees Celsius"},"sky":{"type":"string","enum":["clear","cloudy"]}},"required":["temperature","sky"]}
    Weather { temperature: 21.5, sky: Cloudy }
    text: the flag of nowhere
    image: image/x-portable-bitmap, 8 bytes
    "#);
}

#[test]
fn progress_and_cancellation() {
    insta::assert_snapshot!(prints(("progress_and_cancellation", &[])), @r#"
    progress: 1/3
    progress: 2/3
    progress: 3/3
    copied 3 files
    timed out: true
    the handler has stopped
    cancelled: true
    the handler has stopped
    dropped
    the handler has stopped
    "#);
}

#[test]
fn testing() {
    assert!(prints(("testing", &[])).ends_with("\nall tests passed\n"));
}

#[test]
fn dynamic_tools() {
    insta::assert_snapshot!(prints(("dynamic_tools", &[])), @r#"
    greet_english
    greet_english, greet_french, greet_german
    Bonjour, Ferris!
    greet_english, greet_french
    "#);
}

#[test]
fn search() {
    insta::assert_snapshot!(prints(("search", &[])), @r#"
    of 500 tools, a client lists call_tool and search_tools
    "vibration of the pump in line 7" finds pump_7_vibration
    vibration of pump 7: normal
    "how hot is furnace 3: temperature" finds furnace_3_temperature
    temperature of furnace 3: normal
    call_tool is read-only: true
    "#);
}

#[test]
fn resources() {
    insta::assert_snapshot!(prints(("resources", &[])), @r#"
    weather://about: Made of thin air.
    weather://now: 20 °C
    weather://S%C3%A3o%20Paulo/tomorrow?round_to=10: Tomorrow in São Paulo: 30 °C
    Resource not found: weather://Atlantis/today
    Resource not found: weather://Paris/yesterday
    "day": "yesterday" is not accepted; expected one of "today", "tomorrow"
    updated: 21 °C
    "#);
}

#[test]
fn files() {
    insta::assert_snapshot!(prints(("files", &[])), @r#"
    docs://README.md (11 bytes)
    docs://guide/brewing.txt (15 bytes)
    docs://leaf.png (4 bytes)
    docs://guide/brewing.txt is text/plain: Text("Three minutes.\n")
    docs://leaf.png is image/png: Blob(Blob(4 bytes))
    Resource not found: docs://.env
    Resource not found: docs://../../etc/passwd
    Resource not found: docs://guide
    it is a directory
    docs://guide/brewing.txt is text/plain: Text("Three minutes.\n")
    Resource not found: docs://README.md
    it is outside the client's roots
    "#);
}

#[test]
fn prompts() {
    insta::assert_snapshot!(prints(("prompts", &[])), @r#"
    poem(topic, form, count)
    summary(text, language)
    forms: haiku, limerick, sonnet
    topics of haikus: autumn, the moon
    Assistant: I am a poet. I write a perfect Haiku.
    User: Write about autumn. Number of poems: 3.
    User: Summarize this. Answer in English.
    To be, or not to be.
    The arguments of poem are not valid.
    "count": expected an integer from 0 to 255, got the string "many"
    "form": "epic" is not accepted; expected one of "haiku", "limerick", "sonnet" (code -32602)
    "#);
}

#[test]
fn logging() {
    insta::assert_snapshot!(prints(("logging", &[])), @r#"
    2025-11-25, level debug:
      debug [] "opening the file"
      info [logging] {"lines":12,"msg":"parsed"}
      warning [import] {"file":"tea.csv","msg":"3 lines were skipped"}
    2025-11-25, level warning:
      warning [import] {"file":"tea.csv","msg":"3 lines were skipped"}
    2026-07-28, level debug:
      debug [] "opening the file"
      info [logging] {"lines":12,"msg":"parsed"}
      warning [import] {"file":"tea.csv","msg":"3 lines were skipped"}
    2026-07-28, level warning:
      warning [import] {"file":"tea.csv","msg":"3 lines were skipped"}
    "#);
}

/// The spans of both processes as paths from the root span, without their ids.
#[test]
fn opentelemetry() {
    let output = run("opentelemetry", &[]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    let spans = text.lines().map(|line| {
        let (name, ids) = line.split_once(": span ").unwrap();
        let ids: Vec<_> = ids.split(' ').collect();
        (name, ids[0], ids[2], ids[5])
    });
    let spans: Vec<_> = spans.collect();
    let mut paths: Vec<String> = Vec::new();
    for &(name, _, mut parent, trace) in &spans {
        let mut path = name.to_owned();
        while let Some((name, _, next, of)) = spans.iter().find(|(_, id, ..)| *id == parent) {
            assert_eq!(*of, trace, "{text}");
            path = format!("{name} > {path}");
            parent = next;
        }
        assert_eq!(parent, "0000000000000000", "{text}");
        paths.push(path);
    }
    paths.sort();
    insta::assert_snapshot!(paths.join("\n"), @r"
    client Internal evening
    client Internal evening
    client Internal evening > client Client initialize
    client Internal evening > client Client initialize > server Server initialize
    client Internal evening > client Client tools/call order
    client Internal evening > client Client tools/call order
    client Internal evening > client Client tools/call order
    client Internal evening > client Client tools/call order > server Server tools/call order
    client Internal evening > client Client tools/call order > server Server tools/call order
    client Internal evening > client Client tools/call order > server Server tools/call order
    client Internal evening > client Client tools/call order > server Server tools/call order > server Client elicitation/create
    client Internal evening > client Client tools/call order > server Server tools/call order > server Client elicitation/create > client Server elicitation/create
    client Internal evening > client Client tools/call order > server Server tools/call order > server Internal brew
    client Internal evening > client Client tools/call order > server Server tools/call order > server Internal brew
    ");
}

#[test]
fn views() {
    insta::assert_snapshot!(prints(("views", &[])), @r#"
    guest sees order (Some(Private))
      and can read shop://menu
      Unknown tool: close (available: order) (code -32602)
    console sees close and order (Some(Private))
      and can read shop://books
      and can read shop://menu
      and can close the shop
    "#);
}

#[test]
fn subscriptions() {
    insta::assert_snapshot!(prints(("subscriptions", &[])), @r"
    Handlers for lists:
      2025-06-18: the server now has 3 tools
      2026-07-28: the server now has 3 tools
    Watching a resource:
      2025-06-18: notes://todo has changed
      2026-07-28: notes://todo has changed
    An explicit subscription:
      the server accepted tools: true, prompts: false
      the tools have changed
      the client has closed it
    ");
}

#[test]
fn caching() {
    insta::assert_snapshot!(prints(("caching", &[])), @r"
    Connecting:
      sends server/discover
    First list:
      sends tools/list
      => hammer
    Second list:
      => hammer
    Refresh:
      sends tools/list
      => hammer
    Subscribing:
      sends subscriptions/listen
    After a change:
      sends tools/list
      => hammer, saw
    And again:
      => hammer, saw
    ");
}

#[test]
fn middleware() {
    insta::assert_snapshot!(prints(("middleware", &[])), @r#"
    server/discover: ok
    tools/call: ok
    => hello
    tools/call: "secret" is not allowed (code -32602)
    => "secret" is not allowed (code -32602)
    3 requests
    "#);
}

#[test]
fn answering() {
    insta::assert_snapshot!(prints(("answering", &[])), @r#"
    A server of 2025-11-25:
      the model is asked: Polly wants tea
      teahouse asks the user: Which tea?
      => {"content":{"text":"Polly wants tea","type":"text"},"model":"parrot","role":"assistant"}
      => {"action":"accept","content":{"cups":2,"tea":"green"}}
      => {"roots":[{"name":"Teahouse","uri":"file:///home/me/teahouse"}]}
    A server of 2026-07-28:
      the model is asked: Polly wants tea
      a server asks the user: Which tea?
      => {"content":{"text":"Polly wants tea","type":"text"},"model":"parrot","role":"assistant"}
      => {"action":"accept","content":{"cups":2,"tea":"green"}}
      => {"roots":[{"name":"Teahouse","uri":"file:///home/me/teahouse"}]}
    "#);
}

#[test]
fn extension() {
    insta::assert_snapshot!(prints(("extension", &[])), @r#"
    2025-11-25: it is 2
    server, in 2025-11-25: the clock was wound
    client: the clock struck 3
    2026-07-28: it is 2
    server, in 2026-07-28: the clock was wound
    client: the clock struck 3
    cannot send com.example/clock/now: the peer does not declare the extension com.example/clock
    "#);
}

#[test]
fn counter() {
    insta::assert_snapshot!(prints(("counter", &[])), @r"
    increment: 1
    increment: 2
    decrement: 1
    sum: 42
    2
    called as a function: 1
    ");
}

#[test]
fn elicitation() {
    insta::assert_snapshot!(prints(("elicitation", &[])), @r"
    2025-11-25
      the user is asked
      Hello, Ferris!
      Good evening, Ferris!
      forgotten
      the user is asked
      Hello again, Ferris!
    2026-07-28
      the user is asked
      Hello, Ferris!
      Good evening, Ferris!
      forgotten
      the user is asked
      Hello again, Ferris!
    ");
}

#[test]
fn long_report() {
    insta::assert_snapshot!(prints(("long_report", &[])), @r"
    timed out: true, after 60 s
    a report of 3 pages, after 180 s
    working: page 1 of 3
    working: page 2 of 3
    working: page 3 of 3
    completed: page 3 of 3
    a report of 3 pages
    resumed: a report of 60 pages
    ");
}

#[test]
fn worker() {
    insta::assert_snapshot!(prints(("worker", &[])), @r"
    Sunflowers, by another process
    failed: true: a picture needs a title
    ");
}

#[cfg(unix)]
#[test]
fn unix_socket() {
    insta::assert_snapshot!(prints(("unix_socket", &[])), @r#"
    the server has 3 sessions
    same process: true
    same process: true
    same process: true
    "#);
}

#[test]
fn custom_transport() {
    assert_eq!(prints(("custom_transport", &[])), "Hello, Ferris!\n");
}
