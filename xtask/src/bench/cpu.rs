//! CPU time per call of the measured program, without the driver, in the window of the measurement, in interleaved rounds.

use std::process::Command;

use serde_json::Value;

use super::{
    cells::{Cell, Side},
    options::Options,
    programs::{LIMIT, OURS, Program, Programs},
    redis::Redis,
    results::{Measure, Results},
    table::{Column, Table, at_least, joined, multiple, verdict, verdict_beside},
};

/// The numbers of one program from one round.
struct Sample {
    microseconds: f64,
    calls_per_second: f64,
}

/// Measures, prints and records all cells, and returns the failures.
pub(crate) fn run(options: &Options, programs: &Programs, results: &mut Results) -> Vec<String> {
    println!(
        "\nCPU microseconds per call of the measured side, pinned to one CPU, median of {} interleaved rounds\n",
        options.rounds
    );
    let table = Table::new(
        programs.iter().map(|program| program.name).collect(),
        &[
            Column("us/call", 9),
            Column("x raw", 7),
            Column("calls/s", 10),
        ],
    );
    table.print_head();
    let mut failures = Vec::new();
    let measured = |cell: &&&Cell| matches!(cell.side, Side::Server | Side::Client);
    for cell in options.cells.iter().filter(measured) {
        for era in options.eras_of(cell) {
            let medians = medians(options, programs, cell, era, &mut failures);
            for (program, sample) in &medians {
                let at = (cell.name, era, program.name);
                let microseconds = sample.as_ref().map(|sample| sample.microseconds);
                let rounds = microseconds.map(|_| options.rounds.min(cell.most_rounds) as f64);
                results.record(Measure::Cpu, at, microseconds);
                results.record(Measure::Rounds, at, rounds);
            }
            print_row(&table, cell, era, &medians, results);
        }
    }
    failures
}

type Medians = Vec<(&'static Program, Option<Sample>)>;

fn medians(
    options: &Options,
    programs: &Programs,
    cell: &Cell,
    era: &str,
    failures: &mut Vec<String>,
) -> Medians {
    let load = [
        format!("era={era}"),
        format!("secs={}", options.measured.as_secs_f64()),
        format!("warm={}", options.warm_up.as_secs_f64()),
    ];
    let mut samples: Vec<(_, Vec<Sample>)> = programs
        .iter()
        .map(|program| (program, Vec::new()))
        .collect();
    let rounds = options.rounds.min(cell.most_rounds);
    for _ in 0..rounds {
        for (program, samples) in &mut samples {
            if !program.can(cell) {
                continue;
            }
            match sample(programs.measurement(program, cell, &load), cell) {
                Ok(sample) => samples.push(sample),
                Err(e) => failures.push(format!("{} {era}, {}: {e}", cell.name, program.name)),
            }
        }
    }
    // A program that failed in one round has no numbers: without that round they would flatter it.
    let whole = |samples: Vec<Sample>| {
        if samples.len() == rounds {
            median(&samples)
        } else {
            None
        }
    };
    samples
        .into_iter()
        .map(|(program, samples)| (program, whole(samples)))
        .collect()
}

fn sample(mut command: Command, cell: &Cell) -> Result<Sample, String> {
    // Redis ends with the round.
    let redis = cell.is_of_nodes().then(Redis::start).transpose()?;
    if let Some(redis) = &redis {
        redis.for_command(&mut command);
    }
    let output = command.output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("no report: {e}"))?;
    let number = |name: &str| {
        report
            .get(name)
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("no {name} in the report"))
    };
    let cpu = match cell.side {
        Side::Server | Side::Memory | Side::Stored => number("server_cpu_seconds")?,
        Side::Client => number("cpu_seconds")?,
    };
    Ok(Sample {
        microseconds: cpu * 1e6 / number("calls")?,
        calls_per_second: number("calls_per_second")?,
    })
}

fn median(samples: &[Sample]) -> Option<Sample> {
    let middle = |value: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let (lower, upper) = (
            values.get((values.len().checked_sub(1)?) / 2)?,
            values.get(values.len() / 2)?,
        );
        Some(f64::midpoint(*lower, *upper))
    };
    Some(Sample {
        microseconds: middle(|sample| sample.microseconds)?,
        calls_per_second: middle(|sample| sample.calls_per_second)?,
    })
}

fn print_row(table: &Table, cell: &Cell, era: &str, medians: &Medians, results: &Results) {
    let of = |name: &str| {
        let (_, sample) = medians.iter().find(|(program, _)| program.name == name)?;
        sample.as_ref()
    };
    let limit = of(LIMIT).map(|limit| limit.microseconds);
    let groups = medians.iter().map(|(_, sample)| {
        sample.as_ref().map(|sample| {
            let ratio = limit.map(|limit| sample.microseconds / limit);
            vec![
                format!("{:.2}", sample.microseconds),
                multiple(ratio),
                format!("{:.0}", sample.calls_per_second),
            ]
        })
    });
    let both = of(OURS).zip(of(LIMIT));
    let cost = both.map(|(ours, limit)| ours.microseconds / limit.microseconds);
    let rate = both.map(|(ours, limit)| ours.calls_per_second / limit.calls_per_second);
    let ours = of(OURS).map(|ours| ours.microseconds);
    let other = |name: &str| results.get(Measure::Cpu, (name, era, OURS));
    let verdict = [
        verdict(cell.goals.cpu, cost, "x"),
        verdict_beside(cell.goals.beside, ours, other),
        at_least(cell.goals.rate, rate, "x calls/s"),
    ];
    table.print_row(cell.name, era, groups, &joined(&verdict));
}
