//! `cargo xtask lint`: all that can be checked without running a test.

use std::process::Command;

use crate::step::{self, Outcome, cargo, root};

/// Runs every check, in the order in which they are quick.
pub(crate) fn run() -> Outcome {
    step::all([
        step::run("format", &mut cargo(["fmt", "--all", "--check"])),
        step::run(
            "format, benchmarks",
            &mut in_bench(&["fmt", "--all", "--check"]),
        ),
        step::run("format, fuzzers", &mut format_fuzz()),
        step::run("script of the checks", &mut bash(&["-n", ".ci/run"])),
        clippy("clippy, all features", "--all-features"),
        clippy("clippy, no features", "--no-default-features"),
        clippy_bench(),
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

/// The benchmarks break when the API changes, and nobody builds them every day. The peer that needs an SDK of others is
/// left out: to build that SDK takes longer than all the rest.
fn clippy_bench() -> Outcome {
    let args = [
        "clippy",
        "--quiet",
        "--locked",
        "--workspace",
        "--exclude=bench-rmcp",
        "--all-targets",
        "--",
        "-Dwarnings",
    ];
    step::run(
        "clippy, benchmarks",
        // What both have in common is built once.
        in_bench(&args).env("CARGO_TARGET_DIR", root().join("target")),
    )
}

/// `cargo`, in the workspace of the benchmarks.
fn in_bench(args: &[&str]) -> Command {
    let mut command = cargo(args.iter().copied());
    command.current_dir(root().join("bench"));
    command
}

/// Built they are not: a cfg of their own would build everything once more.
fn format_fuzz() -> Command {
    let mut command = cargo(["fmt", "--check"]);
    command.current_dir(root().join("fuzz"));
    command
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
