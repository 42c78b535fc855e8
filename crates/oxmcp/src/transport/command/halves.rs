//! The two halves of a connection to a process.

use std::sync::Arc;

use oxmcp_protocol::framing::lines::NextLine;
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::{
    error::Result,
    transport::{
        command::{
            diagnostics::Diagnostics, process::Process, stderr::Stderr, supervisor::ExitTimeouts,
        },
        io::{LineReader, LineWriter},
        traits::{Frame, Messages, ReadHalf, WriteHalf},
    },
};

/// The two halves of the connection to a process that has just been started.
pub(super) fn connect(
    mut child: Child,
    name: String,
    timeouts: ExitTimeouts,
    policy: Stderr,
    max_message_bytes: usize,
) -> (CommandReader, CommandWriter) {
    let stdin = child.stdin.take().expect("stdin was piped");
    let stdout = child.stdout.take().expect("stdout was piped");
    let stderr = child.stderr.take();
    let process = Process::supervise(child, stderr, name, timeouts, policy);
    (
        CommandReader {
            lines: LineReader::new(stdout, max_message_bytes),
            process: Arc::clone(&process),
        },
        CommandWriter {
            lines: LineWriter::new(stdin),
            process,
        },
    )
}

/// Reads messages from a process that a [`Command`](super::Command) started.
#[derive(Debug)]
pub struct CommandReader {
    lines: LineReader<ChildStdout>,
    process: Arc<Process>,
}

/// Writes messages to a process that a [`Command`](super::Command) started; closing it ends the process.
#[derive(Debug)]
pub struct CommandWriter {
    lines: LineWriter<ChildStdin>,
    process: Arc<Process>,
}

impl CommandReader {
    /// Whether a line is no log line between the messages.
    fn is_frame(&self, found: &NextLine) -> bool {
        let NextLine::Line(line) = found else {
            return true;
        };
        let line = self.lines.line(line.clone());
        let diagnostics = &self.process.diagnostics;
        if may_be_message(line) {
            diagnostics.saw_message();
            return true;
        }
        diagnostics.saw_noise(line);
        false
    }

    /// What is known of the process.
    pub(super) fn diagnostics(&self) -> Arc<Diagnostics> {
        Arc::clone(&self.process.diagnostics)
    }
}

impl ReadHalf for CommandReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        loop {
            // A read error says less than how the process ended.
            let Some(found) = self.lines.find().await.unwrap_or(None) else {
                return self.process.end_of_output().await.map(|()| None);
            };
            if self.is_frame(&found) {
                return Ok(Some(self.lines.frame(found)));
            }
        }
    }

    fn try_read(&mut self) -> Option<Frame<'_>> {
        loop {
            let found = self.lines.try_find()?;
            if self.is_frame(&found) {
                return Some(self.lines.frame(found));
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.lines.is_drained()
    }
}

/// Whether a line looks like a JSON object or an array of them. `[INFO] starting` does not.
fn may_be_message(line: &[u8]) -> bool {
    if line.starts_with(b"{\"") {
        return true;
    }
    let mut bytes = line.iter().filter(|byte| !byte.is_ascii_whitespace());
    match (bytes.next(), bytes.next()) {
        (Some(b'{'), next) => matches!(next, Some(b'"' | b'}') | None),
        (Some(b'['), next) => matches!(next, Some(b'{' | b']') | None),
        _ => false,
    }
}

impl WriteHalf for CommandWriter {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        let Err(error) = self.lines.write(messages).await else {
            return Ok(());
        };
        if !error.is_closed() || self.process.is_closing() {
            return Err(error);
        }
        Err(self.process.end_of_input().await.unwrap_or(error))
    }

    async fn close(&mut self) -> Result<()> {
        let closed = self.lines.close().await;
        self.process.close().await.and(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_no_messages() {
        for message in [
            "{}",
            " {\"a\":1}",
            "[{\"a\":1}]",
            "[ {",
            "[]",
            "{",
            "{ \"",
            "\t[ ]",
        ] {
            assert!(may_be_message(message.as_bytes()), "{message:?}");
        }
        for noise in [
            "",
            "Listening",
            "[INFO] {}",
            "[2026-01-01]",
            "{ready}",
            "\u{1b}[1m{}",
            "1",
        ] {
            assert!(!may_be_message(noise.as_bytes()), "{noise:?}");
        }
    }
}
