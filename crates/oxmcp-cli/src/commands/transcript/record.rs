//! `oxmcp record`: passes the messages of a host and a server through, and writes them to a file.

use std::{
    cell::Cell,
    env,
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use oxmcp::{
    Limits, stdio,
    transport::{Frame, Messages, ReadHalf, Transport, WriteHalf},
};
use serde_json::{Value, json, value::RawValue};
use tokio::{
    pin, select,
    time::{Instant, timeout},
};

use super::{
    format::{Header, Line, Side},
    redact::{Redactor, is_secret_name},
};
use crate::{
    args::{Connection, Record},
    failure::{Failure, Reason, Result},
    target::Server,
    terminal::{Terminal, stopped},
};

/// The time to wait for the last messages of a server after the host has ended the session.
const CLOSE: Duration = Duration::from_secs(10);
/// The most files of one name: each session of a host has its own.
const MAX_FILES: usize = 10_000;

pub(crate) async fn run(args: Record, terminal: &Terminal) -> Result<()> {
    let server = Server::find(args.target, terminal)?;
    let [file] = server.words.as_slice() else {
        return Err(Failure::usage(
            "expected one file to write to; `oxmcp record <TARGET> <FILE>`",
        ));
    };
    let mut transport = server.transport(&args.connection, terminal)?;
    server.announce(terminal);
    let limits = Limits::default();
    let (host_read, host_write) = stdio().connect(&limits).await?;
    let connected = transport.connect(&limits).await;
    let (server_read, server_write) =
        connected.map_err(|error| Failure::from(error).of_server(&server.label))?;
    let max_bytes = args.max_size.saturating_mul(1 << 20);
    let redactor = Redactor::new(known_secrets(&args.connection));
    let transcript = Transcript::create(Path::new(file), args.force, max_bytes, redactor)?;
    transcript.begin(&server.label)?;
    let passed = select! {
        passed = pass_both((host_read, host_write), (server_read, server_write), &transcript, terminal) => passed,
        () = stopped() => Ok(()),
    };
    let count = transcript.count();
    terminal.note(&format!(
        "recorded {count} messages in {}",
        transcript.path.display()
    ));
    let diagnosis = transport.diagnosis();
    passed.map_err(|failure| match diagnosis {
        Some(diagnosis) => Failure::new(failure.reason(), diagnosis),
        None => failure,
    })
}

/// The secrets that the command line names, which the messages may contain.
fn known_secrets(options: &Connection) -> Vec<String> {
    let headers = options.header.iter().map(|it| it.value.expose().to_owned());
    let of_env = options
        .header_env
        .iter()
        .filter_map(|it| env::var(&it.value).ok());
    let variables = options.env.iter().filter(|it| is_secret_name(&it.name));
    let variables = variables.map(|it| it.value.clone());
    headers.chain(of_env).chain(variables).collect()
}

/// Passes messages until one side ends.
async fn pass_both<R: ReadHalf, W: WriteHalf>(
    (mut host_read, mut host_write): (impl ReadHalf, impl WriteHalf),
    (mut server_read, mut server_write): (R, W),
    transcript: &Transcript,
    terminal: &Terminal,
) -> Result<()> {
    let has_ended = Cell::new(false);
    let up = async {
        let passed = pass(
            Side::Client,
            &mut host_read,
            &mut server_write,
            transcript,
            terminal,
        )
        .await;
        has_ended.set(true);
        // The result of the session is known by then.
        let _ = timeout(CLOSE, server_write.close()).await;
        passed
    };
    let down = pass(
        Side::Server,
        &mut server_read,
        &mut host_write,
        transcript,
        terminal,
    );
    pin!(up, down);
    select! {
        passed = &mut up => {
            passed?;
            let _ = timeout(CLOSE, down).await;
            Ok(())
        }
        passed = &mut down => {
            // The server ends because its input has ended.
            if has_ended.get() {
                return up.await;
            }
            passed?;
            Err(Failure::new(Reason::Unreachable, "the server has ended the session"))
        }
    }
}

/// Passes messages in one direction, until the sender ends.
async fn pass(
    from: Side,
    read: &mut impl ReadHalf,
    write: &mut impl WriteHalf,
    transcript: &Transcript,
    terminal: &Terminal,
) -> Result<()> {
    while let Some(frame) = read.read().await? {
        let mut message = match frame {
            Frame::Message(message) | Frame::MessageFrom { message, .. } => message.to_vec(),
            Frame::Failed { id, error } => json!({
                "jsonrpc": "2.0",
                "id": id,
                "error": {"code": error.code().value(), "message": error.message()},
            })
            .to_string()
            .into_bytes(),
            _ => {
                terminal.note("left out a message that is longer than the limit");
                continue;
            }
        };
        transcript.write(from, &message, terminal);
        // A line feed in JSON is white space: within strings it is escaped.
        for byte in &mut message {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        message.push(b'\n');
        write.write(Messages::from_lines(&message)?).await?;
    }
    Ok(())
}

/// The path with a number before its extension.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The file that is written.
struct Transcript {
    path: PathBuf,
    begun: Instant,
    redactor: Redactor,
    max_bytes: u64,
    state: Mutex<State>,
}

struct State {
    file: Option<std::fs::File>,
    bytes: u64,
    lines: u64,
}

impl Transcript {
    /// Creates the file. Only this user can read it: it has what the user and the model see.
    fn create(path: &Path, replaces: bool, max_bytes: u64, redactor: Redactor) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true);
        if replaces {
            options.create(true).truncate(true);
        } else {
            options.create_new(true);
        }
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let failed = |error: io::Error| {
            Failure::usage(format!("could not create {}: {error}", path.display()))
        };
        let mut name = path.to_owned();
        let mut number = 1;
        let file = loop {
            match options.open(&name) {
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_FILES =>
                {
                    number += 1;
                    name = numbered(path, number);
                }
                opened => break opened.map_err(failed)?,
            }
        };
        // A file that is replaced keeps its permissions otherwise.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .map_err(failed)?;
        Ok(Self {
            path: name,
            begun: Instant::now(),
            redactor,
            max_bytes,
            state: Mutex::new(State {
                file: Some(file),
                bytes: 0,
                lines: 0,
            }),
        })
    }

    /// Writes the first line.
    fn begin(&self, target: &str) -> Result<()> {
        let mut label = Value::from(target);
        self.redactor.redact(&mut label);
        let header = Header::new(label.as_str().unwrap_or_default());
        let line = serde_json::to_string(&header).map_err(io::Error::from)?;
        Ok(self.append(&line)?)
    }

    /// The number of messages in the file.
    fn count(&self) -> u64 {
        // The first line is no message.
        self.state().lines.saturating_sub(1)
    }

    /// Writes a message. A failure ends the recording, and not the session.
    fn write(&self, from: Side, message: &[u8], terminal: &Terminal) {
        let line = Line {
            t: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            from,
            message: self.redacted(message),
        };
        let written = serde_json::to_string(&line).map_err(io::Error::from);
        if let Err(error) = written.and_then(|line| self.append(&line)) {
            let path = self.path.display();
            terminal.note(&format!("stopped writing {path}: {error}"));
            self.state().file = None;
        }
    }

    /// The text of the message, if it has no secrets; otherwise another text without them. What is not JSON is a string.
    fn redacted(&self, message: &[u8]) -> Box<RawValue> {
        let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap_or_default();
        let Ok(mut value) = serde_json::from_slice::<Value>(message) else {
            let mut text = Value::from(String::from_utf8_lossy(message));
            self.redactor.redact(&mut text);
            return raw(&text);
        };
        if self.redactor.redact(&mut value) {
            return raw(&value);
        }
        match serde_json::from_slice::<Box<RawValue>>(message) {
            Ok(text) if !text.get().contains(['\n', '\r']) => text,
            _ => raw(&value),
        }
    }

    fn append(&self, line: &str) -> io::Result<()> {
        let mut state = self.state();
        let length = line.len() as u64 + 1;
        let is_full = state.bytes + length > self.max_bytes;
        let Some(file) = &mut state.file else {
            return Ok(());
        };
        if is_full {
            return Err(io::Error::other(
                "it has reached its maximum size, which `--max-size` sets",
            ));
        }
        file.write_all(format!("{line}\n").as_bytes())?;
        state.bytes += length;
        state.lines += 1;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
