//! `cargo xtask test`: the tests that a contributor runs, and `cargo xtask test all`: all tests, with the programs and packages that
//! they need.

use std::process::Command;

use xtask::packages::{LEFT_OUT, NGINX, REDIS};

use crate::{
    browser::{APPS, UI},
    conformance, interop,
    setup::Tools,
    step::{self, Outcome, Stage, THIRD_PARTY, cargo, cargo_in},
};

/// The stages of `cargo xtask test`, which need only Rust and a C compiler.
const QUICK: [Stage; 2] = [
    ("build the tests and the examples", build),
    (
        "unit, integration, example and documentation tests",
        run_built,
    ),
];

/// All stages. The first four need only Rust and a C compiler.
const ALL: [Stage; 11] = [
    ("all tests of the workspace, slow ones included", workspace),
    ("tests of the benchmarks", bench),
    ("tests of the fuzz targets", fuzz),
    ("tests of a third-party extension", third_party),
    ("tests against the official schemas", schema),
    ("the official conformance suite", || conformance::run(&[])),
    ("the official conformance suite against two nodes", nodes),
    ("the official conformance suite through a proxy", || {
        conformance::run(&["proxy"])
    }),
    ("interop with third-party software", || interop::run("")),
    ("apps in a browser", || APPS.run("")),
    ("the page of `oxmcp ui` in a browser", || UI.run("")),
];

/// The packages that `cargo xtask test` tests: those that a change of the SDK can break, without the stores and the peers.
const QUICK_PACKAGES: [&str; 13] = [
    "oxmcp",
    "oxmcp-apps",
    "oxmcp-auth",
    "oxmcp-cli",
    "oxmcp-examples",
    "oxmcp-group",
    "oxmcp-json",
    "oxmcp-macros",
    "oxmcp-protocol",
    "oxmcp-schema",
    "oxmcp-skills",
    "oxmcp-tests",
    "xtask",
];

/// The tests that `cargo xtask test` leaves out: each takes four seconds or more, or needs another service. A name stands for all
/// tests whose path contains it.
const LEFT_FOR_ALL: &[&str] = &[
    "thousand_failures_leave_nothing_behind",
    "ended_sessions_leave_no_process",
    "new_projects_compile",
    "compile_errors_teach",
    "undecided_revision_does_not_compile",
    "http::load::",
    "session_ids_are_unguessable",
    "session_flood_evicts_only_unused_sessions",
    "no_body_crashes_the_server",
    "malformed_request_heads_are_answered",
    "task_beyond_ten_thousand_running_is_refused",
    "every_endpoint_and_method_refuses_foreign_origins",
    "only_its_owner_can_use_a_task",
    "every_endpoint_and_method_refuses_foreign_hosts",
    "megabyte_uri_is_matched_in_one_pass",
    "repeatedly_resuming_nonreaders_use_bounded_memory",
    "session_evictions_are_limited_by_cleanup_time",
    "hostile_names_stay_within_the_folder",
    "hard_to_parse_messages_need_little_extra_memory",
    "blocking_handler_does_not_outlive_its_input",
    "every_kind_of_bad_token_is_refused",
    "printed_values_are_read_back",
    "stalled_peer_is_not_served_and_loses_nothing",
    "hostile_lists_are_read_with_bounded_work",
    "longest_lists_are_cut",
    "examples::cluster",
    "examples::gateway_cluster",
    "examples::opentelemetry",
];

/// Runs the tests of a contributor, all tests, or one stage.
pub(crate) fn run(parts: &[&str]) -> Outcome {
    match parts {
        [] => step::stages(&QUICK),
        ["all"] => step::stages(&ALL),
        ["rest"] => rest(),
        ["workspace"] => workspace(),
        ["bench"] => bench(),
        ["fuzz"] => fuzz(),
        ["third-party"] => third_party(),
        ["schema"] => schema(),
        ["apps"] => APPS.run(""),
        ["apps", word] => APPS.run(word),
        ["ui"] => UI.run(""),
        ["ui", word] => UI.run(word),
        ["conformance", rest @ ..] => conformance::run(rest),
        ["interop"] => interop::run(""),
        ["interop", word] => interop::run(word),
        ["interop-twins"] => interop::run_twins(""),
        ["interop-twins", word] => interop::run_twins(word),
        _ => Err(format!(
            "unknown stage `{}`; run `cargo xtask` for a list",
            parts.join(" ")
        )),
    }
}

