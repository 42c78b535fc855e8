//! `stdio`: the standard streams of a real process, which is this test binary, started again.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread,
};

use oxmcp::{
    Limits, stdio,
    transport::{Frame, Messages, ReadHalf, Transport, WriteHalf},
};
use rustix::fs::OFlags;

use crate::child;

/// Marks the child process, and selects its action for each message.
const ROLE: &str = "OXMCP_TEST_STDIO";
/// The output of the test harness before the child connects.
const HEADER: &str = "\nrunning 1 test\n";

/// The child: echoes every message.
#[tokio::test]
#[ignore = "the process that the other tests start"]
async fn child() {
    let Some(role) = child::role(ROLE) else {
        return;
    };
    let limits = Limits::default().max_message_bytes(100_000);
    let (mut read, mut write) = stdio().connect(&limits).await.unwrap();
    if role == "twice" {
        let error = stdio().connect(&limits).await.unwrap_err();
        let line = format!("{:?}\n", error.to_string());
        write
            .write(Messages::from_lines(line.as_bytes()).unwrap())
            .await
            .unwrap();
    }
    if role == "kind" {
        let line = format!("{:?}\n", format!("{read:?} {write:?}"));
        let messages = Messages::from_lines(line.as_bytes()).unwrap();
        write.write(messages).await.unwrap();
    }
    while let Some(frame) = read.read().await.unwrap() {
        let mut line = match frame {
            Frame::Message(message) => message.to_vec(),
            _ => b"\"too long\"".to_vec(),
        };
        line.push(b'\n');
        if role == "stray" {
            println!("stray line");
            print!("stray half line");
            let status = Command::new("sh")
                .args(["-c", "echo stray child; cat"])
                .status();
            assert!(status.unwrap().success());
        }
        write
            .write(Messages::from_lines(&line).unwrap())
            .await
            .unwrap();
    }
    write.close().await.unwrap();
}

fn child_command(role: &str) -> Command {
    child::command("transport::stdio::child", ROLE, role)
}

