//! `Command`: servers that are started as processes.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use oxmcp::{
    Command, Error, Limits,
    transport::{CommandReader, CommandWriter, Messages, ReadHalf, Stderr, Transport, WriteHalf},
};
use rustix::process::{Pid, Signal};
use tokio::sync::mpsc;

use crate::transport::{TOO_LONG, all, next};

/// Longer than any test should take: a step that waits for it must not be needed.
const LONG: Duration = Duration::from_secs(600);

fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

async fn connect(mut command: Command) -> (CommandReader, CommandWriter) {
    command.connect(&Limits::default()).await.unwrap()
}

async fn failure(mut command: Command) -> Error {
    command.connect(&Limits::default()).await.unwrap_err()
}

/// The error of a `read` that fails.
async fn read_failure(read: &mut CommandReader) -> Error {
    read.read().await.expect_err("the server is dead")
}

/// The process id in the server's next message, `[{"pid":123}]`.
async fn pid(read: &mut CommandReader) -> Pid {
    let message = next(read).await.unwrap();
    let digits: String = message.chars().filter(char::is_ascii_digit).collect();
    Pid::from_raw(digits.parse().unwrap()).unwrap()
}

/// Whether the process runs. A zombie does not.
fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until the process has ended. There is no event for a process that is not a child of this one.
async fn stopped(pid: Pid) {
    while runs(pid) {
        tokio::task::yield_now().await;
    }
}

fn message(text: &str) -> Messages<'_> {
    Messages::from_lines(text.as_bytes()).unwrap()
}

#[tokio::test]
async fn connecting_starts_the_command() {
    let (mut read, mut write) = connect(Command::new("cat").exit_timeout(LONG)).await;
    write.write(message("{\"a\":1}\n[]\n")).await.unwrap();
    assert_eq!(next(&mut read).await.unwrap(), "{\"a\":1}");
    assert_eq!(next(&mut read).await.unwrap(), "[]");
    write.close().await.unwrap();
    assert_eq!(next(&mut read).await, None);
    assert!(write.write(message("{}\n")).await.unwrap_err().is_closed());
    write.close().await.unwrap();
}

#[tokio::test]
async fn connecting_again_starts_another_process() {
    let mut command = sh("echo \"{\\\"pid\\\":$$}\"; cat");
    let (mut first, _first) = command.connect(&Limits::default()).await.unwrap();
    let (mut second, _second) = command.connect(&Limits::default()).await.unwrap();
    assert_ne!(pid(&mut first).await, pid(&mut second).await);
}

#[tokio::test]
async fn arguments_environment_and_directory_reach_the_server() {
    let script = "printf '{\"%s\":\"%s\",\"%s\":\"%s\"}\\n' \"$1\" \"$A\" \"$B\" \"$PWD\"";
    let command = Command::new("/bin/sh")
        .args(["-c", script])
        .arg("zero")
        .arg("$(no shell) 'here'")
        .env("GONE", "1")
        .env_clear()
        .env("A", "$A")
        .envs([("B", "b"), ("C", "c")])
        .env_remove("C")
        .current_dir("/");
    let (mut read, _write) = connect(command).await;
    let expected = "{\"$(no shell) 'here'\":\"$A\",\"b\":\"/\"}";
    assert_eq!(next(&mut read).await.unwrap(), expected);
}

#[tokio::test]
async fn other_kinds_of_command_convert() {
    let mut std = std::process::Command::new("echo");
    std.arg("[]");
    let (mut read, _write) = connect(Command::from(std)).await;
    assert_eq!(next(&mut read).await.unwrap(), "[]");
    let tokio = tokio::process::Command::new("cat");
    let (_read, mut write) = connect(Command::from(tokio)).await;
    write.close().await.unwrap();
}

