//! Instructions in user space and allocations per call: the slope between a shorter and a longer run under callgrind, so that start
//! and end of the process do not count. Both numbers hold on any machine.

use std::{
    collections::HashMap,
    env, fs,
    path::Path,
    process::{self, Command},
};

use super::{
    cells::Cell,
    options::Options,
    programs::{LIMIT, OURS, Program, Programs},
    results::{Measure, Results},
    table::{Column, Table, joined, multiple, verdict, verdict_beside},
};

/// The counts of one run, or of one call.
#[derive(Clone, Copy)]
struct Counts {
    instructions: f64,
    allocations: f64,
}

/// Counts, prints and records all cells that are counted, and returns the failures.
pub(crate) fn run(options: &Options, programs: &Programs, results: &mut Results) -> Vec<String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("\nvalgrind is not installed: skipping instructions and allocations");
        return Vec::new();
    }
    println!(
        "\nInstructions in user space and allocations (malloc, calloc, realloc) per call of the measured side\n"
    );
    let table = Table::new(
        programs.iter().map(|program| program.name).collect(),
        &[Column("instr", 10), Column("x raw", 7), Column("allocs", 8)],
    );
    table.print_head();
    let mut failures = Vec::new();
    for cell in &options.cells {
        let Some((few, many)) = cell.counted else {
            continue;
        };
        let runs = (few.div_ceil(options.fewer), many.div_ceil(options.fewer));
        for era in options.eras_of(cell) {
            let counts: Vec<_> = programs
                .iter()
                .map(|program| {
                    let counts = program
                        .can(cell)
                        .then(|| slope(programs, program, cell, era, runs));
                    let keep = |counts| keep(counts, cell, era, program, &mut failures);
                    (program, counts.and_then(keep))
                })
                .collect();
            for (program, counts) in &counts {
                let instructions = counts.map(|counts| counts.instructions);
                let at = (cell.name, era, program.name);
                results.record(Measure::Instructions, at, instructions);
            }
            print_row(&table, cell, era, &counts, results);
        }
    }
    failures
}

fn keep(
    counts: Result<Counts, String>,
    cell: &Cell,
    era: &str,
    program: &Program,
    failures: &mut Vec<String>,
) -> Option<Counts> {
    counts
        .map_err(|e| failures.push(format!("{} {era}, {}: {e}", cell.name, program.name)))
        .ok()
}

fn slope(
    programs: &Programs,
    program: &Program,
    cell: &Cell,
    era: &str,
    (few, many): (u64, u64),
) -> Result<Counts, String> {
    let short = count(programs, program, cell, era, few)?;
    let long = count(programs, program, cell, era, many)?;
    let calls = (many - few) as f64;
    Ok(Counts {
        instructions: (long.instructions - short.instructions) / calls,
        allocations: (long.allocations - short.allocations) / calls,
    })
}

fn count(
    programs: &Programs,
    program: &Program,
    cell: &Cell,
    era: &str,
    calls: u64,
) -> Result<Counts, String> {
    let profile = env::temp_dir().join(format!("oxmcp-bench-{}.callgrind", process::id()));
    let watcher = [
        "valgrind".to_owned(),
        "--tool=callgrind".to_owned(),
        "--log-file=/dev/null".to_owned(),
        format!("--callgrind-out-file={}", profile.display()),
    ];
    let load = [
        format!("era={era}"),
        format!("calls={calls}"),
        "warm=0".to_owned(),
    ];
    let output = programs
        .watched(program, cell, &load, &watcher)
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let counts = read(&profile);
    let _ = fs::remove_file(&profile);
    counts
}

fn read(profile: &Path) -> Result<Counts, String> {
    let text = fs::read_to_string(profile).map_err(|e| format!("{}: {e}", profile.display()))?;
    parse(&text).ok_or_else(|| "the profile has no summary".to_owned())
}

/// Reads callgrind's format: `summary: N`, and for calls a line `cfn=(ID) NAME`, followed by `calls=COUNT ...`. The name is present
/// only on the first line that has the id.
fn parse(profile: &str) -> Option<Counts> {
    let mut instructions = None;
    let mut is_allocator: HashMap<&str, bool> = HashMap::new();
    let mut counting = false;
    let mut allocations = 0.0;
    for line in profile.lines() {
        if let Some(total) = line.strip_prefix("summary:") {
            instructions = total.split_whitespace().next()?.parse().ok();
        } else if let Some(function) = line
            .strip_prefix("cfn=")
            .or_else(|| line.strip_prefix("fn="))
        {
            let (id, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                is_allocator.insert(id, allocates(name));
            }
            counting = line.starts_with('c') && is_allocator.get(id).copied().unwrap_or_default();
        } else if let Some(call) = line.strip_prefix("calls=")
            && counting
        {
            allocations += call.split(' ').next()?.parse::<f64>().ok()?;
        }
    }
    Some(Counts {
        instructions: instructions?,
        allocations,
    })
}

fn allocates(function: &str) -> bool {
    // Recursive functions are numbered: malloc'2.
    let name = function.split('\'').next().unwrap_or(function);
    matches!(
        name,
        "malloc" | "calloc" | "realloc" | "aligned_alloc" | "posix_memalign"
    )
}

fn print_row(
    table: &Table,
    cell: &Cell,
    era: &str,
    counts: &[(&Program, Option<Counts>)],
    results: &Results,
) {
    let of = |name: &str| {
        counts
            .iter()
            .find(|(program, _)| program.name == name)
            .and_then(|(_, counts)| *counts)
    };
    let limit = of(LIMIT).map(|limit| limit.instructions);
    let groups = counts.iter().map(|(_, counts)| {
        counts.map(|counts| {
            let ratio = limit.map(|limit| counts.instructions / limit);
            vec![
                format!("{:.0}", counts.instructions),
                multiple(ratio),
                format!("{:.1}", counts.allocations),
            ]
        })
    });
    let ratio = of(OURS)
        .zip(limit)
        .map(|(ours, limit)| ours.instructions / limit);
    let allocations = of(OURS).map(|ours| ours.allocations);
    let ours = of(OURS).map(|ours| ours.instructions);
    let other = |name: &str| results.get(Measure::Instructions, (name, era, OURS));
    let verdict = [
        verdict_beside(cell.goals.beside, ours, other),
        verdict(cell.goals.instructions, ratio, "x"),
        verdict(cell.goals.allocations, allocations, " allocs"),
    ];
    table.print_row(cell.name, era, groups, &joined(&verdict));
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn allocation_calls_are_counted_under_any_caller() {
        let profile = "\
fn=(1) main
16 4
cfn=(2) malloc
calls=3 0
16 300
cfn=(3) free
calls=3 0
16 200
fn=(4) grow
cfn=(2)
calls=2 10
8 200
cfn=(5) realloc'2
calls=1 10
8 90
fn=(2)
0 100
summary: 12345
";
        let counts = parse(profile).unwrap();
        assert_eq!(counts.instructions, 12345.0);
        assert_eq!(counts.allocations, 6.0);
    }

    #[test]
    fn profile_without_summary_is_rejected() {
        assert!(parse("fn=(1) main\n16 4\n").is_none());
    }
}
