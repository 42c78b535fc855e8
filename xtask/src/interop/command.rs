//! The commands of the cases: the server, the client, and the recorder or proxy between them.

use std::{
    cell::Cell,
    env,
    ffi::OsString,
    path::PathBuf,
    process::{Command, Stdio},
};

use xtask::packages::{NGINX, Program, REDIS, left_out};

use super::{
    cases::{Over, Runtime, Server},
    runner::transcript,
};
use crate::{
    setup::Tools,
    step::{Outcome, headline, root},
};

/// The programs that take part in the cases.
#[derive(Debug)]
pub(crate) struct Parties {
    pub(crate) tools: Tools,
    /// This program, which is also the recorder.
    pub(crate) us: PathBuf,
    /// The path of nginx; `None` if no case needs it, or if both nginx and `apt-get` are missing.
    pub(crate) nginx: Option<PathBuf>,
    /// The path of Redis; `None` if no case needs it, or if both Redis and `apt-get` are missing.
    pub(crate) redis: Option<PathBuf>,
    /// Whether a case needs certificates and openssl is there to make them.
    has_openssl: bool,
    /// The number of cases that are left out because a program is missing.
    pub(crate) left_out: Cell<usize>,
}

impl Parties {
    /// Installs the programs that are not installed yet. `wants` says whether any case that is to be run has a need.
    pub(crate) fn gather(wants: impl Fn(fn(Over) -> bool) -> bool) -> Outcome<Self> {
        let bring = |program: Program, is_wanted| match is_wanted {
            true => program.bring(),
            false => Ok(None),
        };
        Ok(Self {
            tools: Tools::set_up()?,
            us: this_program()?,
            nginx: bring(NGINX, wants(Over::needs_nginx))?,
            redis: bring(REDIS, wants(Over::needs_redis))?,
            has_openssl: wants(needs_certificates) && has_openssl(),
            left_out: Cell::default(),
        })
    }

    /// Whether all programs that a case needs are installed. A case that lacks one is skipped and counted.
    pub(crate) fn have(&self, name: &str, over: Over) -> bool {
        let missing = match over {
            _ if over.needs_nginx() && self.nginx.is_none() => "nginx",
            _ if over.needs_redis() && self.redis.is_none() => "redis-server",
            _ if needs_certificates(over) && !self.has_openssl => "openssl",
            _ => return true,
        };
        left_out(&format!("{name}: {missing} is not installed"));
        self.left_out.set(self.left_out.get() + 1);
        false
    }

    pub(crate) fn runtime(&self, runtime: Runtime) -> &PathBuf {
        match runtime {
            Runtime::Node => &self.tools.node,
            Runtime::Python1 => &self.tools.python1,
            Runtime::Python2 => &self.tools.python2,
            Runtime::FastMcp => &self.tools.fastmcp,
            Runtime::FastMcpSkills => &self.tools.skills,
            Runtime::Ours => &self.us,
        }
    }
}

fn needs_certificates(over: Over) -> bool {
    matches!(
        over,
        Over::Https | Over::Http2 | Over::NginxTls | Over::Tunnel
    )
}

/// Checks for openssl. If it is missing, prints a prominent warning, because the cases that need certificates are left out.
fn has_openssl() -> bool {
    let mut command = Command::new("openssl");
    let works = command.arg("version").stdout(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        headline("!!! NOT TESTED: TLS with third-party clients and servers !!!");
        println!(
            "openssl, which makes the certificates, is not installed\ninstall it: apt-get install openssl"
        );
    }
    works
}

/// The command that starts the server of a case.
pub(crate) fn start(server: &Server, parties: &Parties) -> Vec<OsString> {
    let (script, args) = server
        .program
        .split_first()
        .expect("a program has a script");
    let runtime = parties.runtime(server.runtime);
    let program = match server.runtime {
        Runtime::Ours => vec![runtime.with_file_name(script).into()],
        _ => vec![runtime.into(), root().join("interop").join(script).into()],
    };
    let args = args.iter().map(OsString::from);
    program.into_iter().chain(args).collect()
}

/// A client that is to reach a server, with a recorder between the two.
#[derive(Debug)]
pub(crate) struct Meeting {
    /// The name of the case.
    pub(crate) name: &'static str,
    pub(crate) over: Over,
    pub(crate) client: Vec<OsString>,
    pub(crate) server: Vec<OsString>,
    /// Whether the server must end by itself.
    pub(crate) clean_exit: bool,
}

impl Meeting {
    /// The command that runs client, server and recorder.
    pub(crate) fn command(&self, parties: &Parties) -> Command {
        let transcript = transcript(self.name);
        if self.over == Over::Stdio {
            // The client starts the recorder, and the recorder starts the server.
            let mut command = command(&self.client);
            command.arg(&parties.us).arg("record").arg(transcript);
            command.args(&self.server);
            return command;
        }
        let mut command = Command::new(&parties.tools.node);
        command.arg(root().join("interop/over-http.mjs"));
        command.args(self.clean_exit.then_some("--clean"));
        // A case that needs a program is left out if that program is missing.
        match self.over {
            Over::Nginx => command.arg("--nginx").args(&parties.nginx),
            Over::NginxTls => command.arg("--tls").args(&parties.nginx),
            Over::Nodes => command.arg("--nodes").args(&parties.redis),
            Over::Rolling => {
                command.arg("--nginx").args(&parties.nginx);
                command.arg("--nodes").args(&parties.redis)
            }
            Over::Https => command.args(["--tls", "https"]),
            Over::Http2 => command.args(["--tls", "http2"]),
            Over::Proxy => command.arg("--proxy"),
            Over::Tunnel => command.args(["--tls", "http2", "--proxy"]),
            Over::Login(tokens) => command.args(["--issuer", tokens]),
            Over::RemoteLogin => command.args(["--issuer", "opaque"]),
            _ => &mut command,
        };
        command.arg(transcript).arg(path(self.over)).arg("--");
        command.args(&self.server).arg("--").args(&self.client);
        command.args(address(self.over, parties));
        command
    }
}

/// The path of the endpoint at third-party servers. Our server answers at every path.
fn path(over: Over) -> &'static str {
    match over {
        Over::Sse => "/sse",
        _ => "/mcp",
    }
}

/// The arguments that tell a client where the server is.
fn address(over: Over, parties: &Parties) -> Vec<OsString> {
    const REMOTE: &str = "interop/node_modules/mcp-remote/dist/proxy.js";
    match over {
        Over::Stdio => Vec::new(),
        Over::Sse => vec!["sse".into(), "{url}".into()],
        Over::Login(_) => vec!["login".into(), "{url}".into()],
        Over::Nodes => vec!["nodes".into(), "{url}".into()],
        Over::Rolling => vec!["rolling".into(), "{url}".into()],
        Over::Remote | Over::RemoteLogin => vec![
            parties.tools.node.clone().into(),
            root().join(REMOTE).into(),
            "{url}".into(),
        ],
        _ => vec!["http".into(), "{url}".into()],
    }
}

fn command(words: &[OsString]) -> Command {
    let (program, args) = words.split_first().expect("a command has a program");
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// The path of this program. The programs of `oxmcp-interop` are built into the same directory.
fn this_program() -> Outcome<PathBuf> {
    env::current_exe().map_err(|error| format!("cannot find the built programs: {error}"))
}
