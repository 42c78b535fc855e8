//! `cargo xtask lint`: all that can be checked without running a test.

use std::process::Command;

use crate::step::{self, Outcome, cargo, root};

/// Runs every check, in the order in which they are quick.
pub(crate) fn run() -> Outcome {
    step::all([
        step::run("format", &mut cargo(["fmt", "--all", "--check"])),
        step::run("script of the checks", &mut bash(&["-n", ".ci/run"])),
        clippy("clippy, all features", "--all-features"),
        clippy("clippy, no features", "--no-default-features"),
        documentation(),
    ])
}

fn clippy(title: &str, features: &str) -> Outcome {
    let args = [
        "clippy",
        "--quiet",
        "--locked",
        "--workspace",
        "--all-targets",
        features,
        "--",
        "-Dwarnings",
    ];
    step::run(title, &mut cargo(args))
}

fn documentation() -> Outcome {
    let args = [
        "doc",
        "--quiet",
        "--locked",
        "--workspace",
        "--all-features",
        "--no-deps",
        "--document-private-items",
    ];
    step::run(
        "documentation",
        cargo(args).env("RUSTDOCFLAGS", "-Dwarnings"),
    )
}

fn bash(args: &[&str]) -> Command {
    let mut command = Command::new("bash");
    command.args(args).current_dir(root());
    command
}