#[tokio::test]
async fn missing_program_error_names_the_searched_path() {
    let command = Command::new("no-such-mcp-server")
        .arg("--flag")
        .env("PATH", "/bin:/nowhere");
    let error = failure(command).await.to_string();
    assert!(
        error.contains("cannot start the server no-such-mcp-server: "),
        "{error}"
    );
    assert!(error.contains("PATH (/bin, /nowhere)"), "{error}");
    assert!(error.contains("use the full path"), "{error}");

    let error = failure(Command::new("npx").env("PATH", "/nowhere"))
        .await
        .to_string();
    assert!(error.contains("install Node.js"), "{error}");

    let error = failure(Command::new("server --flag")).await.to_string();
    assert!(error.contains("pass arguments with arg()"), "{error}");

    let error = failure(Command::new("/no/such/server")).await.to_string();
    assert!(
        error.contains("file /no/such/server does not exist"),
        "{error}"
    );

    let error = failure(Command::new("sh").current_dir("/no/such/directory"))
        .await
        .to_string();
    assert!(
        error.contains("working directory /no/such/directory does not exist"),
        "{error}"
    );

    let error = failure(Command::new("/etc/passwd")).await.to_string();
    assert!(error.contains("cannot execute it"), "{error}");
}

#[tokio::test]
async fn missing_interpreter_has_its_own_error() {
    use std::os::unix::fs::PermissionsExt;

    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-interpreter");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let error = failure(Command::new(&script)).await.to_string();
    assert!(error.contains("exists, but the interpreter"), "{error}");
}

#[tokio::test]
async fn exit_before_the_first_message_is_explained() {
    let script = "echo Starting...; echo oops >&2; echo no config >&2; exit 3";
    let (mut read, _write) = connect(sh(script).env("TOKEN", "secret")).await;
    let error = read_failure(&mut read).await;
    assert!(error.is_closed());
    let error = error.to_string();
    assert!(error.contains("exited with status 3 after"), "{error}");
    assert!(error.contains("without sending a message"), "{error}");
    assert!(error.contains("\"Starting...\""), "{error}");
    assert!(error.ends_with("\n    oops\n    no config"), "{error}");
    assert!(!error.contains("secret"), "{error}");
    assert_eq!(
        read_failure(&mut read).await.to_string().lines().count(),
        error.lines().count()
    );
}

#[tokio::test]
async fn clean_exit_before_first_message_is_explained() {
    let (mut read, _write) = connect(sh("exit 0")).await;
    let error = read_failure(&mut read).await.to_string();
    assert!(
        error.contains("exited with status 0") && error.contains("without sending"),
        "{error}"
    );
}

#[tokio::test]
async fn later_clean_exit_ends_the_session() {
    let (mut read, mut write) = connect(sh("echo '{}'; read line; echo '[]'")).await;
    assert_eq!(next(&mut read).await.unwrap(), "{}");
    write.write(message("{}\n")).await.unwrap();
    assert_eq!(all(&mut read).await, ["[]"]);
}

#[tokio::test]
async fn killed_server_error_names_the_signal() {
    let (mut read, mut write) =
        connect(sh("echo last words >&2; echo \"{\\\"pid\\\":$$}\"; cat")).await;
    let server = pid(&mut read).await;
    rustix::process::kill_process(server, Signal::KILL).unwrap();
    let error = read_failure(&mut read).await;
    assert!(error.is_closed());
    let error = error.to_string();
    assert!(
        error.contains("the server was killed by SIGKILL after"),
        "{error}"
    );
    assert!(
        error.contains("last words") && !error.contains("without sending"),
        "{error}"
    );

    let error = write.write(message("{}\n")).await.unwrap_err();
    assert!(
        error.is_closed() && error.to_string().contains("SIGKILL"),
        "{error}"
    );
    write.close().await.unwrap();
}

#[tokio::test]
async fn server_closing_only_its_output_is_reported() {
    let (mut read, mut write) =
        connect(sh("echo '{}'; exec >&-; while read line; do :; done").exit_timeout(LONG)).await;
    assert_eq!(next(&mut read).await.unwrap(), "{}");
    let error = read_failure(&mut read).await;
    assert!(
        error.to_string().contains("closed its standard output"),
        "{error}"
    );
    write.close().await.unwrap();
}

