//! The diagnostics of a process: its last output and how it ended, for the error when it fails.

use std::{
    collections::VecDeque,
    fmt::Write,
    process::ExitStatus,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::time::Instant;

use crate::sync::Mutex;

/// The number of lines of standard error that are kept, with at most `TAIL_BYTES` in total: as much as fits on a screen.
const TAIL_LINES: usize = 20;
const TAIL_BYTES: usize = 8 << 10;
/// The number of bytes of one line that are kept.
const LINE_BYTES: usize = 1 << 10;
/// The number of bytes that are kept of the line that was not a message.
const NOISE_BYTES: usize = 200;

/// The bounded record of a process's output other than messages.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    name: String,
    started: Instant,
    spoke: AtomicBool,
    left_unread: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The time at which the first message or the last line of standard error arrived.
    last_activity: Option<Instant>,
    tail: VecDeque<String>,
    tail_bytes: usize,
    /// The first line of standard output that was not a message.
    stray_line: Option<String>,
}

impl Diagnostics {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            started: Instant::now(),
            spoke: AtomicBool::new(false),
            left_unread: AtomicBool::new(false),
            seen: Mutex::default(),
        }
    }

    /// Records that the server sent a message.
    pub(crate) fn saw_message(&self) {
        if !self.has_spoken() {
            self.spoke.store(true, Ordering::Relaxed);
            self.seen.lock().last_activity = Some(Instant::now());
        }
    }

    pub(crate) fn has_spoken(&self) -> bool {
        self.spoke.load(Ordering::Relaxed)
    }

    /// Records that the server ended, and that some of its input is still in the pipe.
    pub(crate) fn note_unread(&self) {
        self.left_unread.store(true, Ordering::Relaxed);
    }

    pub(crate) fn left_unread(&self) -> bool {
        self.left_unread.load(Ordering::Relaxed)
    }

    /// Records a line of standard output that is not a message.
    pub(crate) fn saw_noise(&self, line: &[u8]) {
        if self.seen.lock().stray_line.is_some() {
            return;
        }
        let stray_line = cut(&String::from_utf8_lossy(line), NOISE_BYTES);
        tracing::warn!(
            server = self.name,
            line = stray_line,
            "skipping output of the server that is not a message"
        );
        self.seen.lock().stray_line = Some(stray_line);
    }

    /// The time at which the server was started, sent its first message, or last wrote a line to standard error.
    pub(crate) fn last_activity(&self) -> Instant {
        self.seen.lock().last_activity.unwrap_or(self.started)
    }

    /// Records a line that the server wrote to standard error.
    pub(crate) fn saw_stderr(&self, line: &str) {
        let line = cut(line, LINE_BYTES);
        let mut seen = self.seen.lock();
        seen.last_activity = Some(Instant::now());
        seen.tail_bytes += line.len();
        seen.tail.push_back(line);
        while seen.tail.len() > TAIL_LINES || seen.tail_bytes > TAIL_BYTES {
            let Some(first) = seen.tail.pop_front() else {
                break;
            };
            seen.tail_bytes -= first.len();
        }
    }

    /// A report of what happened to the server, for people to read.
    pub(crate) fn report(&self, what: &str) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        let mut text = format!("the server {what} after {seconds:.1} s");
        if !self.has_spoken() {
            text.push_str(", without sending a message");
        }
        // Writing to a String cannot fail.
        let _ = write!(text, " (program: {})", self.name);
        let seen = self.seen.lock();
        if let Some(stray_line) = &seen.stray_line {
            let _ = write!(
                text,
                "\nstandard output must contain only messages, but contained: {stray_line:?}"
            );
        }
        if !seen.tail.is_empty() {
            text.push_str("\nlast lines of its standard error:");
            for line in &seen.tail {
                let _ = write!(text, "\n    {line}");
            }
        }
        text
    }
}

/// The beginning of a text, at most `bytes` of it.
fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// The end of a process in words: "exited with status 1", "was killed by SIGKILL".
pub(crate) fn ending(status: ExitStatus) -> String {
    if let Some(name) = signal_name(status) {
        return format!("was killed by {name}");
    }
    match status.code() {
        Some(126) => "exited with status 126 (from a shell: not executable)".into(),
        Some(127) => "exited with status 127 (from a shell: command not found)".into(),
        Some(code) => format!("exited with status {code}"),
        None => format!("ended ({status})"),
    }
}

#[cfg(unix)]
fn signal_name(status: ExitStatus) -> Option<String> {
    use std::os::unix::process::ExitStatusExt;

    use rustix::process::Signal;

    let number = status.signal()?;
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    let name = names
        .iter()
        .find(|(signal, _)| signal.as_raw() == number)
        .map(|(_, name)| (*name).to_owned());
    Some(name.unwrap_or_else(|| format!("signal {number}")))
}

#[cfg(not(unix))]
fn signal_name(_: ExitStatus) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test]
    async fn tail_is_bounded() {
        let diagnostics = Diagnostics::new("server".into());
        for number in 0..100 {
            diagnostics.saw_stderr(&format!("line {number}"));
        }
        let report = diagnostics.report("was killed by SIGKILL");
        assert!(!report.contains("line 79\n"), "{report}");
        assert!(
            report.contains("line 80\n") && report.ends_with("line 99"),
            "{report}"
        );

        for _ in 0..100 {
            diagnostics.saw_stderr(&"ü".repeat(10_000));
        }
        let report = diagnostics.report("was killed by SIGKILL");
        assert!(report.len() < TAIL_BYTES + 500, "{}", report.len());
    }

    #[tokio::test(start_paused = true)]
    async fn messages_and_stderr_lines_are_signs_of_life() {
        let diagnostics = Diagnostics::new("server".into());
        let start = Instant::now();
        let second = Duration::from_secs(1);
        for (says, last) in [("message", 1), ("message", 1), ("line", 3)] {
            advance(second).await;
            match says {
                "message" => diagnostics.saw_message(),
                line => diagnostics.saw_stderr(line),
            }
            assert_eq!(diagnostics.last_activity(), start + second * last);
        }
    }

    #[tokio::test]
    async fn first_unparsable_line_is_kept() {
        let diagnostics = Diagnostics::new("server".into());
        diagnostics.saw_noise(b"Listening on \xff port");
        diagnostics.saw_noise(b"more");
        let report = diagnostics.report("exited with status 1");
        assert!(report.contains("without sending a message"), "{report}");
        assert!(
            report.contains("\"Listening on \u{fffd} port\""),
            "{report}"
        );
        assert!(!report.contains("more"), "{report}");
    }
}
