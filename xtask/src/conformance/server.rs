//! Our server as a process, for as long as the suite needs it.

use std::{
    fs::File,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::step::Outcome;

/// How often it is looked whether the server listens, and how long to wait in between.
const LOOKS: usize = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// The server as a process. It ends with this.
pub(super) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts it, and waits until it listens. What it says goes into a log.
    pub(super) fn start(programs: &Path, log: &Path) -> Outcome<Self> {
        let port =
            free_port().map_err(|error| format!("there is no port to listen at: {error}"))?;
        let program = programs.join("conformance-server");
        let process = File::create(log).and_then(|log| {
            Command::new(&program)
                .args(["--port", &port.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
        });
        let process =
            process.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut server = Self { process, port };
        for _ in 0..LOOKS {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(server);
            }
            if let Ok(Some(status)) = server.process.try_wait() {
                return Err(format!(
                    "our server has ended with {status}; see {}",
                    log.display()
                ));
            }
            thread::sleep(PAUSE);
        }
        Err("our server does not listen".to_owned())
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody listens at now, and hardly anybody will in the next moment.
fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
