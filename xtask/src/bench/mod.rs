//! `cargo xtask bench`: the cost of a call on oxmcp, on its peers, and at the practical limit.
//!
//! The programs live in the workspace `bench/`. They are measured interleaved and on one CPU, so that what else the
//! machine does falls on all of them alike; the counts of instructions and allocations do not depend on that at all.

mod callgrind;
mod cells;
mod cpu;
mod memory;
mod options;
mod programs;
mod table;

use std::path::Path;

use options::Options;
use programs::Programs;

/// Builds the programs, measures and prints.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let bench = root.ok_or("the workspace has no root")?.join("bench");
    let programs = Programs::build(&bench, &options.programs)?;
    let mut failures = Vec::new();
    if options.cpu {
        failures.extend(cpu::run(&options, &programs));
    }
    if options.counts {
        failures.extend(callgrind::run(&options, &programs));
    }
    if options.memory {
        failures.extend(memory::run(&options, &programs));
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "These could not be measured:\n{}",
            failures.join("\n")
        ))
    }
}
