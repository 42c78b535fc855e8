//! [`Command`], the builder of the transport that starts a process.

use std::{ffi::OsStr, fmt, path::Path, sync::Arc, time::Duration};

use tokio::process;

use crate::{
    error::Result,
    limits::Limits,
    sync::Mutex,
    transport::{
        command::{
            diagnostics::Diagnostics,
            halves::{self, CommandReader, CommandWriter},
            launcher::Launcher,
            spawn_error::display,
            stderr::Stderr,
            supervisor::ExitTimeouts,
        },
        traits::{Startup, Transport},
    },
};

/// The default time for which a server may be silent at its start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server that the client starts as a process and talks to over its standard input and output: the [stdio
/// transport](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).
///
/// Connecting starts the process; connecting again starts another one. No shell is involved: each argument reaches the program
/// unchanged. The environment is inherited, except for variables that are changed here.
///
/// ```no_run
/// use oxmcp::{Command, Limits, transport::Transport};
///
/// # async fn example() -> oxmcp::Result<()> {
/// let mut server = Command::new("npx")
///     .args(["-y", "@modelcontextprotocol/server-everything"])
///     .env("LOG_LEVEL", "debug");
/// let (read, write) = server.connect(&Limits::default()).await?;
/// # Ok(())
/// # }
/// ```
///
/// # How the process ends
/// Closing the connection closes the server's input, which tells it to exit. If it is still running after
/// [`exit_timeout`](Self::exit_timeout), it gets SIGTERM, and after [`kill_timeout`](Self::kill_timeout) SIGKILL. On Unix, the
/// process leads its own process group, and the signals go to the group, so that the server's child processes end with it
/// (`npx` starts a shell that starts Node.js). A connection that is dropped without being closed ends the process in the
/// background, beginning with SIGTERM. On Windows, the process is terminated at once, without its child processes.
///
/// # What the server logs
/// The server's standard error becomes [`tracing`] events, which are lost without a subscriber. The last lines are kept for the
/// error when the server fails. [`stderr`](Self::stderr) redirects it: [`Stderr::inherit`] shows it on the standard error of
/// this process, as terminal programs usually want, and [`Stderr::lines`] passes it to a function.
///
/// # When the server fails
/// If a program cannot be started, exits before its first message, or is killed later, the error explains what happened: where
/// the program was searched, the exit status or the signal, the last lines of standard error, and the first line of standard
/// output that was not a message. Such lines are skipped: a log line on standard output does not end the session.
///
/// In a session of 2026-07-28 or later, only the calls in flight are lost with the process, and fail with
/// [`Error::is_closed`](crate::Error::is_closed). The next call restarts the process, or the client restarts it at once if
/// something is watched, at most five times in five minutes; [`Client::on_restarted`](crate::Client::on_restarted) reports it.
/// Sessions of earlier revisions end with their process. [`ClientSession::recover`](crate::ClientSession::recover) returns a
/// usable session in every revision.
///
/// # Windows
/// A name without a file extension finds only `.exe` files. `npx` and similar programs are scripts there: write
/// `Command::new("npx.cmd")`. The standard library then runs them with `cmd.exe` and escaped arguments, and rejects arguments
/// that cannot be escaped safely.
pub struct Command {
    /// The command, shared with the connections, which restart the server if it has ended.
    command: Arc<Mutex<process::Command>>,
    stderr: Stderr,
    timeouts: ExitTimeouts,
    start_timeout: Duration,
    /// The diagnostics of the process that was started last.
    diagnostics: Option<Arc<Diagnostics>>,
}

impl Command {
    /// Creates a server that `program` starts: a path, or a name to search in `PATH`.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self::from(process::Command::new(program))
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(self, arg: impl AsRef<OsStr>) -> Self {
        self.command.lock().arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.lock().args(args);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.lock().env(name, value);
        self
    }

