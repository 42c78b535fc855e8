//! Child processes that listen on an address and end with this program, such as a Redis.

use std::{
    env, io,
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// A process that is killed with `kill -9`, without a chance to clean up, when this value is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a program, and waits until it listens on `address`.
    ///
    /// # Errors
    /// If the program cannot be started, or ends.
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
        // The process may have ended already.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Returns a free local address.
///
/// # Errors
/// If no address is free.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Returns the URL of a Redis: that in `REDIS_URL`, or else of a new process, which is also returned, and ends when dropped.
///
/// # Errors
/// If `REDIS_URL` is not set and `redis-server` cannot be started.
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
            "could not start redis-server: {error}; install it, or set REDIS_URL to redis://host:port"
        ))),
    }
}