#[tokio::test]
async fn log_lines_on_standard_output_are_skipped() {
    let script =
        "echo 'Listening on 3000'; echo '[INFO] up'; echo '{\"a\":1}'; echo bye; echo '[]'";
    let (mut read, _write) = connect(sh(script)).await;
    assert_eq!(all(&mut read).await, ["{\"a\":1}", "[]"]);
}

#[tokio::test]
async fn huge_line_and_truncated_message_are_reported() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\n[]\\n{\"half'";
    let limits = Limits::default().max_message_bytes(1 << 20);
    let (mut read, _write) = sh(script).connect(&limits).await.unwrap();
    assert_eq!(all(&mut read).await, [TOO_LONG, "[]", "{\"half"]);
}

#[tokio::test]
async fn standard_error_goes_to_its_configured_destination() {
    let (sender, mut lines) = mpsc::channel(10);
    let stderr = Stderr::lines(move |line| sender.try_send(line.to_owned()).unwrap());
    let (_read, _write) = connect(sh("printf 'one\\ntwo\\n\\nhalf' >&2").stderr(stderr)).await;
    for expected in ["one", "two", "half"] {
        assert_eq!(lines.recv().await.unwrap(), expected);
    }

    let (mut read, _write) = connect(sh("echo l''ost >&2; exit 1").stderr(Stderr::null())).await;
    let error = read_failure(&mut read).await.to_string();
    assert!(
        error.contains("status 1") && !error.contains("lost"),
        "{error}"
    );
}

#[tokio::test]
async fn panicking_callback_does_not_end_the_server() {
    let stderr = Stderr::lines(|line| assert_ne!(line, "one"));
    let script = "echo one >&2; read go; echo two >&2; echo '{}'; l''s /nowhere; exit 1";
    let (mut read, mut write) = connect(sh(script).stderr(stderr)).await;
    write.write(message("{}\n")).await.unwrap();
    assert_eq!(next(&mut read).await.unwrap(), "{}");
    let error = read_failure(&mut read).await.to_string();
    assert!(
        error.contains("status 1") && error.contains("    two\n"),
        "{error}"
    );
}

#[tokio::test]
async fn verbosely_logging_server_is_never_blocked() {
    let script =
        "head -c 1000000 /dev/zero | tr '\\0' '\\n' >&2; yes log | head -n 100000 >&2; echo '{}'";
    let count = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&count);
    let stderr = Stderr::lines(move |_| *counter.lock().unwrap() += 1);
    let (mut read, _write) = connect(sh(script).stderr(stderr)).await;
    assert_eq!(next(&mut read).await.unwrap(), "{}");
    assert!(*count.lock().unwrap() > 0);
}

#[tokio::test]
async fn ignored_end_of_input_is_followed_by_sigterm() {
    // Not a shell with a trap, which can lose the signal while it forks.
    let script = "\
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print('{}', flush=True)
signal.sigwait([signal.SIGTERM])
print('[]', flush=True)
";
    let python = Command::new("python3").args(["-c", script]);
    let command = python.exit_timeout(Duration::ZERO).kill_timeout(LONG);
    let (mut read, mut write) = connect(command).await;
    assert_eq!(next(&mut read).await.unwrap(), "{}");
    write.close().await.unwrap();
    assert_eq!(all(&mut read).await, ["[]"], "it could still say goodbye");
}

#[tokio::test]
async fn ignored_sigterm_is_followed_by_sigkill() {
    let script = "trap '' TERM; echo \"{\\\"pid\\\":$$}\"; while :; do sleep 600; done";
    let command = sh(script)
        .exit_timeout(Duration::ZERO)
        .kill_timeout(Duration::from_millis(1));
    let (mut read, mut write) = connect(command).await;
    let server = pid(&mut read).await;
    let error = write.close().await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(error.to_string().contains("was killed"), "{error}");
    let reaped = rustix::process::test_kill_process(server);
    assert!(reaped.is_err(), "neither runs nor is a zombie");
    write.close().await.unwrap_err();
}

