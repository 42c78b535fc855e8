//! Redis servers for tests: each ends with this process, even if it crashes.

use std::{
    env, fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::PathBuf,
    process::{self, Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use oxmcp::{keys::StateKey, tasks::TaskRecord};
use oxmcp_redis::Redis;
use redis::{FromRedisValue, RedisResult};
use xtask::packages;

/// The path of the program; `None` if it is not installed, for which there must be a reason.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    packages::REDIS
        .bring()
        .unwrap_or_else(|error| panic!("{error}"))
});

/// The server that is shared by all tests that do not disturb it.
static SHARED: LazyLock<Option<Server>> = LazyLock::new(|| Server::start(&[]));

/// A script that kills the server when its stdin ends.
const KEEPER: &str = r#""$@" & server=$!; cat > /dev/null; kill -9 $server"#;

/// A running server, which is killed on drop.
pub(crate) struct Server {
    port: u16,
    options: Vec<String>,
    directory: PathBuf,
    keeper: Child,
}

/// The shared server, and a prefix that no other test has. Without a server, the named test is skipped.
pub(crate) fn shared(test: &str) -> Option<(&'static Server, String)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let Some(server) = SHARED.as_ref() else {
        left_out(test);
        return None;
    };
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Some((server, format!("test-{number}")))
}

/// A separate server for one test.
pub(crate) fn own(test: &str, options: &[&str]) -> Option<Server> {
    let server = Server::start(options);
    if server.is_none() {
        left_out(test);
    }
    server
}

fn left_out(test: &str) {
    packages::left_out(&format!("{test}: there is no redis-server"));
}

impl Server {
    fn start(options: &[&str]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let program = PROGRAM.as_ref()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("oxmcp-redis-{}-{number}", process::id());
        let directory = env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let options: Vec<_> = options.iter().map(|&it| it.to_owned()).collect();
        // Another program may take the port in between.
        for _ in 0..5 {
            let port = free_port();
            let mut keeper = spawn(program, &directory, &arguments(port, &options));
            if is_up(port) {
                return Some(Self {
                    port,
                    options,
                    directory,
                    keeper,
                });
            }
            end(&mut keeper);
        }
        panic!("redis-server does not start");
    }

    /// Kills the server, and starts another one at its port, without data.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let program = PROGRAM.as_ref().unwrap();
        let arguments = arguments(self.port, &self.options);
        self.keeper = spawn(program, &self.directory, &arguments);
        assert!(is_up(self.port), "redis-server does not start again");
    }

    /// Kills the server.
    pub(crate) fn stop(&mut self) {
        end(&mut self.keeper);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A store handle with its own connection.
    pub(crate) async fn connect(&self, prefix: &str) -> Redis {
        let store = Redis::connect(self.url()).await.unwrap();
        store.prefix(prefix).keys([key(1)])
    }

    /// Runs a command as an administrator.
    pub(crate) fn says<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        self.says_as("", words)
    }

    /// Runs a command as a user with a password.
    pub(crate) fn says_as<T: FromRedisValue>(&self, login: &str, words: &[&str]) -> RedisResult<T> {
        let url = format!("redis://{login}127.0.0.1:{}", self.port);
        let client = redis::Client::open(url)?;
        let mut command = redis::cmd(words[0]);
        command
            .arg(&words[1..])
            .query(&mut client.get_connection()?)
    }

    /// Sends the server a signal, by name.
    pub(crate) fn signal(&self, signal: &str, process: &str) {
        let sent = Command::new("kill").arg(signal).arg(process).status();
        assert!(sent.unwrap().success());
    }

    /// The process ID of the server.
    pub(crate) fn process(&self) -> String {
        let info: String = self.says(&["INFO", "server"]).unwrap();
        let mut lines = info.lines();
        let id = lines.find_map(|line| line.strip_prefix("process_id:"));
        id.unwrap().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.keeper);
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// The arguments of a server. One with a configuration file, such as a sentinel, has all of its settings there.
fn arguments(port: u16, options: &[String]) -> Vec<String> {
    let port = port.to_string();
    if options.iter().any(|it| it == "--sentinel") {
        return [options, &["--port".to_owned(), port]].concat();
    }
    let settings = [
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
        "--save",
        "",
        "--appendonly",
        "no",
    ];
    let settings = settings.map(str::to_owned);
    [&settings, options].concat()
}

fn spawn(program: &PathBuf, directory: &PathBuf, arguments: &[String]) -> Child {
    Command::new("sh")
        .args(["-c", KEEPER, "keeper"])
        .arg(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn end(keeper: &mut Child) {
    drop(keeper.stdin.take());
    keeper.wait().ok();
}

/// A port without a listener.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Whether the server responds within a minute.
fn is_up(port: u16) -> bool {
    (0..6000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        answers(port).unwrap_or_default()
    })
}

fn answers(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    Ok(&answer == b"+PONG\r\n" || answer.starts_with(b"-NOAUTH"))
}

/// A deterministic key.
pub(crate) fn key(byte: u8) -> StateKey {
    StateKey::new([byte; StateKey::LENGTH])
}

/// A task with a time to live of an hour.
pub(crate) fn task(id: &str) -> TaskRecord {
    let mut task = TaskRecord::new(id, "tool");
    task.ttl_ms = 3_600_000;
    task
}

/// Unwraps the expected error, as text.
pub(crate) fn refused<T>(outcome: oxmcp::Result<T>) -> String {
    match outcome {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.to_string(),
    }
}
