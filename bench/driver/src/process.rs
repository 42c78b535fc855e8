//! The measured server as a process.

use std::{
    fs, io,
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use bench_support::process_cpu;

pub(crate) type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// A server process, which ends when this value is dropped: a server over HTTP does not end by itself.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Starts a server on a free address, which replaces `{address}` in the command, and waits until it listens.
    pub(crate) fn start(command: &[String]) -> Result<(Self, String)> {
        // The port is free again when the listener is dropped.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let (program, args) = command.split_first().ok_or("missing the server")?;
        let args = args.iter().map(|arg| arg.replace("{address}", &address));
        let child = Command::new(program)
            .args(args)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| format!("{program}: {e}"))?;
        let mut server = Self(child);
        while TcpStream::connect(&address).is_err() {
            if let Some(status) = server.0.try_wait()? {
                return Err(format!("the server exited with {status}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok((server, address))
    }

    pub(crate) fn cpu(&self) -> io::Result<Duration> {
        process_cpu(self.0.id())
    }

    /// The private memory of the process, in KiB.
    pub(crate) fn memory(&self) -> Result<f64> {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0.id()))?;
        let private = rollup
            .lines()
            .filter(|line| line.starts_with("Private_"))
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        Ok(private.sum())
    }

    /// Asks the process to exit, so that a program that watches it can write its results.
    pub(crate) fn stop(mut self) -> Result<()> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id())?);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
