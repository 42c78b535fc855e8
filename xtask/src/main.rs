//! The project's own commands: `cargo xtask lint | lines | test | conformance | soak | bench | release`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

mod bench;
mod browser;
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
  lines [ROOT]                count lines of code by crate and module
  test                        unit, integration and documentation tests, and the examples; takes minutes
  test all                    every test; installs the tools that they need first
  test rest                   every test that `test` leaves out
  test workspace              everything that `cargo test` runs, including slow tests, stores and peers
  test bench                  the tools, options and output of the benchmark programs
  test fuzz                   the fuzz targets, with generated input
  test third-party            a third-party extension, which uses only the public API
  test schema                 the output of the SDK against the official schemas
  test apps [WORD]            apps in headless Chromium, with the host and the views of others; WORD selects cases by name
  test ui [WORD]              the page of `oxmcp ui` in headless Chromium; WORD selects cases by name
  test conformance [...]      same as `conformance`
  test interop [WORD]         third-party clients and servers against ours; WORD selects cases by name
  test interop-twins [WORD]   the interop scripts against third-party servers, to test the scripts themselves
  conformance [server|client|nodes|killed-nodes|proxy] [WORD]
                              the official suite; WORD selects scenarios by name; `nodes` runs it against two servers that
                              share a Redis, behind nginx; `killed-nodes` kills one of them before every other run
  soak [SECONDS]              calls while nodes are killed, for an hour by default
  bench [OPTIONS]             speed compared with the peers and the practical limit; see --help
  release                     list what a release still needs, and do a dry run; publishes and tags nothing";

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
