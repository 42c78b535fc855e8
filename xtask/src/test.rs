//! `cargo xtask test`: every test there is, with all that they need.

use crate::{
    conformance, interop,
    setup::Tools,
    step::{self, Outcome, cargo, root},
};

/// Runs the parts named, or all of them.
pub(crate) fn run(parts: &[&str]) -> Outcome {
    match parts {
        [] => step::all([
            unit(),
            bench(),
            schema(),
            conformance::run(&[]),
            interop::run(""),
        ]),
        ["unit"] => unit(),
        ["bench"] => bench(),
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
    let title = "unit, integration and documentation tests";
    step::run(
        title,
        &mut cargo(["test", "--locked", "--workspace", "--all-features"]),
    )
}

/// What outside tools measure by. The peer that needs an SDK of others is left out: to build that takes longer than all the rest.
fn bench() -> Outcome {
    let args = ["test", "--locked", "--workspace", "--exclude=bench-rmcp"];
    step::run(
        "tests of the benchmarks",
        cargo(args)
            .current_dir(root().join("bench"))
            // What both have in common is built once.
            .env("CARGO_TARGET_DIR", root().join("target")),
    )
}

/// The tests that need the official schemas are ignored where there are none: some look inside, some from outside.
fn schema() -> Outcome {
    let schemas = Tools::set_up_node()?.schemas()?;
    let args = [
        "test",
        "--locked",
        "-p",
        "oxmcp",
        "-p",
        "oxmcp-protocol",
        "--all-features",
        "--lib",
        "--test",
        "it",
        "--test",
        "official",
        "--",
        "--ignored",
    ];
    step::run(
        "tests against the official schemas",
        cargo(args).env("OXMCP_SCHEMAS", schemas),
    )
}
