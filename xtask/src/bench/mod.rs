//! `cargo xtask bench`: the cost of a call on oxmcp, on its peers, and at the practical limit.
//!
//! The programs live in the workspace `bench/`. They are measured interleaved and on one CPU, so that other work of the machine
//! affects all of them alike; the counts of instructions and allocations do not depend on it at all.

mod build;
mod callgrind;
mod cells;
mod chart;
mod cpu;
mod memory;
mod options;
mod programs;
mod redis;
mod results;
mod stored;
mod table;

use std::path::Path;

use options::Options;
use programs::Programs;
use results::Results;

/// Builds the programs, takes the measurements, prints them, and draws the chart.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = root.ok_or("the workspace has no root")?;
    let mut results = Results::load(root);
    let failures = measure(&options, root, &mut results)?;
    if options.chart {
        chart::write(&results, root)?;
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(format!("could not measure:\n{}", failures.join("\n")))
    }
}

/// Takes the selected measurements, and returns the failures.
fn measure(options: &Options, root: &Path, results: &mut Results) -> Result<Vec<String>, String> {
    let (bench, mut failures) = (root.join("bench"), Vec::new());
    if options.build {
        failures.extend(build::run(options, &bench)?);
    }
    if !(options.cpu || options.counts || options.memory) {
        return Ok(failures);
    }
    let programs = Programs::build(&bench, &options.programs, &options.cells)?;
    if options.cpu {
        failures.extend(cpu::run(options, &programs, results));
        results.save()?;
    }
    if options.counts {
        failures.extend(callgrind::run(options, &programs, results));
        results.save()?;
    }
    if options.memory {
        failures.extend(memory::run(options, &programs));
        failures.extend(stored::run(options, &programs));
    }
    Ok(failures)
}
