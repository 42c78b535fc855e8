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

/// Longer lines are left out; what writes those writes no log.
const MAX_LINE: usize = 64 << 10;

/// What becomes of a server's standard error, where servers log. See
/// [`Command::stderr`](super::Command::stderr).
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
    /// Each line becomes an event of [`tracing`] (level `INFO`, target `oxmcp::stderr`, field `server`), and the last
    /// lines appear in the error when the server fails. This is the default: whether and where a log is seen is for the
    /// application to say, which may draw on the terminal, or have many servers.
    #[must_use]
    pub fn log() -> Self {
        Self(Policy::Log)
    }

    /// Each line goes to `callback`, and the last lines appear in the error when the server fails. Lines are passed on one at a
    /// time, in order; the server may have to wait where the callback takes long. A panic of it costs the line and nothing else.
    #[must_use]
    pub fn lines(callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Policy::Lines(Arc::new(callback)))
    }

    /// The server writes to the standard error of this process itself, as it would to a terminal where that is one. The
    /// error when it fails has no last lines then: they stand there already.
    #[must_use]
    pub fn inherit() -> Self {
        Self(Policy::Inherit)
    }

    /// What the server writes is lost.
    #[must_use]
    pub fn null() -> Self {
        Self(Policy::Null)
    }

    pub(super) fn stdio(&self) -> Stdio {
        match self.0 {
            Policy::Log | Policy::Lines(_) => Stdio::piped(),
            Policy::Inherit => Stdio::inherit(),
            Policy::Null => Stdio::null(),
        }
    }

    fn pass_on(&self, server: &str, line: &str) {
        match &self.0 {
            Policy::Log => tracing::info!(target: "oxmcp::stderr", server, "{line}"),
            // The panic hook has reported it. Reading goes on: a server ends that cannot write to its log any more.
            Policy::Lines(callback) => drop(catch_unwind(AssertUnwindSafe(|| callback(line)))),
            Policy::Inherit | Policy::Null => {}
        }
    }

    /// Reads to the end, so that the server never waits for its log; dropping `_open` tells that it was reached.
    pub(super) async fn drain(
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
