//! The measured programs: ours, the peers and the practical limit, with their builds and arguments.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::cells::{Cell, OurServer, Side};
use crate::step;

/// The program that the others are compared with.
pub(crate) const LIMIT: &str = "raw";
/// The program that the goals apply to.
pub(crate) const OURS: &str = "oxmcp";
/// The programs that are measured by default.
pub(crate) const DEFAULT: &str = "oxmcp,rmcp,raw";

/// An SDK or a handwritten program, and the settings under which it is measured.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The package in the workspace `bench/`.
    package: &'static str,
    server: &'static str,
    client: &'static str,
    options: &'static [&'static str],
}

impl Program {
    /// Whether the program supports the features that the cell measures.
    pub(crate) fn can(&self, cell: &Cell) -> bool {
        cell.ours_alone.is_none() || self.package == "bench-oxmcp"
    }
}

const fn ours(name: &'static str, options: &'static [&'static str]) -> Program {
    Program {
        name,
        package: "bench-oxmcp",
        server: "bench-server",
        client: "bench-client",
        options,
    }
}

const fn rmcp(name: &'static str, options: &'static [&'static str]) -> Program {
    Program {
        name,
        package: "bench-rmcp",
        server: "rmcp-server",
        client: "rmcp-client",
        options,
    }
}

const fn raw(name: &'static str, options: &'static [&'static str]) -> Program {
    Program {
        name,
        package: "bench-raw",
        server: "raw-server",
        client: "raw-client",
        options,
    }
}

impl OurServer {
    /// Its package and its program, if it is not in the package of our other programs.
    const fn program(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Plain => None,
            Self::Node => Some(("bench-nodes", "nodes-server")),
            Self::Gateway => Some(("bench-gateway", "gateway-server")),
        }
    }
}

/// All programs that can be measured.
pub(crate) const PROGRAMS: &[Program] = &[
    ours(OURS, &[]),
    ours("oxmcp-current", &["rt=current"]),
    rmcp("rmcp", &[]),
    rmcp("rmcp-readme", &["form=readme"]),
    rmcp("rmcp-best", &["rt=current", "io=pipes"]),
    raw(LIMIT, &[]),
    raw("raw-multi", &["rt=multi"]),
    raw("raw-blocking", &["io=tokio"]),
];

/// The programs that were built.
pub(crate) struct Programs {
    directory: PathBuf,
    programs: Vec<&'static Program>,
}

impl Programs {
    /// Builds the packages of the named programs, each by itself, so that none gets features of common dependencies that only
    /// another package enables.
    pub(crate) fn build(bench: &Path, names: &[String], cells: &[&Cell]) -> Result<Self, String> {
        let find = |name: &String| PROGRAMS.iter().find(|program| program.name == *name);
        let programs: Vec<_> = names.iter().filter_map(find).collect();
        // The raw server is also the server on which clients are measured.
        let mut packages = vec!["bench-driver", "bench-raw"];
        packages.extend(programs.iter().map(|program| program.package));
        let own = cells.iter().filter_map(|cell| cell.ours_alone);
        packages.extend(own.filter_map(|it| Some(it.program()?.0)));
        packages.sort_unstable();
        packages.dedup();
        for package in packages {
            let mut cargo = step::cargo(["build", "--quiet", "--release", "--package", package]);
            let status = cargo
                .current_dir(bench)
                .env_remove("CARGO_TARGET_DIR")
                .status();
            if !status.map_err(|e| format!("cargo: {e}"))?.success() {
                return Err(format!("cannot build {package}"));
            }
        }
        Ok(Self {
            directory: bench.join("target/release"),
            programs,
        })
    }

    /// The programs in the order of the measurements.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Program> {
        self.programs.iter().copied()
    }

    /// The command that measures this program in this cell, on one CPU.
    pub(crate) fn measurement(&self, program: &Program, cell: &Cell, load: &[String]) -> Command {
        let mut command = Command::new(self.path("bench-driver"));
        command.arg("pin");
        command.args(self.line(program, cell, load, &[]));
        command
    }

    /// The same command, with the measured side run under `watcher`.
    pub(crate) fn watched(
        &self,
        program: &Program,
        cell: &Cell,
        load: &[String],
        watcher: &[String],
    ) -> Command {
        let mut line = self.line(program, cell, load, watcher).into_iter();
        let mut command = Command::new(line.next().unwrap_or_default());
        command.args(line);
        command
    }

    /// The command that measures the memory of stored sessions.
    pub(crate) fn stored(&self, cell: &Cell) -> Command {
        let mut command = Command::new(self.path("nodes-stored"));
        command.args(cell.load);
        command
    }

    /// The command line: driver and server, or client and raw server. The watcher comes before the measured program.
    fn line(
        &self,
        program: &Program,
        cell: &Cell,
        load: &[String],
        watcher: &[String],
    ) -> Vec<String> {
        let (driver, middle) = (self.path("bench-driver"), "--".to_owned());
        let watched = |command: Vec<String>| watcher.iter().cloned().chain(command);
        match cell.side {
            Side::Server | Side::Memory | Side::Stored => [driver]
                .into_iter()
                .chain(arguments(cell, load))
                .chain([middle])
                .chain(watched(self.server(program, cell)))
                .collect(),
            Side::Client if cell.transport == "http" => [driver, "host".to_owned()]
                .into_iter()
                .chain(self.server(limit(), cell))
                .chain([middle])
                .chain(watched(self.client(program, cell, load)))
                .chain(["{url}".to_owned()])
                .collect(),
            Side::Client => watched(self.client(program, cell, load))
                .chain([middle])
                .chain(self.server(limit(), cell))
                .collect(),
        }
    }

    fn server(&self, program: &Program, cell: &Cell) -> Vec<String> {
        let options = program.options.iter().map(|&option| option.to_owned());
        let address = (cell.transport == "http").then(|| "{address}".to_owned());
        let own = cell.ours_alone.and_then(OurServer::program);
        let server = own.map_or(program.server, |(_, server)| server);
        [self.path(server), cell.transport.to_owned()]
            .into_iter()
            .chain(address)
            .chain(cell.server.iter().map(|&option| option.to_owned()))
            .chain(options)
            .collect()
    }

    fn client(&self, program: &Program, cell: &Cell, load: &[String]) -> Vec<String> {
        // The other options of a program apply to its server only.
        let options = program
            .options
            .iter()
            .filter(|option| option.starts_with("rt="));
        let options = options.map(|&option| option.to_owned());
        [self.path(program.client)]
            .into_iter()
            .chain(arguments(cell, load))
            .chain(options)
            .collect()
    }

    fn path(&self, binary: &str) -> String {
        self.directory.join(binary).display().to_string()
    }
}

fn arguments(cell: &Cell, load: &[String]) -> impl Iterator<Item = String> {
    let fixed = [cell.transport]
        .into_iter()
        .chain(cell.load.iter().copied());
    fixed.map(str::to_owned).chain(load.iter().cloned())
}

fn limit() -> &'static Program {
    PROGRAMS
        .iter()
        .find(|program| program.name == LIMIT)
        .expect("the table has the limit")
}
