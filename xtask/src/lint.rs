//! `cargo xtask lint`: every check that runs no test.

use std::{path::Path, process::Command};

use crate::step::{self, Outcome, THIRD_PARTY, cargo, cargo_in, root};

/// Runs every check, the quickest first.
pub(crate) fn run() -> Outcome {
    step::stages(&[
        ("formatting", format),
        ("syntax of .ci/run", || {
            step::run("bash -n", &mut bash(&["-n", ".ci/run"]))
        }),
        ("clippy, all features", || clippy_of_all("--all-features")),
        ("clippy, no features", || {
            clippy_of_all("--no-default-features")
        }),
        ("clippy, single roles", clippy_of_roles),
        ("crates without I/O", without_io),
        ("clippy, benchmarks", clippy_of_bench),
        // Without the driver, which needs a nightly compiler.
        ("clippy, fuzzers", || clippy("fuzz", &["--all-targets"])),
        ("clippy, third-party extension", || {
            clippy(THIRD_PARTY, &["--all-targets"])
        }),
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

/// Runs clippy on the selected parts of a workspace, with each warning as an error.
fn clippy(directory: &str, selected: &[&str]) -> Outcome {
    let mut args = vec!["clippy", "--quiet", "--locked"];
    args.extend(selected);
    args.extend(["--", "-Dwarnings"]);
    let title = format!("clippy {} in {directory}/", selected.join(" "));
    step::run(&title, &mut cargo_in(directory, args))
}

fn clippy_of_all(features: &str) -> Outcome {
    clippy(".", &["--workspace", "--all-targets", features])
}

/// The default features, no role, only a client, and only a server, with and without tasks and HTTP: the code of one role must not
/// need the other.
fn clippy_of_roles() -> Outcome {
    let roles = [
        "default",
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
        let library = ["--package=oxmcp", "--lib", "--no-default-features"];
        clippy(".", &[&library[..], &[&features]].concat())
    }))
}

/// The crates that do no I/O, for a target that has none, if that target is installed.
fn without_io() -> Outcome {
    let target = "wasm32-unknown-unknown";
    if !is_installed(target) {
        step::headline(&format!(
            "crates without I/O: skipped, since the target {target} is not installed"
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

/// The benchmarks break when the API changes, and are not built every day. The peer on a third-party SDK is left out, because
/// building that SDK takes longer than all the rest.
fn clippy_of_bench() -> Outcome {
    let others = ["--exclude=bench-rmcp", "--exclude=minimal-rmcp"];
    let selected = [&["--workspace"], &others[..], &["--all-targets"]].concat();
    clippy("bench", &selected)
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
