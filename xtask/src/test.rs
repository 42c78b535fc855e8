//! `cargo xtask test`: every test there is, and what they need.

use crate::{
    conformance, interop,
    setup::Tools,
    step::{self, Outcome, cargo},
};

/// Runs the parts named, or all of them.
pub(crate) fn run(parts: &[&str]) -> Outcome {
    match parts {
        [] => step::all([unit(), schema(), conformance::run(&[]), interop::run("")]),
        ["unit"] => unit(),
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

/// The tests that need the official schemas are ignored where there are none: some look inside, some from outside.
fn schema() -> Outcome {
    let schemas = Tools::set_up_node()?.schemas()?;
    let args = [
        "test",
        "--locked",
        "-p",
        "oxmcp",
        "--all-features",
        "--lib",
        "--test",
        "it",
        "--",
        "--ignored",
    ];
    step::run(
        "tests against the official schemas",
        cargo(args).env("OXMCP_SCHEMAS", schemas),
    )
}
