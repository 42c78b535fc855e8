//! The standard error of a server: logged, passed on, inherited or dropped.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    process::Stdio,
    sync::Arc,
};

use oxmcp_protocol::framing::lines::NextLine;
use tokio::{process::ChildStderr, sync::watch};

use crate::transport::{command::diagnostics::Diagnostics, io::LineReader};

/// The maximum length of a line, in bytes. Longer lines are skipped, because they are not log lines.
const MAX_LINE: usize = 64 << 10;

/// The destination of a server's standard error, where servers log.
/// See [`Command::stderr`](super::Command::stderr).
///
/// ```
/// use oxmcp::{Command, transport::Stderr};
///
/// let server = Command::new("my-server").stderr(Stderr::lines(|line| eprintln!("my-server: {line}")));
/// ```
#[derive(Clone)]
pub struct Stderr(Policy);

#[derive(Clone)]
enum Policy {
    Log,
    Inherit,
    Null,
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
}

impl Stderr {
    /// Logs each line as a [`tracing`] event (level `INFO`, target `oxmcp::stderr`, field `server`). The last lines appear in
    /// the error when the server fails. This is the default: the application decides whether and where a log is shown, because
    /// it may draw on the terminal, or have many servers.
    #[must_use]
    pub fn log() -> Self {
        Self(Policy::Log)
    }

    /// Passes each line to `callback`, one at a time and in order. The last lines appear in the error when the server fails. If
    /// the callback is slow, the server may have to wait. If it panics, only the line is lost.
    #[must_use]
    pub fn lines(callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Policy::Lines(Arc::new(callback)))
    }

    /// Lets the server write directly to the standard error of this process. The error when the server fails then has no last
    /// lines, because they have been shown already.
    #[must_use]
    pub fn inherit() -> Self {
        Self(Policy::Inherit)
    }

    /// Discards the server's standard error.
    #[must_use]
    pub fn null() -> Self {
        Self(Policy::Null)
    }

    pub(crate) fn stdio(&self) -> Stdio {
        match self.0 {
            Policy::Log | Policy::Lines(_) => Stdio::piped(),
            Policy::Inherit => Stdio::inherit(),
            Policy::Null => Stdio::null(),
        }
    }

    fn pass_on(&self, server: &str, line: &str) {
        match &self.0 {
            Policy::Log => tracing::info!(target: "oxmcp::stderr", server, "{line}"),
            // The panic hook has reported the panic. Reading continues, because a server that can no longer write to its log
            // ends.
            Policy::Lines(callback) => drop(catch_unwind(AssertUnwindSafe(|| callback(line)))),
            Policy::Inherit | Policy::Null => {}
        }
    }

    /// Reads to the end, so that the server never waits for its log; dropping `_open` signals the end.
    pub(crate) async fn drain(
        self,
        stderr: ChildStderr,
        server: String,
        diagnostics: Arc<Diagnostics>,
        _open: watch::Sender<()>,
    ) {
        let mut lines = LineReader::new(stderr, MAX_LINE);
        while let Ok(Some(found)) = lines.find().await {
            let NextLine::Line(line) = found else {
                continue;
            };
            let line = String::from_utf8_lossy(lines.line(line));
            diagnostics.saw_stderr(&line);
            self.pass_on(&server, &line);
        }
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Policy::Log => "log",
            Policy::Inherit => "inherit",
            Policy::Null => "null",
            Policy::Lines(_) => "lines",
        })
    }
}
