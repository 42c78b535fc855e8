//! The commands as scripts run them: their output, and their exit codes.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use serde_json::{Value, json};

use crate::support::{notes, parts, run, run_in};

#[test]
fn inspect_shows_signatures() {
    let (out, err, code) = run("inspect", &["inspect"]);
    assert_eq!((err.as_str(), code), ("", 0));
    insta::assert_snapshot!(out, @r"
    notes 1.0.0
      revision 2026-07-28
      offers tools, prompts, resources, completions

    Instructions
      Search before you write.

    Tools (3)
      delete()
          Delete all notes
      draw()
          Draw a note
      search(limit?: integer = 10, query: string) -> {hits: string[]}
          Search the notes

    Prompts (1)
      poem(topic)
          Write a poem

    Resources (2)
      notes://photo
      notes://today

    Resource templates (1)
      notes://days/{day}
          The notes of a day
    ");
    let (out, _, code) = run(
        "inspect-json",
        &["inspect", "--json", "--revision", "2025-06-18"],
    );
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["server"]["name"], "notes");
    assert_eq!(report["revision"], "2025-06-18");
    assert_eq!(report["tools"][2]["name"], "search");
    assert_eq!(report["deviations"], json!([]));
}

#[test]
fn call_types_its_arguments() {
    for (args, expected) in [
        (
            &["query=tea", "limit=2"][..],
            json!({"hits": ["tea 1", "tea 2"]}),
        ),
        (&["query=012", "limit:=1"], json!({"hits": ["012 1"]})),
        (
            &["--args", r#"{"query": "a", "limit": 1}"#],
            json!({"hits": ["a 1"]}),
        ),
    ] {
        let mut all = vec!["call", "search", "--structured"];
        all.extend(args);
        let (out, err, code) = run("call", &all);
        assert_eq!((err.as_str(), code), ("", 0));
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);
    }
}

#[test]
fn mistakes_are_explained() {
    for (args, expected, exit) in [
        (&["call"][..], "oxmcp: no tool given", 2),
        (
            &["call", "serch", "query=a"],
            "oxmcp: the server has no tool \"serch\"; did you mean search",
            1,
        ),
        (
            &["call", "search"],
            "oxmcp: missing argument `query`; expected search(",
            2,
        ),
        (
            &["call", "search", "query=a", "limit=many"],
            "oxmcp: argument `limit` is \"many\"; expected integer",
            2,
        ),
        (&["call", "search", "query=a", "limit=999"], "999", 1),
        (&["read", "notes://none"], "notes://none", 1),
        (&["prompt", "poem"], "topic", 1),
        (
            &["complete", "poem"],
            "expected a prompt or a URI template",
            2,
        ),
        (&["call", "delete"], "there is no terminal to answer", 6),
        (&["call", "delete", "--decline"], "oxmcp: tool failed", 1),
        (
            &["call", "delete", "--answer", "confirmed=false"],
            "oxmcp: tool failed: nothing was deleted",
            1,
        ),
        (
            &["inspect", "--header", "a: b"],
            "headers are for servers at a URL",
            2,
        ),
        (
            &["inspect", "--timeout", "soon"],
            "expected a time such as 30s",
            2,
        ),
        (
            &["inspect", "--revision", "2020-01-01"],
            "expected one of 2024-11-05",
            2,
        ),
    ] {
        let (out, err, code) = run("mistakes", args);
        assert!(err.contains(expected), "{args:?}: {err}");
        assert_eq!((out.as_str(), code), ("", exit), "{args:?}: {err}");
    }
}

#[test]
fn questions_are_answered_from_the_command_line() {
    for revision in ["2025-06-18", "2026-07-28"] {
        let (out, err, code) = run(
            "answers",
            &[
                "call",
                "delete",
                "--answer",
                "confirmed=true",
                "--revision",
                revision,
            ],
        );
        assert_eq!((out.as_str(), err.as_str(), code), ("deleted\n", "", 0));
    }
}