/// `cargo test` for the packages of `cargo xtask test`. Without a choice of targets it builds the examples as programs. With all
/// features, so that `cargo xtask test all` uses what it has built.
fn quick() -> Command {
    let mut command = cargo(["test", "--locked", "--all-features", "--no-fail-fast"]);
    for package in QUICK_PACKAGES {
        command.args(["--package", package]);
    }
    command
}

fn build() -> Outcome {
    step::run("cargo test --no-run", quick().args(["--no-run", "--quiet"]))
}

fn run_built() -> Outcome {
    let mut command = quick();
    command.arg("--");
    for name in LEFT_FOR_ALL {
        command.args(["--skip", name]);
    }
    step::run_tests("cargo test", &mut command)
}

/// All tests that `cargo xtask test` leaves out.
fn rest() -> Outcome {
    let mut stages: Vec<Stage> = vec![
        ("the slow tests", slow),
        ("tests of the stores and the peers", others),
    ];
    stages.extend(ALL.into_iter().skip(1));
    step::stages(&stages)
}

fn slow() -> Outcome {
    let mut command = quick();
    command.arg("--").args(LEFT_FOR_ALL);
    step::run_tests("cargo test, the slow tests", &mut command)
}

fn others() -> Outcome {
    let mut command = all_packages();
    for package in QUICK_PACKAGES {
        command.args(["--exclude", package]);
    }
    step::run_tests("cargo test, stores and peers", &mut command)
}

/// Everything that `cargo test` runs in the workspace.
fn workspace() -> Outcome {
    step::run_tests("cargo test", &mut all_packages())
}

/// `cargo test` for the whole workspace.
fn all_packages() -> Command {
    cargo([
        "test",
        "--locked",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ])
}

/// Kills nodes for this number of seconds while clients call them, and shows the outcomes of the calls.
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

/// The official suite against two nodes; skipped if the programs that the nodes need are missing and cannot be unpacked.
fn nodes() -> Outcome {
    if NGINX.bring()?.is_none() || REDIS.bring()?.is_none() {
        println!("{LEFT_OUT}the official suite against two nodes: it needs nginx and redis-server");
        return Ok(());
    }
    conformance::run(&["nodes"])?;
    conformance::run(&["killed-nodes"])
}

/// The tests of the benchmarks, which outside tools use to measure. The peer on a third-party SDK is left out, because building
/// that SDK takes longer than all the rest.
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

/// The fuzz targets as functions, with input that is generated by rules: no fuzzer is needed.
fn fuzz() -> Outcome {
    let args = ["test", "--locked", "--no-fail-fast"];
    step::run_tests("cargo test, in fuzz/", &mut cargo_in("fuzz", args))
}

/// An extension as another vendor writes it: a crate outside of the workspace, which has only the public API.
fn third_party() -> Outcome {
    let args = ["test", "--locked", "--no-fail-fast"];
    step::run_tests(
        "cargo test, in crates/oxmcp-tests/third-party/",
        &mut cargo_in(THIRD_PARTY, args),
    )
}

/// The tests that need the official schemas, which are ignored if there are none: both unit tests and integration tests.
fn schema() -> Outcome {
    let schemas = Tools::set_up_node()?.schemas()?;
    // The whole workspace, as it is built already: with the features of only a few packages everything would be rebuilt.
    let mut command = all_packages();
    command
        .args(["--lib", "--test", "it", "--test", "official"])
        .args(["--", "--ignored"])
        .env("OXMCP_SCHEMAS", schemas);
    step::run_tests("cargo test, with the schemas", &mut command)
}
