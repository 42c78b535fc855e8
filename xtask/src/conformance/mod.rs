//! `cargo xtask conformance`: the official suite against `conformance-server` and `conformance-client`.
//!
//! Every scenario is run at every revision that it applies to. The bar is higher than the suite's own: a run fails on
//! warnings as well as on errors, and also if it checked nothing. There is no list of expected failures.

mod nodes;
mod report;
mod runs;
mod server;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::{
    setup::{Node, Tools},
    step::{self, Outcome, headline, root},
};
use nodes::Nodes;
use runs::{Run, Side};
use server::Server;

/// The path of the suite within `interop/`.
const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

/// The time limit of a run: well beyond the 30 seconds that the suite gives a scenario, after which it must itself end.
const LIMIT: Duration = Duration::from_secs(300);

/// The number of runs after each kill: as many as most machines run at once, so that every run is close to a kill.
const RUNS_OF_A_KILL: usize = 2;

/// The arguments for two nodes: `nodes` stay alive; of `killed-nodes` one is killed and started again before every other run.
const NODES: [&str; 2] = ["nodes", "killed-nodes"];

/// The argument for a proxy in front of our server.
const PROXY: &str = "proxy";

/// Runs the selected scenarios: `[server|client|nodes|killed-nodes|proxy] [WORD]`.
pub(crate) fn run(args: &[&str]) -> Outcome {
    let targets = NODES.into_iter().chain([PROXY]);
    let target = targets.into_iter().find(|word| args.first() == Some(word));
    let (side, word) = match args {
        [_] if target.is_some() => (Some(Side::Server), ""),
        [_, word] if target.is_some() => (Some(Side::Server), *word),
        [] => (None, ""),
        [side] if Side::parse(side).is_some() => (Side::parse(side), ""),
        [word] => (None, *word),
        [side, word] if Side::parse(side).is_some() => (Side::parse(side), *word),
        _ => {
            return Err(
                "usage: cargo xtask conformance [server|client|nodes|killed-nodes|proxy] [WORD]"
                    .to_owned(),
            );
        }
    };
    let node = Tools::set_up_node()?;
    step::build(&["conformance-server", "conformance-client"])?;
    let scenarios = runs::read(&list(&node)?);
    let (runs, left_out) = runs::choose(&scenarios, side, target == Some(PROXY), word);
    if runs.is_empty() {
        return Err(format!("FAILED: conformance: no scenario matches `{word}`"));
    }
    headline(&format!(
        "conformance: the official suite, runs: {}",
        runs.len()
    ));
    let mut suite = Suite::start(node, &runs, target)?;
    let outcome = suite.run_all(&runs);
    if word.is_empty() {
        for (reason, scenarios) in left_out {
            println!("skipped: {scenarios} scenarios: {reason}");
        }
    }
    outcome?;
    if args.is_empty() {
        let readme = fs::read_to_string(root().join("README.md"))
            .map_err(|error| format!("could not read README.md: {error}"))?;
        check_readme(&readme, runs.len())?;
    }
    Ok(())
}

/// Checks that the README names this number of runs.
fn check_readme(readme: &str, runs: usize) -> Outcome {
    let words: Vec<_> = readme.split_whitespace().collect();
    let claim = format!(" {runs} runs of the official conformance suite");
    match words.join(" ").contains(&claim) {
        true => Ok(()),
        false => Err(format!(
            "FAILED: conformance: README.md names another number of runs; the suite has {runs}"
        )),
    }
}

