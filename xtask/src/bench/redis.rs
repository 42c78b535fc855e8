//! A Redis for each measurement of nodes that share one.

use std::{
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use xtask::packages;

/// A Redis server without persistence, which ends when this value is dropped.
pub(crate) struct Redis {
    server: Child,
    port: u16,
}

impl Redis {
    /// Starts a Redis server.
    ///
    /// # Errors
    /// If `redis-server` is missing, or does not start.
    pub(crate) fn start() -> Result<Self, String> {
        let program = packages::REDIS
            .bring()?
            .ok_or("redis-server is not installed")?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|it| it.local_addr())
            .map_err(|e| format!("cannot find a free port: {e}"))?
            .port();
        let server = Command::new(program)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| format!("redis-server: {e}"))?;
        let redis = Self { server, port };
        for _ in 0..6000 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(redis);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("redis-server did not start".to_owned())
    }

    /// Passes the URL of the Redis to a command.
    pub(crate) fn for_command(&self, command: &mut Command) {
        command.env("BENCH_REDIS", format!("redis://127.0.0.1:{}", self.port));
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
