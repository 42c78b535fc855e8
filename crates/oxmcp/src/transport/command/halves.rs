//! The two halves of a connection to a process.

use std::sync::{Arc, atomic::AtomicU64};

use oxmcp_protocol::framing::{after_byte_order_mark, lines::NextLine};
use tokio::process::{ChildStdin, ChildStdout};

use crate::{
    error::Result,
    sync::Mutex,
    transport::{
        command::{
            diagnostics::Diagnostics,
            launcher::{Launched, Launcher},
            process::Process,
        },
        io::{LineReader, LineWriter},
        traits::{Frame, Messages, ReadHalf, WriteHalf},
    },
};

/// Starts a process. Returns the two halves of the connection to it.
pub(crate) fn connect(launcher: Launcher) -> Result<(CommandReader, CommandWriter)> {
    let Launched {
        output,
        input,
        process,
    } = launcher.launch()?;
    let next = NextOutput::default();
    let reader = CommandReader {
        lines: output,
        process: Arc::clone(&process),
        ended: false,
        next: Arc::clone(&next),
    };
    let writer = CommandWriter {
        lines: input,
        process,
        launcher,
        next,
    };
    Ok((reader, writer))
}

/// The output of a restarted process, handed over from the half that started it to the half that reads it.
type NextOutput = Arc<Mutex<Option<(LineReader<ChildStdout>, Arc<Process>)>>>;

/// Reads messages from a process that a [`Command`](super::Command) started.
#[derive(Debug)]
pub struct CommandReader {
    lines: LineReader<ChildStdout>,
    process: Arc<Process>,
    /// Whether the output has ended, and another process may have been started.
    ended: bool,
    next: NextOutput,
}

/// Writes messages to a process that a [`Command`](super::Command) started; closing it ends the process.
#[derive(Debug)]
pub struct CommandWriter {
    lines: LineWriter<ChildStdin>,
    process: Arc<Process>,
    launcher: Launcher,
    next: NextOutput,
}

impl CommandReader {
    /// Whether a line is a frame, and not a log line between the messages.
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

    /// The diagnostics of the process.
    pub(crate) fn diagnostics(&self) -> Arc<Diagnostics> {
        Arc::clone(&self.process.diagnostics)
    }
}

impl CommandWriter {
    /// Whether the pipe holds input that the process has not read.
    fn has_unread(&self) -> bool {
        #[cfg(unix)]
        let unread = self.lines.stream().map(rustix::io::ioctl_fionread);
        #[cfg(not(unix))]
        let unread: Option<std::io::Result<u64>> = None;
        matches!(unread, Some(Ok(1..)))
    }
}

impl ReadHalf for CommandReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        // The end of the old output may not have been read: the process may have closed only its input.
        if (self.ended || self.process.is_closing())
            && let Some((lines, process)) = self.next.lock().take()
        {
            (self.lines, self.process, self.ended) = (lines, process, false);
        }
        loop {
            // The exit status is more informative than a read error.
            let Some(found) = self.lines.find().await.unwrap_or(None) else {
                self.ended = true;
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
    // The session decides whether a byte order mark is tolerated.
    let line = after_byte_order_mark(line).unwrap_or(line);
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
        self.process.diagnostics.note_unread();
        Err(self.process.end_of_input().await.unwrap_or(error))
    }

    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        self.lines.bytes_written()
    }

    async fn close(&mut self) -> Result<()> {
        if self.has_unread() {
            self.process.diagnostics.note_unread();
        }
        let closed = self.lines.close().await;
        self.process.close().await.and(closed)
    }

    fn can_reconnect(&self) -> bool {
        true
    }

    async fn reconnect(&mut self) -> Result<()> {
        let Launched {
            output,
            input,
            process,
        } = self.launcher.launch()?;
        *self.next.lock() = Some((output, Arc::clone(&process)));
        (self.lines, self.process) = (input, process);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_not_messages() {
        for message in [
            "{}",
            " {\"a\":1}",
            "[{\"a\":1}]",
            "[ {",
            "[]",
            "{",
            "{ \"",
            "\t[ ]",
            "\u{feff}{\"a\":1}",
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
