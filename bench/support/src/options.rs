use std::time::Duration;

use crate::{Call, Era, Phase};

/// The arguments of a driver or client: `stdio [secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026] [call=add]
/// [rt=multi|current] -- SERVER ARGS...`.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long to measure; `calls` goes before it.
    pub secs: Duration,
    /// How long to run before that.
    pub warm: Duration,
    /// How many calls are kept in flight.
    pub conc: usize,
    /// Measure so many calls, in place of a time.
    pub calls: Option<u64>,
    /// How to speak.
    pub era: Era,
    /// What to call.
    pub call: Call,
    /// The runtime of a client that has one.
    pub runtime: Runtime,
    /// The program and arguments of the server.
    pub server: Vec<String>,
}

/// The flavours of a tokio runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// What `#[tokio::main]` gives.
    Multi,
    /// One thread.
    Current,
}

impl Options {
    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_env(default_runtime: Runtime) -> Result<Self, String> {
        Self::parse(std::env::args().skip(1), default_runtime)
    }

    fn parse(mut args: impl Iterator<Item = String>, runtime: Runtime) -> Result<Self, String> {
        let usage = "usage: stdio [secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026] [call=add|echo:BYTES|list|\
                     progress:COUNT] [rt=multi|current] -- SERVER ARGS...";
        if args.next().as_deref() != Some("stdio") {
            return Err(usage.into());
        }
        let mut options = Self {
            secs: Duration::from_secs(2),
            warm: Duration::from_millis(300),
            conc: 1,
            calls: None,
            era: Era::default(),
            call: Call::Add,
            runtime,
            server: Vec::new(),
        };
        for arg in args.by_ref().take_while(|arg| arg != "--") {
            options.set(&arg).map_err(|e| format!("{e}\n{usage}"))?;
        }
        options.server = args.collect();
        if options.server.is_empty() {
            Err(format!("no server\n{usage}"))
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
            Some(("rt", "multi")) => self.runtime = Runtime::Multi,
            Some(("rt", "current")) => self.runtime = Runtime::Current,
            _ => return Err(format!("{arg}: no such option")),
        }
        if self.conc == 0 {
            Err(wrong(&"at least one call must be in flight"))
        } else {
            Ok(())
        }
    }

    /// What to run before measuring, if anything.
    #[must_use]
    pub fn warm_up(&self) -> Phase {
        Phase::Time(self.warm)
    }

    /// What to measure.
    #[must_use]
    pub fn measured(&self) -> Phase {
        self.calls.map_or(Phase::Time(self.secs), Phase::Calls)
    }
}
