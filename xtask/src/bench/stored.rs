//! Memory of Redis per session, stream and event, measured with a hundred thousand sessions.

use serde_json::Value;

use super::{
    cells::{Cell, Side},
    options::Options,
    programs::Programs,
    redis::Redis,
    table::verdict,
};

/// Measures and prints all cells, and returns the failures.
pub(crate) fn run(options: &Options, programs: &Programs) -> Vec<String> {
    let mut failures = Vec::new();
    let measured = |cell: &&&Cell| cell.side == Side::Stored;
    for cell in options.cells.iter().filter(measured) {
        println!("\nMemory of Redis, sealed\n");
        match sample(programs, cell) {
            Ok(report) => print(cell, &report),
            Err(e) => failures.push(format!("{}: {e}", cell.name)),
        }
    }
    failures
}

fn sample(programs: &Programs, cell: &Cell) -> Result<Value, String> {
    let redis = Redis::start()?;
    let mut command = programs.stored(cell);
    redis.for_command(&mut command);
    let output = command.output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("no report: {e}"))
}

fn print(cell: &Cell, report: &Value) {
    let number = |name: &str| report.get(name).and_then(Value::as_f64);
    for (name, what) in [
        ("sessions", "sessions, written"),
        ("opened", "of them, opened at a node"),
        ("bytes_per_session", "bytes each session"),
        ("bytes_per_stream", "bytes each stream, with one event"),
        ("bytes_per_event", "bytes each event of a long stream"),
    ] {
        println!("{:>10.0} {what}", number(name).unwrap_or(f64::NAN));
    }
    let kib = number("bytes_per_session").map(|bytes| bytes / 1024.0);
    println!("{}", verdict(cell.goals.memory, kib, " KiB a session"));
}
