//! `cargo xtask test`: every test there is, with all that they need.

use xtask::packages::{LEFT_OUT, NGINX, REDIS};

use crate::{
    conformance, interop,
    setup::Tools,
    step::{self, Outcome, Stage, THIRD_PARTY, cargo, cargo_in},
};

/// All of them. The first needs only Rust and a C compiler.
const STAGES: [Stage; 8] = [
    ("unit, integration and documentation tests", unit),
    ("tests of the benchmarks", bench),
    ("tests of the fuzz targets", fuzz),
    ("tests of an extension of others", third_party),
    ("tests against the official schemas", schema),
    ("the official conformance suite", || conformance::run(&[])),
    ("the official conformance suite against two nodes", nodes),
    ("interop with software of others", || interop::run("")),
];

/// Runs the part named, or all of them.
pub(crate) fn run(parts: &[&str]) -> Outcome {
    match parts {
        [] => step::stages(&STAGES),
        ["unit"] => unit(),
        ["bench"] => bench(),
        ["fuzz"] => fuzz(),
        ["third-party"] => third_party(),
        ["schema"] => schema(),
        ["conformance", rest @ ..] => conformance::run(rest),
        ["interop"] => interop::run(""),
        ["interop", word] => interop::run(word),
        ["interop-twins"] => interop::run_twins(""),
        ["interop-twins", word] => interop::run_twins(word),
        _ => Err(format!(
            "there is no part `{}`; see `cargo xtask`",
            parts.join(" ")
        )),
    }
}

fn unit() -> Outcome {
    let args = [
        "test",
        "--locked",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ];
    step::run_tests("cargo test", &mut cargo(args))
}

/// Nodes are killed for so long while clients call them; what becomes of the calls is shown.
pub(crate) fn soak(seconds: &str) -> Outcome {
    let args = [
        "test",
        "--locked",
        "-p",
        "oxmcp-redis-tests",
        "--test",
        "it",
        "--",
    ];
    let mut command = cargo(args);
    command
        .args(["nodes::killing", "--nocapture", "--test-threads=1"])
        .env("OXMCP_SOAK_SECONDS", seconds);
    step::run_tests("calls while nodes are killed", &mut command)
}

/// Left out where there are no packages of what the nodes need.
fn nodes() -> Outcome {
    if NGINX.bring()?.is_none() || REDIS.bring()?.is_none() {
        println!("{LEFT_OUT}the official suite against two nodes: it needs nginx and redis-server");
        return Ok(());
    }
    conformance::run(&["nodes"])?;
    conformance::run(&["killed-nodes"])
}

/// What outside tools measure by. The peer that needs an SDK of others is left out: to build that takes longer than all the rest.
fn bench() -> Outcome {
    let args = [
        "test",
        "--locked",
        "--workspace",
        "--exclude=bench-rmcp",
        "--exclude=minimal-rmcp",
        "--no-fail-fast",
    ];
    step::run_tests("cargo test, in bench/", &mut cargo_in("bench", args))
}

/// The targets as functions, with input made by rules: no fuzzer is needed.
fn fuzz() -> Outcome {
    let args = ["test", "--locked", "--no-fail-fast"];
    step::run_tests("cargo test, in fuzz/", &mut cargo_in("fuzz", args))
}

/// An extension as another vendor writes it: a crate outside of the workspace, which has the public API alone.
fn third_party() -> Outcome {
    let args = ["test", "--locked", "--no-fail-fast"];
    step::run_tests(
        "cargo test, in crates/oxmcp-tests/third-party/",
        &mut cargo_in(THIRD_PARTY, args),
    )
}

/// The tests that need the official schemas are ignored where there are none: some look inside, some from outside.
fn schema() -> Outcome {
    let schemas = Tools::set_up_node()?.schemas()?;
    let args = [
        "test",
        "--locked",
        "--no-fail-fast",
        // Of the whole workspace, as it is built already: with the features of a few packages all would be built anew.
        "--workspace",
        "--all-features",
        "--lib",
        "--test",
        "it",
        "--test",
        "official",
        "--",
        "--ignored",
    ];
    step::run_tests(
        "cargo test, with the schemas",
        cargo(args).env("OXMCP_SCHEMAS", schemas),
    )
}