/// The list of all scenarios, as the suite prints it.
fn list(node: &Node) -> Outcome<String> {
    let output = node.run(SUITE).arg("list").output();
    let output = output.map_err(|error| format!("cannot start the suite: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "cannot list the scenarios of the suite: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The suite and its target.
struct Suite {
    node: Node,
    /// The directory of our programs.
    programs: PathBuf,
    target: Option<Target>,
    /// The argument that selects the target of the scenarios for servers.
    word: &'static str,
}

/// The target of the scenarios for servers.
enum Target {
    Server(Box<Server>),
    Nodes(Box<Nodes>),
    /// The proxy, and the server behind it.
    Proxy(Box<[Server; 2]>),
}

impl Target {
    fn url(&self) -> String {
        match self {
            Self::Server(server) => server.url(),
            Self::Nodes(nodes) => nodes.url(),
            Self::Proxy(servers) => {
                let [proxy, _] = &**servers;
                proxy.url()
            }
        }
    }
}

impl Suite {
    /// Starts one server, several nodes of it, or a proxy in front of it, for all runs that need one.
    fn start(node: Node, runs: &[Run], target: Option<&'static str>) -> Outcome<Self> {
        let us = env::current_exe()
            .map_err(|error| format!("cannot find the built programs: {error}"))?;
        let programs = us.parent().map(Path::to_owned).unwrap_or_default();
        let reports = reports();
        if reports.exists() {
            fs::remove_dir_all(&reports)
                .map_err(|error| format!("cannot remove {}: {error}", reports.display()))?;
        }
        fs::create_dir_all(&reports)
            .map_err(|error| format!("cannot create {}: {error}", reports.display()))?;
        let is_needed = runs.iter().any(|run| run.side == Side::Server);
        let word = target.unwrap_or("server");
        let start = || match target {
            Some(PROXY) => {
                let behind = Server::start(&programs, &reports.join("server.log"), &[])?;
                let options = ["--upstream", &behind.url()];
                let proxy = Server::start(&programs, &reports.join("proxy.log"), &options)?;
                Ok(Target::Proxy(Box::new([proxy, behind])))
            }
            Some(_) => Nodes::start(&programs, &reports).map(|it| Target::Nodes(Box::new(it))),
            None => Server::start(&programs, &reports.join("server.log"), &[])
                .map(|it| Target::Server(Box::new(it))),
        };
        let target = is_needed.then(start).transpose()?;
        Ok(Self {
            node,
            programs,
            target,
            word,
        })
    }

    /// Runs all of `runs`. Nodes are killed only while no scenario is running.
    fn run_all(&mut self, runs: &[Run]) -> Outcome {
        let kills = self.word == "killed-nodes";
        let mut failed = 0;
        for runs in runs.chunks(if kills { RUNS_OF_A_KILL } else { runs.len() }) {
            if let Some(Target::Nodes(nodes)) = self.target.as_mut().filter(|_| kills) {
                nodes.kill_one()?;
            }
            failed += self.run_some(runs);
        }
        println!(
            "\nconformance: {} of {} runs passed",
            runs.len() - failed,
            runs.len()
        );
        match failed {
            0 => Ok(()),
            _ => Err(format!(
                "FAILED: conformance: {failed} of {} runs\noutput of the suite: {}",
                runs.len(),
                reports().display()
            )),
        }
    }

    /// Runs these scenarios, and returns the number of failures.
    fn run_some(&self, runs: &[Run]) -> usize {
        let failed = AtomicUsize::new(0);
        step::at_once(runs, |run| {
            if let Err(reason) = self.run(run) {
                failed.fetch_add(1, Ordering::Relaxed);
                println!("FAILED {run}: {reason}\n    {}", run.again(self.word(run)));
            }
        });
        failed.into_inner()
    }

    /// The argument that selects the target of a run.
    fn word(&self, run: &Run) -> &'static str {
        match run.side {
            Side::Client => "client",
            Side::Server => self.word,
        }
    }

    fn run(&self, run: &Run) -> Outcome {
        let report = reports().join(run.directory());
        fs::create_dir_all(&report)
            .map_err(|error| format!("cannot create {}: {error}", report.display()))?;
        let mut command = self.command(run);
        command.arg("-o").arg(&report).stdin(Stdio::null());
        let status = step::run_into(&report.join("output.txt"), &mut command, LIMIT)?;
        let checks = report::read(&report)?;
        // A server is judged only by the checks. For a client the status of the suite counts, too: only the suite knows how it
        // ended.
        let client_failed = run.side == Side::Client && !status.success();
        report::judge(&checks, client_failed)
    }

    fn command(&self, run: &Run) -> Command {
        let mut command = self.node.run(SUITE);
        command.arg(run.side.to_string());
        match &self.target {
            Some(target) if run.side == Side::Server => command.args(["--url", &target.url()]),
            // The suite splits the command at spaces, and a full path could contain spaces.
            _ => command.args(["--command", "./conformance-client"]),
        };
        command
            .args(["--scenario", &run.scenario, "--spec-version", &run.revision])
            .args(run.is_extension.then_some("--force"))
            .current_dir(&self.programs);
        command
    }
}

fn reports() -> PathBuf {
    root().join("target").join("conformance")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_must_name_the_number_of_runs() {
        let readme = "all\n  18 runs of the official\n conformance suite pass";
        assert!(check_readme(readme, 18).is_ok());
        assert!(check_readme(readme, 8).is_err());
    }
}