/// Runs the child over pipes.
fn run(role: &str, input: &'static [u8]) -> Output {
    let mut child = child_command(role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writing = thread::spawn(move || stdin.write_all(input).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// The messages of the child, which follow the header.
fn messages(stdout: &[u8]) -> String {
    let text = String::from_utf8(stdout.to_vec()).unwrap();
    text.strip_prefix(HEADER)
        .unwrap_or_else(|| panic!("{text:?}"))
        .to_owned()
}

#[test]
fn every_message_is_answered_before_input_ends() {
    let output = run("echo", b"{\"a\":1}\r\n\n[]\n{\"half");
    assert_eq!(messages(&output.stdout), "{\"a\":1}\n[]\n{\"half\n");
}

#[test]
fn stray_print_does_not_reach_the_peer() {
    let output = run("stray", b"{}\n[]\n");
    assert_eq!(messages(&output.stdout), "{}\n[]\n");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    for stray in ["stray line", "stray half line", "stray child"] {
        assert_eq!(stderr.matches(stray).count(), 2, "{stderr}");
    }
    assert!(
        !stderr.contains("[]"),
        "a child process cannot eat the input: {stderr}"
    );
}

#[test]
fn huge_line_is_skipped() {
    let mut input = vec![b'x'; 3_000_000];
    input.extend_from_slice(b"\n{}\n");
    let output = run("echo", input.leak());
    assert_eq!(messages(&output.stdout), "\"too long\"\n{}\n");
}

#[test]
fn more_than_a_pipe_buffer_gets_through() {
    let line = format!("[{}]\n", "1,".repeat(40_000));
    let input = line.repeat(20);
    let output = run("echo", input.clone().into_bytes().leak());
    assert_eq!(messages(&output.stdout), input);
}

#[test]
fn stdio_connects_once() {
    let output = run("twice", b"{}\n");
    let stdout = messages(&output.stdout);
    assert!(stdout.contains("stdio() is already in use"), "{stdout}");
    assert!(
        stdout.ends_with("\n{}\n"),
        "the first session goes on: {stdout}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_and_sockets_need_no_thread() {
    let output = run("kind", b"");
    let stdout = messages(&output.stdout);
    assert!(
        !stdout.contains("thread") && stdout.matches("pipe").count() == 2,
        "{stdout}"
    );

    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let stdin = OwnedFd::from(theirs.try_clone().unwrap());
    let mut child = child_command("kind")
        .stdin(stdin)
        .stdout(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let mut stdout = String::new();
    ours.read_to_string(&mut stdout).unwrap();
    assert!(
        !stdout.contains("thread") && stdout.matches("socket").count() == 2,
        "{stdout}"
    );
    assert!(child.wait().unwrap().success());
}

#[test]
fn pipes_stay_blocking_for_other_holders() {
    let (child_stdin, mut to_child) = io::pipe().unwrap();
    let (mut from_child, child_stdout) = io::pipe().unwrap();
    let held = [
        OwnedFd::from(child_stdin.try_clone().unwrap()),
        OwnedFd::from(child_stdout.try_clone().unwrap()),
    ];
    let mut child = child_command("echo")
        .stdin(child_stdin)
        .stdout(child_stdout)
        .spawn()
        .unwrap();
    to_child.write_all(b"{}\n").unwrap();
    let mut answer = vec![0; HEADER.len() + 3];
    from_child.read_exact(&mut answer).unwrap();
    assert_eq!(messages(&answer), "{}\n");
    for descriptor in &held {
        let flags = rustix::fs::fcntl_getfl(descriptor).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK));
    }
    drop(to_child);
    assert!(child.wait().unwrap().success());
}

#[test]
fn stdio_works_over_sockets() {
    let (mut input, child_stdin) = UnixStream::pair().unwrap();
    let (mut output, child_stdout) = UnixStream::pair().unwrap();
    let mut child = child_command("echo")
        .stdin(OwnedFd::from(child_stdin))
        .stdout(OwnedFd::from(child_stdout))
        .spawn()
        .unwrap();
    input.write_all(b"{}\n").unwrap();
    drop(input);
    let mut answer = Vec::new();
    output.read_to_end(&mut answer).unwrap();
    assert_eq!(messages(&answer), "{}\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn stdio_works_over_one_shared_socket() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut child = child_command("echo")
        .stdin(OwnedFd::from(theirs.try_clone().unwrap()))
        .stdout(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    ours.write_all(b"{}\n[]\n").unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).unwrap();
    assert_eq!(messages(&answer), "{}\n[]\n");
    assert!(child.wait().unwrap().success());
}

/// A file for one test.
fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn stdio_works_over_files() {
    let (input, output) = (scratch("stdio-input"), scratch("stdio-output"));
    fs::write(&input, "{}\n[]\n{\"last\":1}").unwrap();
    let status = child_command("echo")
        .stdin(File::open(&input).unwrap())
        .stdout(File::create(&output).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(
        messages(&fs::read(&output).unwrap()),
        "{}\n[]\n{\"last\":1}\n"
    );
}

#[test]
fn null_input_ends_at_once() {
    let output = child_command("echo").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(messages(&output.stdout), "");
}

#[test]
fn closed_descriptors_end_at_once() {
    for redirection in ["<&-", ">&-", "<&- >&- 2>&-"] {
        let mut command = Command::new("sh");
        let child = child_command("echo");
        command
            .arg("-c")
            .arg(format!("exec \"$0\" \"$@\" {redirection}"));
        command
            .arg(child.get_program())
            .args(child.get_args())
            .env(ROLE, "echo");
        let status = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{redirection}");
    }
}

#[test]
fn stdio_works_over_a_terminal() {
    let script = "\
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
os.write(terminal, b'{\"typed\":1}\\n')
seen = b''
while seen.count(b'typed') < 2:  # the terminal's own echo, then ours
    seen += os.read(terminal, 1000)
os.write(terminal, b'\\x04')
while True:
    try:
        if not os.read(terminal, 1000):
            break
    except OSError:
        break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";
    let child = child_command("echo");
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(child.get_program())
        .args(child.get_args())
        .env(ROLE, "echo")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
