//! Our server as a process that runs for as long as the suite needs it.

use std::{
    fs::File,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::step::Outcome;

/// The number of attempts to reach the server, and the pause between two of them.
const LOOKS: usize = 6000;
const PAUSE: Duration = Duration::from_millis(10);

/// Our server as a process, which is killed when this value is dropped.
pub(crate) struct Server {
    process: Child,
    command: Command,
    port: u16,
}

impl Server {
    /// Starts the server with these options, and waits until it listens. Its output goes into `log`.
    pub(crate) fn start(programs: &Path, log: &Path, options: &[&str]) -> Outcome<Self> {
        let port = free_port()?;
        let mut command = Command::new(programs.join("conformance-server"));
        let file = File::create(log)
            .map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        command
            .args(["--port", &port.to_string()])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        let process = spawn(&mut command)?;
        let mut server = Self {
            process,
            command,
            port,
        };
        let listens = server.await_port();
        if let Ok(Some(status)) = server.process.try_wait() {
            return Err(format!(
                "our server exited with {status}; see {}",
                log.display()
            ));
        }
        listens.map(|()| server)
    }

    /// Kills the server, as `kill -9` does, and starts it again. Does not wait until it listens.
    pub(crate) fn kill_and_restart(&mut self) -> Outcome {
        let killed = self.process.kill().and_then(|()| self.process.wait());
        killed.map_err(|error| format!("cannot kill our server: {error}"))?;
        self.process = spawn(&mut self.command)?;
        Ok(())
    }

    /// Waits until the server listens.
    pub(crate) fn await_port(&self) -> Outcome {
        await_port(self.port, "our server")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If the process has ended already, there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(command: &mut Command) -> Outcome<Child> {
    let started = command.spawn();
    started.map_err(|error| format!("cannot start {command:?}: {error}"))
}

/// Waits until a process listens on a port.
pub(crate) fn await_port(port: u16, name: &str) -> Outcome {
    for _ in 0..LOOKS {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(format!("{name} is not listening"))
}

/// A free port, which most probably stays free for the next moment.
pub(crate) fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|it| it.local_addr());
    let address = address.map_err(|error| format!("cannot find a free port: {error}"))?;
    Ok(address.port())
}