#[test]
fn results_are_printed_as_they_are() {
    let (out, _, code) = run("read", &["read", "notes://today"]);
    assert_eq!((out.as_str(), code), ("Buy tea.\n", 0));
    let (out, _, code) = run("read-template", &["read", "notes://days/Monday"]);
    assert_eq!((out.as_str(), code), ("Notes of Monday", 0));
    let notes = notes();
    let output = run_in("read-bytes", None, &["read", "notes://photo", "--", &notes]);
    assert_eq!(output.stdout, [0, 159, 146, 150]);
    let (out, _, code) = run("prompt", &["prompt", "poem", "topic=tea"]);
    assert_eq!(
        (out.as_str(), code),
        ("[user]\nWrite a poem about tea.\n", 0)
    );
    let (out, _, code) = run("complete", &["complete", "notes://days/{day}", "day=T"]);
    assert_eq!((out.as_str(), code), ("Tuesday\n", 0));
    let (out, _, code) = run("draw", &["call", "draw", "--output", "pictures"]);
    assert_eq!((out.trim(), code), ("pictures/image-1.png", 0));
}

#[test]
fn servers_that_do_not_start_are_unreachable() {
    let notes = notes();
    let broken = parts(run_in("broken", None, &["inspect", "--", &notes, "broken"]));
    assert!(broken.1.contains("NOTES_FOLDER"), "{}", broken.1);
    assert_eq!(broken.2, 4);
    let missing = parts(run_in(
        "missing",
        None,
        &["inspect", "--json", "--", "/no/such/server"],
    ));
    let line: Value = serde_json::from_str(&missing.1).unwrap();
    assert_eq!(
        (&line["error"]["reason"], missing.2),
        (&json!("unreachable"), 4)
    );
    let refused = parts(run_in(
        "refused",
        None,
        &["inspect", "http://127.0.0.1:9/mcp"],
    ));
    assert_eq!(refused.2, 4, "{}", refused.1);
}

#[test]
fn server_that_needs_a_login_opens_no_browser() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    let (out, err, code) = parts(run_in("login", None, &["inspect", &url]));
    assert_eq!((out.as_str(), code), ("", 3), "{err}");
}

#[test]
fn configured_servers_are_found_by_name() {
    let notes = notes();
    let config = json!({"mcpServers": {
        "notes": {"command": notes, "args": []},
        "other": {"command": "other", "env": {"TOKEN": "${OXMCP_TEST_UNSET}"}},
    }});
    let config = config.to_string();
    for target in ["notes", "mcp.json:notes", "mcp.json#notes"] {
        let (out, err, code) = parts(run_in(
            "config",
            Some(&config),
            &["read", target, "notes://today"],
        ));
        assert_eq!((out.as_str(), code), ("Buy tea.\n", 0), "{err}");
        assert!(err.contains("starting `"), "{err}");
    }
    let (_, err, code) = parts(run_in("config", Some(&config), &["inspect", "other"]));
    assert!(err.contains("OXMCP_TEST_UNSET"), "{err}");
    assert_eq!(code, 2);
    let (_, err, code) = parts(run_in("config", Some(&config), &["inspect", "none"]));
    assert!(err.contains("no server \"none\""), "{err}");
    assert_eq!(code, 2);
    let (out, _, code) = parts(run_in("config", Some(&config), &["config", "list"]));
    assert!(out.contains("  other: other"), "{out}");
    assert_eq!(code, 0);
}

#[test]
fn pages_for_shells_are_generated() {
    for (args, expected) in [
        (&["completions", "bash"][..], "_oxmcp"),
        (&["man"], ".TH oxmcp"),
    ] {
        let (out, _, code) = parts(run_in("pages", None, args));
        assert!(out.contains(expected), "{out}");
        assert_eq!(code, 0);
    }
}
