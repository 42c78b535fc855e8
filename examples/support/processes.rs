//! Processes that listen, and end with what started them; among them a Redis.

use std::{
    env, io,
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// A process, which is killed with `kill -9` when this is dropped: it can tell nobody.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a program, and waits until it listens.
    ///
    /// # Errors
    /// Where it cannot be started, or ends.
    pub fn start(command: &mut Command, address: SocketAddr) -> io::Result<Self> {
        let mut process = Self(command.spawn()?);
        while TcpStream::connect(address).is_err() {
            if let Some(status) = process.0.try_wait()? {
                return Err(io::Error::other(format!("{command:?} has ended: {status}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to do.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// An address of this machine that nobody listens at.
///
/// # Errors
/// Where there is none.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// The URL of a Redis: that of `REDIS_URL`, or of one that is started, and ends with the process that is returned.
///
/// # Errors
/// Where there is neither.
pub fn redis() -> io::Result<(Option<Process>, String)> {
    if let Ok(url) = env::var("REDIS_URL") {
        return Ok((None, url));
    }
    let address = free_address()?;
    let mut command = Command::new("redis-server");
    command.args(["--loglevel", "warning", "--save", ""]);
    command.args(["--port", &address.port().to_string()]);
    command.stdout(Stdio::null());
    match Process::start(&mut command, address) {
        Ok(redis) => Ok((Some(redis), format!("redis://{address}"))),
        Err(error) => Err(io::Error::other(format!(
            "there is no redis-server here ({error}): install it, or set REDIS_URL to redis://host:port of another"
        ))),
    }
}
