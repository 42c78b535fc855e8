//! `cargo xtask test`: the tests that a contributor runs, and `cargo xtask test all`: all tests, with the programs and packages that
//! they need.

use std::process::Command;

use xtask::packages::{LEFT_OUT, NGINX, REDIS};

use crate::{
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
const ALL: [Stage; 8] = [
    ("all tests of the workspace, slow ones included", workspace),
    ("tests of the benchmarks", bench),
    ("tests of the fuzz targets", fuzz),
    ("tests of an extension of others", third_party),
    ("tests against the official schemas", schema),
    ("the official conformance suite", || conformance::run(&[])),
    ("the official conformance suite against two nodes", nodes),
    ("interop with software of others", || interop::run("")),
];

/// The packages that `cargo xtask test` tests: those that a change of the SDK can break, without the stores and the peers.
const QUICK_PACKAGES: [&str; 9] = [
    "oxmcp",
    "oxmcp-auth",
    "oxmcp-examples",
    "oxmcp-json",
    "oxmcp-macros",
    "oxmcp-protocol",
    "oxmcp-schema",
    "oxmcp-tests",
    "xtask",
];

/// Their features: all of the SDK, and those of the examples that need no other service.
const QUICK_FEATURES: &str = "oxmcp-tests/auth,oxmcp-tests/aws-lc-rs,oxmcp-tests/http-server,oxmcp-tests/keyring,oxmcp-tests/tasks,\
     oxmcp-tests/tracing-subscriber,oxmcp-examples/authorization,oxmcp-examples/tasks,oxmcp-examples/tracing-subscriber";

/// The tests that `cargo xtask test` leaves out: each takes four seconds or more, or needs what is not built. A name stands for all
/// tests whose path contains it.
const LEFT_FOR_ALL: &[&str] = &[
    "compile_errors_teach",
    "http::load::",
    "ids_of_sessions_cannot_be_guessed",
    "a_flood_of_sessions_evicts_unused_sessions_alone",
    "no_body_ends_a_server",
    "heads_that_say_strange_things_are_answered",
    "ten_thousand_tasks_run_at_once_and_one_more_is_refused",
    "pages_from_elsewhere_are_refused_by_every_endpoint_and_method",
    "a_task_is_of_its_owner_alone",
    "another_host_is_refused_by_every_endpoint_and_method",
    "a_uri_of_a_megabyte_is_matched_in_one_pass",
    "readers_that_come_again_without_reading_pile_up_nothing",
    "no_more_sessions_give_way_than_there_is_time_to_end",
    "hostile_names_lead_to_files_of_the_folder_alone",
    "a_session_that_its_handler_closes_ends",
    "a_server_that_is_started_may_be_silent_for_a_while",
    "messages_that_are_hard_to_parse_take_little_more_memory_than_themselves",
    "a_blocking_handler_does_not_outlive_its_input",
    "tokens_that_are_bad_in_any_way_are_refused",
    "printed_values_are_read_back",
    "a_peer_that_stops_reading_stops_being_served_and_loses_nothing",
    "hostile_lists_are_read_in_bounded_work",
    "examples::cluster",
    "examples::opentelemetry",
];

/// Runs the tests of a contributor, all tests, or one stage.
pub(crate) fn run(parts: &[&str]) -> Outcome {
    match parts {
        [] => step::stages(&QUICK),
        ["all"] => step::stages(&ALL),
        ["workspace"] => workspace(),
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

/// `cargo test` for the packages of `cargo xtask test`. Without a choice of targets it builds the examples as programs.
fn quick() -> Command {
    let mut command = cargo(["test", "--locked", "--no-fail-fast"]);
    for package in QUICK_PACKAGES {
        command.args(["--package", package]);
    }
    command.args(["--features", QUICK_FEATURES]);
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

/// Everything that `cargo test` runs in the workspace.
fn workspace() -> Outcome {
    let args = [
        "test",
        "--locked",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ];
    step::run_tests("cargo test", &mut cargo(args))
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

/// The official suite against two nodes; left out if there are no packages of the programs that the nodes need.
fn nodes() -> Outcome {
    if NGINX.bring()?.is_none() || REDIS.bring()?.is_none() {
        println!("{LEFT_OUT}the official suite against two nodes: it needs nginx and redis-server");
        return Ok(());
    }
    conformance::run(&["nodes"])?;
    conformance::run(&["killed-nodes"])
}

/// The tests of the benchmarks, by which outside tools measure. The peer that needs an SDK of others is left out, because building
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
    let args = [
        "test",
        "--locked",
        "--no-fail-fast",
        // The whole workspace, as it is built already: with the features of only a few packages everything would be rebuilt.
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
