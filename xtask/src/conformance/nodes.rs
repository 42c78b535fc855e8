//! Our server as two nodes that share a Redis, behind nginx, which sends each request to the next one.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use xtask::packages::{NGINX, Program, REDIS};

use super::server::{Server, await_port, free_port};
use crate::step::Outcome;

/// The two nodes, their Redis and their nginx, all of which end when this value is dropped.
pub(crate) struct Nodes {
    nodes: [Server; 2],
    _redis: Running,
    _nginx: Running,
    port: u16,
}

/// A process that is killed when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // If the process has ended already, there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Nodes {
    /// Starts the nodes, Redis and nginx, and waits until they listen. The logs go into the directory `reports`.
    pub(crate) fn start(programs: &Path, reports: &Path) -> Outcome<Self> {
        let (redis_port, port) = (free_port()?, free_port()?);
        let redis_program = bring(REDIS)?;
        let nginx_program = bring(NGINX)?;
        let mut redis = Command::new(redis_program);
        redis
            .args(["--bind", "127.0.0.1", "--port", &redis_port.to_string()])
            .args(["--save", "", "--appendonly", "no"]);
        let redis = run(&mut redis)?;
        await_port(redis_port, "redis-server")?;
        let url = format!("redis://127.0.0.1:{redis_port}");
        let node = |name: &str| {
            let log = reports.join(format!("{name}.log"));
            Server::start(programs, &log, &["--redis", &url])
        };
        let nodes = [node("node-1")?, node("node-2")?];
        let settings = settings(port, nodes.iter().map(Server::port));
        let file = reports.join("nginx.conf");
        fs::write(&file, settings)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        let mut nginx = Command::new(nginx_program);
        nginx.arg("-p").arg(reports).arg("-e").arg("stderr");
        let nginx = run(nginx.arg("-c").arg(&file))?;
        await_port(port, "nginx")?;
        Ok(Self {
            nodes,
            _redis: redis,
            _nginx: nginx,
            port,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Kills one node, chosen at random, and starts it again. The other node keeps running.
    pub(crate) fn kill_one(&mut self) -> Outcome {
        for node in &self.nodes {
            node.await_port()?;
        }
        // Each new `RandomState` has random keys.
        let chosen = usize::from(RandomState::new().hash_one(self.port).is_multiple_of(2));
        self.nodes
            .get_mut(chosen)
            .map_or(Ok(()), Server::kill_and_restart)
    }
}

fn bring(program: Program) -> Outcome<PathBuf> {
    let brought = program.bring()?;
    brought.ok_or_else(|| "redis-server or nginx is not installed: two nodes need both".to_owned())
}

fn run(command: &mut Command) -> Outcome<Running> {
    let started = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let process = started.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    Ok(Running(process))
}

/// The settings of nginx: requests go to the nodes in turn, without stickiness. A request that may have begun at one node is sent
/// to no other.
fn settings(port: u16, nodes: impl Iterator<Item = u16>) -> String {
    let nodes: String = nodes
        .map(|port| format!("        server 127.0.0.1:{port} max_fails=0;\n"))
        .collect();
    format!(
        "daemon off;
master_process off;
error_log stderr;
pid nginx.pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path temp-body;
    proxy_temp_path temp-proxy;
    fastcgi_temp_path temp-fastcgi;
    uwsgi_temp_path temp-uwsgi;
    scgi_temp_path temp-scgi;
    upstream nodes {{
{nodes}    }}
    server {{
        listen 127.0.0.1:{port};
        client_max_body_size 8m;
        location / {{
            proxy_pass http://nodes;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_buffering off;
            proxy_read_timeout 1h;
        }}
    }}
}}
"
    )
}