    /// Sets environment variables.
    #[must_use]
    pub fn envs(
        self,
        variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Self {
        self.command.lock().envs(variables);
        self
    }

    /// Removes an environment variable that the server would inherit.
    #[must_use]
    pub fn env_remove(self, name: impl AsRef<OsStr>) -> Self {
        self.command.lock().env_remove(name);
        self
    }

    /// Clears the environment, except for variables that are set from here on. Most programs need `PATH` and `HOME`.
    #[must_use]
    pub fn env_clear(self) -> Self {
        self.command.lock().env_clear();
        self
    }

    /// Sets the working directory of the server.
    #[must_use]
    pub fn current_dir(self, directory: impl AsRef<Path>) -> Self {
        self.command.lock().current_dir(directory);
        self
    }

    /// Sets the destination of the server's standard error. Default: [`Stderr::log`].
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Sets the time for which the server may be silent at its start, until its first response. Each line that it writes to
    /// standard error restarts the time, for 5 minutes at most. Default: 60 s, because some servers are downloaded first, for
    /// example by `npx` or `docker run`.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets the time in which the server may exit by itself after its input is closed. Default: 3 s.
    #[must_use]
    pub fn exit_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.exit = timeout;
        self
    }

    /// Sets the time in which the server and its processes may exit after SIGTERM. Default: 2 s.
    #[must_use]
    pub fn kill_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.kill = timeout;
        self
    }
}

impl Transport for Command {
    type Read = CommandReader;
    type Write = CommandWriter;

    async fn connect(&mut self, limits: &Limits) -> Result<(CommandReader, CommandWriter)> {
        let launcher = Launcher {
            command: Arc::clone(&self.command),
            stderr: self.stderr.clone(),
            timeouts: self.timeouts,
            max_message_bytes: limits.max_message_bytes,
        };
        let halves = halves::connect(launcher)?;
        self.diagnostics = Some(halves.0.diagnostics());
        Ok(halves)
    }

    fn name(&self) -> String {
        display(self.command.lock().as_std())
    }

    /// The program, the arguments and the working directory.
    fn identity(&self) -> Option<String> {
        let command = self.command.lock();
        let command = command.as_std();
        Some(format!(
            "{:?} {:?} in {:?}",
            command.get_program(),
            command.get_args(),
            command.get_current_dir()
        ))
    }

    fn startup(&self) -> Option<Startup> {
        let diagnostics = Arc::clone(self.diagnostics.as_ref()?);
        let last_activity = move || diagnostics.last_activity();
        Some(Startup::new(self.start_timeout, last_activity))
    }

    fn ended_unread(&self) -> bool {
        let diagnostics = self.diagnostics.as_ref();
        diagnostics.is_some_and(|diagnostics| diagnostics.left_unread())
    }

    fn diagnosis(&self) -> Option<String> {
        let diagnostics = self.diagnostics.as_ref()?;
        Some(diagnostics.report("is still running"))
    }
}

/// Takes over the program, the arguments, the environment and the working directory. Connecting sets the three standard
/// streams.
impl From<process::Command> for Command {
    fn from(command: process::Command) -> Self {
        Self {
            command: Arc::new(Mutex::new(command)),
            stderr: Stderr::log(),
            timeouts: ExitTimeouts::default(),
            start_timeout: START_TIMEOUT,
            diagnostics: None,
        }
    }
}

/// Takes over the program, the arguments, the environment and the working directory. Connecting sets the three standard
/// streams.
impl From<std::process::Command> for Command {
    fn from(command: std::process::Command) -> Self {
        Self::from(process::Command::from(command))
    }
}

/// Shows the names of the environment variables, but not their values, which may be secret.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.command.lock();
        let command = command.as_std();
        let names: Vec<_> = command.get_envs().map(|(name, _)| name).collect();
        f.debug_struct("Command")
            .field("program", &command.get_program())
            .field("args", &command.get_args())
            .field("env", &names)
            .field("current_dir", &command.get_current_dir())
            .field("stderr", &self.stderr)
            .field("timeouts", &self.timeouts)
            .finish()
    }
}
