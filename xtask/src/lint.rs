//! `cargo xtask lint`: every check that runs no test.

use std::{path::Path, process::Command};

use crate::step::{self, Outcome, THIRD_PARTY, cargo, cargo_in, root};

/// Runs every check, in the order in which they are quick.
pub(crate) fn run() -> Outcome {
    step::stages(&[
        ("formatting", format),
        ("script of the checks", || {
            step::run("bash -n", &mut bash(&["-n", ".ci/run"]))
        }),
        ("clippy, all features", || clippy("--all-features")),
        ("clippy, no features", || clippy("--no-default-features")),
        ("clippy, default features", clippy_of_defaults),
        ("clippy, roles alone", clippy_of_roles),
        ("crates without I/O", without_io),
        ("clippy, benchmarks", clippy_bench),
        ("clippy, fuzzers", || clippy_in("fuzz")),
        ("clippy, an extension of others", || clippy_in(THIRD_PARTY)),
        ("documentation", documentation),
    ])
}

fn format() -> Outcome {
    let check = |directory: &str| {
        let mut command = cargo_in(directory, ["fmt", "--all", "--check"]);
        step::run(&format!("cargo fmt in {directory}/"), &mut command)
    };
    step::all([".", "bench", "fuzz", THIRD_PARTY].map(check))
}

fn clippy(features: &str) -> Outcome {
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
    step::run("cargo clippy", &mut cargo(args))
}

/// What most programs build, with the tests of it: other packages of the workspace would add their features.
fn clippy_of_defaults() -> Outcome {
    let args = [
        "clippy",
        "--quiet",
        "--locked",
        "--package=oxmcp",
        "--package=oxmcp-tests",
        "--all-targets",
        "--",
        "-Dwarnings",
    ];
    step::run("cargo clippy", &mut cargo(args))
}

/// No role, a client alone and a server alone, with and without tasks and HTTP: what is built for one must not need the other.
fn clippy_of_roles() -> Outcome {
    let roles = [
        "",
        "client",
        "server",
        "client,tasks",
        "server,tasks",
        "http-client",
        "http-server",
    ];
    step::all(roles.map(|role| {
        let features = format!("--features={role}");
        let args = [
            "clippy",
            "--quiet",
            "--locked",
            "--package=oxmcp",
            "--lib",
            "--no-default-features",
            &features,
            "--",
            "-Dwarnings",
        ];
        let title = if role.is_empty() { "no role" } else { role };
        step::run(&format!("clippy, {title} alone"), &mut cargo(args))
    }))
}

/// The crates that do no I/O, for a target that has none, where that target is installed.
fn without_io() -> Outcome {
    let target = "wasm32-unknown-unknown";
    if !is_installed(target) {
        step::headline(&format!(
            "crates without I/O: {target} is not installed, so they are not checked for it"
        ));
        return Ok(());
    }
    let mut args = vec!["check", "--quiet", "--locked", "--target", target];
    let pure = ["oxmcp-json", "oxmcp-schema", "oxmcp-protocol"];
    args.extend(pure.iter().flat_map(|package| ["--package", package]));
    step::run("crates without I/O", &mut cargo(args))
}

fn is_installed(target: &str) -> bool {
    let mut command = Command::new("rustc");
    command
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root());
    let output = command.output();
    output.is_ok_and(|output| {
        let path = String::from_utf8_lossy(&output.stdout);
        output.status.success() && Path::new(path.trim()).is_dir()
    })
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
        "--exclude=minimal-rmcp",
        "--all-targets",
        "--",
        "-Dwarnings",
    ];
    step::run("clippy, benchmarks", &mut cargo_in("bench", args))
}

/// Of the fuzzers without the driver, which takes a nightly compiler.
fn clippy_in(directory: &str) -> Outcome {
    let args = [
        "clippy",
        "--quiet",
        "--locked",
        "--all-targets",
        "--",
        "-Dwarnings",
    ];
    step::run(
        &format!("cargo clippy, in {directory}/"),
        &mut cargo_in(directory, args),
    )
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