#[tokio::test]
async fn closing_kills_the_servers_child_processes() {
    // The server exits at the end of its input; its background process would not.
    let script = "sleep 600 & echo \"{\\\"pid\\\":$!}\"; cat";
    let (mut read, mut write) = connect(sh(script).exit_timeout(LONG)).await;
    let grandchild = pid(&mut read).await;
    write.close().await.unwrap();
    stopped(grandchild).await;
}

#[tokio::test]
async fn children_of_dead_server_are_killed() {
    // The grandchild holds standard output open: unless it is killed, reading would not end.
    let script = "sleep 600 & echo \"{\\\"pid\\\":$!}\"; read line; exit 4";
    let (mut read, mut write) = connect(sh(script)).await;
    let grandchild = pid(&mut read).await;
    write.write(message("{}\n")).await.unwrap();
    let error = read_failure(&mut read).await.to_string();
    assert!(error.contains("status 4"), "{error}");
    stopped(grandchild).await;
}

#[tokio::test]
async fn dropping_ends_the_process_group_in_background() {
    let script = "trap '' TERM; (trap '' TERM; sleep 600) & echo \"{\\\"pid\\\":$!}\"; \
                  echo \"{\\\"pid\\\":$$}\"; sleep 600";
    let command = sh(script).kill_timeout(Duration::from_millis(1));
    let (mut read, write) = connect(command).await;
    let (grandchild, server) = (pid(&mut read).await, pid(&mut read).await);
    drop((read, write));
    stopped(grandchild).await;
    while rustix::process::test_kill_process(server).is_ok() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn runtime_shutdown_ends_the_process_group() {
    let script = "trap '' TERM; sleep 600 & echo \"{\\\"pid\\\":$!}\"; wait";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (grandchild, halves) = runtime.block_on(async {
        let (mut read, write) = connect(sh(script)).await;
        (pid(&mut read).await, (read, write))
    });
    drop(runtime);
    while runs(grandchild) {
        std::thread::yield_now();
    }
    drop(halves);
}

#[test]
fn runtime_shutdown_leaves_no_zombie() {
    let script = "echo \"{\\\"pid\\\":$$}\"; exec sleep 600";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (server, halves) = runtime.block_on(async {
        let (mut read, write) = connect(sh(script)).await;
        (pid(&mut read).await, (read, write))
    });
    drop(runtime);
    let begun = tokio::time::Instant::now();
    while rustix::process::test_kill_process(server).is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it was never reaped"
        );
        std::thread::yield_now();
    }
    drop(halves);
}

#[tokio::test]
async fn only_exit_at_the_probe_restarts_the_server() {
    for (script, starts) in [
        // The server cannot start.
        (
            "echo start >> \"$STARTS\"; sleep 0.1; echo 'no config' >&2; exit 3",
            1,
        ),
        // The server exits at the probe, or without a word on it.
        ("echo start >> \"$STARTS\"; read -r line; exit 3", 2),
    ] {
        let file = format!("oxmcp-starts-{}-{starts}", std::process::id());
        let file = std::env::temp_dir().join(file);
        let command = sh(script).env("STARTS", &file);
        let error = oxmcp::Client::new("c", "1").connect(command).await;
        let error = error.unwrap_err();
        let started = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(started.lines().count(), starts, "{error}");
        assert_eq!(
            error.message().contains("started twice"),
            starts == 2,
            "{error}"
        );
        assert_eq!(
            error.message().matches("status 3").count(),
            starts,
            "{error}"
        );
    }
}

/// A server of 2026-07-28 whose tool returns its process id, or ends the process.
const MORTAL: &str = r#"
while read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"server/discover"'*) result='"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}' ;;
    *'"die"'*) echo 'I die' >&2; exit 3 ;;
    *) result='"content":[{"type":"text","text":"'$$'"}]' ;;
  esac
  echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"resultType":"complete",'"$result"'}}'
done
"#;

