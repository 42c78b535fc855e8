//! The project's own commands: `cargo xtask lint | lines | test | conformance | soak | bench | release`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

mod bench;
mod conformance;
mod interop;
mod lines;
mod lint;
mod release;
mod setup;
mod step;
mod test;

use std::{env, process::ExitCode};

use step::Outcome;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  lint                        formatting, clippy, the documentation, the scripts
  lines [ROOT]                lines of code, of each crate and of each room in it
  test                        unit, integration and documentation tests, and the examples: what a change can break, in minutes
  test all                    every test, with all that they need set up first
  test workspace              all that `cargo test` runs, slow tests, stores and peers included
  test bench                  what the programs of the benchmark are measured by: their tools, options and output
  test fuzz                   the targets of the fuzzers, with generated input
  test third-party            an extension as others write it, on the public API alone
  test schema                 what the SDK emits, against the official schemas
  test conformance [...]      the same as conformance
  test interop [WORD]         software of others against ours; only the cases whose name has WORD in it
  test interop-twins [WORD]   the scripts of the above against servers of others: are the scripts right?
  conformance [server|client|nodes|killed-nodes] [WORD]
                              the official suite; only the runs that have WORD in their names; nodes are two servers that
                              share a Redis, behind nginx; of killed ones one is killed before every other run
  soak [SECONDS]              an hour of calls while nodes are killed
  bench [OPTIONS]             speed, beside the peers and the practical limit; --help says more
  release                     what a release still needs, and a dry run of it; publishes nothing and makes no tag";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["lint"] => lint::run(),
        ["lines"] => lines::run(None),
        ["lines", root] => lines::run(Some(root)),
        ["test", parts @ ..] => test::run(parts),
        ["conformance", rest @ ..] => conformance::run(rest),
        ["soak"] => test::soak("3600"),
        ["soak", seconds] => test::soak(seconds),
        ["bench", options @ ..] => bench::run(options),
        ["release"] => release::run(),
        ["record", file, command @ ..] => return interop::record::run(file, command),
        _ => Err(USAGE.to_owned()),
    };
    finish(outcome)
}

fn finish(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\n{message}");
            ExitCode::FAILURE
        }
    }
}
