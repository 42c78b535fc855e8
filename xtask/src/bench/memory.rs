//! Memory per session, measured on a server with a thousand sessions, each on its own connection.

use serde_json::Value;

use super::{
    cells::{Cell, Side},
    options::Options,
    programs::{LIMIT, OURS, Program, Programs},
    table::{Column, Table, multiple, verdict},
};

/// Measures and prints all cells, and returns the failures.
pub(crate) fn run(options: &Options, programs: &Programs) -> Vec<String> {
    println!("\nMemory of a session over HTTP, its connection included\n");
    let table = Table::new(
        programs.iter().map(|program| program.name).collect(),
        &[Column("KiB", 9), Column("x raw", 7)],
    );
    table.print_head();
    let mut failures = Vec::new();
    let measured = |cell: &&&Cell| cell.side == Side::Memory;
    for cell in options.cells.iter().filter(measured) {
        for era in options.eras_of(cell) {
            let taken: Vec<_> = programs
                .iter()
                .map(|program| match sample(programs, program, cell, era) {
                    Ok(taken) => (program.name, Some(taken)),
                    Err(e) => {
                        failures.push(format!("{} {era}, {}: {e}", cell.name, program.name));
                        (program.name, None)
                    }
                })
                .collect();
            print_row(&table, cell, era, &taken);
        }
    }
    failures
}

fn sample(programs: &Programs, program: &Program, cell: &Cell, era: &str) -> Result<f64, String> {
    let output = programs
        .measurement(program, cell, &[format!("era={era}")])
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("no report: {e}"))?;
    let taken = report.get("kib_per_session").and_then(Value::as_f64);
    taken.ok_or_else(|| "no kib_per_session in the report".to_owned())
}

fn print_row(table: &Table, cell: &Cell, era: &str, taken: &[(&str, Option<f64>)]) {
    let of = |name: &str| taken.iter().find(|(program, _)| *program == name)?.1;
    let groups = taken.iter().map(|(_, taken)| {
        let ratio = |taken: f64| of(LIMIT).map(|limit| taken / limit);
        taken.map(|taken| vec![format!("{taken:.1}"), multiple(ratio(taken))])
    });
    let verdict = verdict(cell.goals.memory, of(OURS), " KiB");
    table.print_row(cell.name, era, groups, &verdict);
}
