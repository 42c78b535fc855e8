//! `cargo xtask record FILE COMMAND...`: runs a server and records its input and output.
//!
//! Third-party clients start our server themselves, so only a program in between can see how it ends. Each line from the client is
//! recorded as `> line`, each line from the server as `< line`, and the end of the server as `exit STATUS`. If the client kills the
//! recorder before that, there is no `exit` line.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// The file of the record, into which both directions write.
#[derive(Clone)]
struct Record(Arc<Mutex<File>>);

impl Record {
    fn open(file: &str) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(file)?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    fn line(&self, mark: &str, line: &[u8]) -> io::Result<()> {
        let kept = [mark.as_bytes(), b" ", line.trim_ascii_end(), b"\n"].concat();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(&kept)
    }
}

/// Runs the command to its end, and returns the exit status of the command.
pub(crate) fn run(file: &str, command: &[&str]) -> ExitCode {
    match supervise(file, command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("record: {error}");
            ExitCode::FAILURE
        }
    }
}

fn supervise(file: &str, command: &[&str]) -> io::Result<u8> {
    let [program, args @ ..] = command else {
        return Err(io::Error::other("missing the command to run"));
    };
    let record = Record::open(file)?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;

    forward_input(&mut child, record.clone());
    if let Some(output) = child.stdout.take() {
        copy(output, io::stdout(), &record, "<")?;
    }
    let status = child.wait()?;
    record.line(
        "exit",
        status
            .code()
            .map_or_else(|| status.to_string(), |code| code.to_string())
            .as_bytes(),
    )?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1))
}

/// Copies standard input to the server. The thread ends with the process, because a read of standard input cannot be interrupted.
fn forward_input(child: &mut Child, record: Record) {
    if let Some(input) = child.stdin.take() {
        // A server that has already exited is not a failure of the recorder; the exit status shows how it ended.
        thread::spawn(move || copy(io::stdin(), input, &record, ">"));
    }
}

fn copy(from: impl Read, mut to: impl Write, record: &Record, mark: &str) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        record.line(mark, &line)?;
        to.write_all(&line)?;
        to.flush()?;
        line.clear();
    }
    Ok(())
}