#[tokio::test]
async fn exited_process_is_restarted_by_next_call() {
    let client = oxmcp::Client::new("c", "1").revisions([oxmcp::Revision::LATEST]);
    let session = client.connect(sh(MORTAL)).await.unwrap();
    let pid = async || {
        let result = session.call_tool("pid", ()).await.unwrap();
        result.content[0].as_text().unwrap().to_owned()
    };
    let first = pid().await;
    assert_eq!(pid().await, first);
    for _ in 0..2 {
        let before = pid().await;
        let error = session.call_tool("die", ()).await.unwrap_err();
        assert!(error.is_closed(), "{error}");
        for words in ["status 3", "I die"] {
            assert!(error.message().contains(words), "{error}");
        }
        assert_ne!(pid().await, before);
    }
    session.close().await.unwrap();
    assert!(session.call_tool("pid", ()).await.unwrap_err().is_closed());
}

/// A server of 2026-07-28 that stops reading after the first request of its first start.
const DEAF: &str = r#"
echo start >> "$STARTS"
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    starts=$(wc -l < "$STARTS")
    [ "$starts" -gt 1 ] || exec 0<&-
    case "$line" in
    *server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}' ;;
    *) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","content":[]}}' ;;
    esac
    [ "$starts" -gt 1 ] || exec sleep 100
done
"#;

#[tokio::test]
async fn server_closing_only_its_input_is_restarted_once() {
    let file = std::env::temp_dir().join(format!("oxmcp-deaf-{}", std::process::id()));
    let command = sh(DEAF)
        .env("STARTS", &file)
        .exit_timeout(Duration::from_millis(50));
    let session = oxmcp::Client::new("c", "1").connect(command).await.unwrap();
    while session.call_tool("t", ()).await.is_err() {}
    session.call_tool("t", ()).await.unwrap();
    let started = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(started.lines().count(), 2);
    session.close().await.unwrap();
}

#[tokio::test]
async fn echoing_server_is_recognized() {
    let error = oxmcp::Client::new("c", "1")
        .connect(Command::new("cat"))
        .await;
    let error = error.unwrap_err();
    assert!(error.is_unsupported(), "{error}");
    assert!(error.message().contains("`cat`"), "{error}");
}

#[tokio::test]
async fn started_server_may_be_silent_for_a_while() {
    let silent = sh("exec sleep 600").start_timeout(Duration::from_millis(25));
    let silent = silent.exit_timeout(Duration::ZERO);
    let client = oxmcp::Client::new("c", "1");
    let error = client.connect(silent).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    for words in ["25ms", "Command::start_timeout", "(program: sh)"] {
        assert!(error.message().contains(words), "{error}");
    }
    // Arguments are often secrets.
    assert!(!error.message().contains("sleep 600"), "{error}");
}

#[tokio::test]
async fn lines_on_standard_error_are_signs_of_life() {
    let mut command = sh("read line; echo downloading >&2; exec sleep 600");
    let (_read, mut write) = command.connect(&Limits::default()).await.unwrap();
    let startup = command.startup().unwrap();
    let started = startup.last_activity();
    write.write(message("{}\n")).await.unwrap();
    while startup.last_activity() == started {
        tokio::task::yield_now().await;
    }
}

#[test]
fn debug_output_hides_the_environment() {
    let command = Command::new("server").arg("x").env("TOKEN", "secret");
    let debug = format!("{command:?}");
    assert!(
        debug.contains("TOKEN") && !debug.contains("secret"),
        "{debug}"
    );
    assert_eq!(command.name(), "server");
}

#[tokio::test]
async fn running_server_exposes_its_state() {
    let mut command = sh("echo 'Welcome to the tea house'; echo '{\"a\":1}'; cat");
    assert_eq!(command.diagnosis(), None);
    let (mut read, _write) = command.connect(&Limits::default()).await.unwrap();
    next(&mut read).await.unwrap();
    let known = command.diagnosis().unwrap();
    assert!(known.contains("the server is still running"), "{known}");
    assert!(known.contains("Welcome to the tea house"), "{known}");
}
