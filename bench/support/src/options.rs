//! Options of drivers and clients.

use std::{str::FromStr, time::Duration};

use crate::{Call, Era, Phase, token::BEARER};

/// The arguments of a driver or client: `stdio [OPTIONS] -- SERVER ARGS...`, or `http [OPTIONS] -- SERVER ARGS...` for a
/// driver and `http [OPTIONS] URL` for a client. The options are `[secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026]
/// [call=add] [work=connect] [auth=none|bearer] [rt=multi|current]`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The transport between the client and the server.
    pub transport: Transport,
    /// The duration of the measurement; `calls` takes precedence.
    pub secs: Duration,
    /// The duration of the warm-up.
    pub warm: Duration,
    /// The number of calls that are kept in flight.
    pub conc: usize,
    /// The number of calls to measure, instead of a duration.
    pub calls: Option<u64>,
    /// The era in which MCP is spoken.
    pub era: Era,
    /// The work of a driver.
    pub work: Work,
    /// The call that is repeated.
    pub call: Call,
    /// The `Authorization` header of a driver's requests over HTTP.
    pub authorization: Option<&'static str>,
    /// The runtime of a client that has one.
    pub runtime: Runtime,
    /// The program and arguments of the server, if this process starts it.
    pub server: Vec<String>,
    /// The URL of the server, if it runs already.
    pub url: Option<String>,
}

/// The transport between a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The client starts the server.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// The work of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Calls tools.
    Calls,
    /// Opens sessions, each on its own connection.
    Connect,
    /// Keeps this number of sessions open.
    Hold(Held, usize),
    /// Calls `update`, of which this number of listeners are notified.
    Update(usize),
    /// The same with two servers, each of which has half of the listeners.
    FanOut(usize),
    /// Opens sessions at one server, and makes the first call of each at another.
    Restore,
    /// Starts the server, and ends it as soon as it has answered.
    Start,
}

/// The connection that is kept open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// An idle session and its connection.
    Idle,
    /// The GET stream of a session.
    Get,
    /// A modern subscription to the list of tools.
    Listen,
}

impl FromStr for Work {
    type Err = String;

    /// Reads `connect`, `start`, `restore`, `idle:COUNT`, `get:COUNT`, `listen:COUNT`, `update:COUNT` or `fanout:COUNT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "work={text}: expected connect, start, restore, idle:COUNT, get:COUNT, listen:COUNT, update:COUNT or fanout:COUNT"
            )
        };
        let count = |text: &str| text.parse().map_err(|_| wrong());
        match text.split_once(':') {
            None if text == "connect" => Ok(Self::Connect),
            None if text == "start" => Ok(Self::Start),
            None if text == "restore" => Ok(Self::Restore),
            Some(("idle", text)) => Ok(Self::Hold(Held::Idle, count(text)?)),
            Some(("get", text)) => Ok(Self::Hold(Held::Get, count(text)?)),
            Some(("listen", text)) => Ok(Self::Hold(Held::Listen, count(text)?)),
            Some(("update", text)) => Ok(Self::Update(count(text)?)),
            Some(("fanout", text)) => Ok(Self::FanOut(count(text)?)),
            _ => Err(wrong()),
        }
    }
}

/// The flavor of a tokio runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// The multi-threaded runtime, as made by `#[tokio::main]`.
    Multi,
    /// The runtime with a single thread.
    Current,
}

impl Options {
    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// Describes the first wrong argument.
    pub fn from_env(default_runtime: Runtime) -> Result<Self, String> {
        Self::parse(std::env::args().skip(1), default_runtime)
    }

    fn parse(mut args: impl Iterator<Item = String>, runtime: Runtime) -> Result<Self, String> {
        let usage = "usage: stdio|http [secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026] [call=add|echo:BYTES|quote|\
                     wait|list[:TOOLS]|progress:COUNT] [work=connect|start|restore|idle:COUNT|get:COUNT|listen:COUNT|update:COUNT|fanout:COUNT] \
                     [auth=none|bearer] [rt=multi|current] [URL] [-- SERVER ARGS...]";
        let transport = match args.next().as_deref() {
            Some("stdio") => Transport::Stdio,
            Some("http") => Transport::Http,
            _ => return Err(usage.into()),
        };
        let mut options = Self {
            transport,
            secs: Duration::from_secs(2),
            warm: Duration::from_millis(300),
            conc: 1,
            calls: None,
            era: Era::default(),
            work: Work::Calls,
            call: Call::Add,
            authorization: None,
            runtime,
            server: Vec::new(),
            url: None,
        };
        for arg in args.by_ref().take_while(|arg| arg != "--") {
            options.set(&arg).map_err(|e| format!("{e}\n{usage}"))?;
        }
        options.server = args.collect();
        if options.server.is_empty() && options.url.is_none() {
            Err(format!("missing the server\n{usage}"))
        } else {
            Ok(options)
        }
    }

    fn set(&mut self, arg: &str) -> Result<(), String> {
        let wrong = |e: &dyn std::fmt::Display| format!("{arg}: {e}");
        let seconds = |value: &str| {
            let seconds = value.parse().map_err(|e| wrong(&e))?;
            Duration::try_from_secs_f64(seconds).map_err(|e| wrong(&e))
        };
        match arg.split_once('=') {
            Some(("secs", value)) => self.secs = seconds(value)?,
            Some(("warm", value)) => self.warm = seconds(value)?,
            Some(("conc", value)) => self.conc = value.parse().map_err(|e| wrong(&e))?,
            Some(("calls", value)) => self.calls = Some(value.parse().map_err(|e| wrong(&e))?),
            Some(("era", value)) => self.era = value.parse()?,
            Some(("call", value)) => self.call = value.parse()?,
            Some(("work", value)) => self.work = value.parse()?,
            Some(("auth", "none")) => self.authorization = None,
            Some(("auth", "bearer")) => self.authorization = Some(BEARER),
            Some(("rt", "multi")) => self.runtime = Runtime::Multi,
            Some(("rt", "current")) => self.runtime = Runtime::Current,
            _ if arg.starts_with("http://") => self.url = Some(arg.to_owned()),
            _ => return Err(format!("unknown option {arg}")),
        }
        if self.conc == 0 {
            Err(wrong(&"at least one call must be in flight"))
        } else {
            Ok(())
        }
    }

    /// The warm-up phase before the measurement.
    #[must_use]
    pub fn warm_up(&self) -> Phase {
        Phase::Time(self.warm)
    }

    /// The measured phase.
    #[must_use]
    pub fn measured(&self) -> Phase {
        self.calls.map_or(Phase::Time(self.secs), Phase::Calls)
    }
}
