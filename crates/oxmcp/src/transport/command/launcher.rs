//! The launcher, which starts and restarts the process of a server.

use std::{process::Stdio, sync::Arc};

use tokio::process::{self, ChildStdin, ChildStdout};

use crate::{
    error::Result,
    sync::Mutex,
    transport::{
        command::{
            process::Process,
            spawn_error::{display, spawn_error},
            stderr::Stderr,
            supervisor::ExitTimeouts,
        },
        io::{LineReader, LineWriter},
    },
};

/// The flag for servers of applications without a console, which must not open one.
#[cfg(windows)]
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A command, and the settings of the process that it starts.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) command: Arc<Mutex<process::Command>>,
    pub(crate) stderr: Stderr,
    pub(crate) timeouts: ExitTimeouts,
    pub(crate) max_message_bytes: usize,
}

/// A process that has just been started, and its two pipes.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) output: LineReader<ChildStdout>,
    pub(crate) input: LineWriter<ChildStdin>,
    pub(crate) process: Arc<Process>,
}

impl Launcher {
    /// Starts the process.
    ///
    /// # Errors
    /// If the process cannot be started. The error explains why.
    pub(crate) fn launch(&self) -> Result<Launched> {
        let mut command = self.command.lock();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(self.stderr.stdio())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(windows)]
        command.creation_flags(CREATE_NO_WINDOW);
        let spawned = command.spawn();
        let mut child = spawned.map_err(|error| spawn_error(command.as_std(), &error))?;
        let name = display(command.as_std());
        drop(command);
        let stdin = child.stdin.take().expect("stdin was piped");
        let stdout = child.stdout.take().expect("stdout was piped");
        let stderr = child.stderr.take();
        Ok(Launched {
            output: LineReader::new(stdout, self.max_message_bytes),
            input: LineWriter::new(stdin),
            process: Process::supervise(child, stderr, name, self.timeouts, self.stderr.clone()),
        })
    }
}
