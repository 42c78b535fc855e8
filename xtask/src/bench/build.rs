//! CPU time of a clean release build of the minimal server over stdio, without the downloads.

use std::{collections::HashSet, fs, path::Path, process::Command};

use super::{
    options::Options,
    table::{joined, verdict},
};
use crate::step;

/// A build of the minimal server.
struct Build {
    name: &'static str,
    /// The package in the workspace `bench/`.
    package: &'static str,
    arguments: &'static [&'static str],
    /// The goals: CPU seconds on the machine of the benchmark, and the number of crates without the server itself.
    goals: Option<(f64, f64)>,
}

/// All builds, in the order of the measurements.
const BUILDS: &[Build] = &[
    Build {
        name: "oxmcp",
        package: "minimal-oxmcp",
        arguments: &[],
        goals: Some((90.0, 60.0)),
    },
    Build {
        name: "oxmcp, server only",
        package: "minimal-oxmcp",
        arguments: &["--no-default-features"],
        goals: None,
    },
    Build {
        name: "rmcp",
        package: "minimal-rmcp",
        arguments: &[],
        goals: None,
    },
    Build {
        name: "raw",
        package: "minimal-raw",
        arguments: &[],
        goals: None,
    },
];

/// Measures the builds in interleaved rounds, prints the results, and returns the failures.
pub(crate) fn run(options: &Options, bench: &Path) -> Result<Vec<String>, String> {
    let fetched = cargo(bench).args(["fetch", "--locked", "--quiet"]).status();
    if !fetched.is_ok_and(|status| status.success()) {
        return Err("cargo fetch failed".to_owned());
    }
    let rounds = if options.rounds > 2 { 3 } else { 1 };
    println!(
        "\nClean release build of the minimal server over stdio, median of {rounds} interleaved rounds\n"
    );
    println!(
        "{:24}{:>12}{:>9} | goal of oxmcp",
        "", "CPU seconds", "crates"
    );
    let mut failures = Vec::new();
    let mut built: Vec<_> = BUILDS.iter().map(|build| (build, Vec::new())).collect();
    for _ in 0..rounds {
        for (build, rounds) in &mut built {
            match sample(build, bench) {
                Ok(sample) => rounds.push(sample),
                Err(e) => failures.push(format!("the build of {}: {e}", build.name)),
            }
        }
    }
    for (build, mut rounds) in built {
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(&(seconds, crates)) = rounds.get(rounds.len() / 2) else {
            continue;
        };
        let goal = |which: fn((f64, f64)) -> f64| build.goals.map(which);
        let verdict = joined(&[
            verdict(goal(|goals| goals.0), Some(seconds), " s"),
            verdict(goal(|goals| goals.1), Some(crates), " crates"),
        ]);
        println!("{:24}{seconds:>12.1}{crates:>9} | {verdict}", build.name);
    }
    Ok(failures)
}

fn cargo(bench: &Path) -> Command {
    let mut cargo = step::cargo([]);
    cargo.current_dir(bench).env_remove("CARGO_TARGET_DIR");
    // The profile of a user's own workspace, without debug information.
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    cargo
}

/// The CPU seconds of one build, and the number of crates that were compiled in addition to the server itself.
fn sample(build: &Build, bench: &Path) -> Result<(f64, f64), String> {
    let target = bench.join("target/minimal");
    if target.exists() {
        fs::remove_dir_all(&target).map_err(|e| format!("{}: {e}", target.display()))?;
    }
    let before = children_cpu()?;
    let mut command = cargo(bench);
    command.args(["build", "--release", "--locked", "--offline", "--package"]);
    command.arg(build.package).args(build.arguments);
    command.arg("--target-dir").arg(&target);
    let output = command.output().map_err(|e| format!("cargo: {e}"))?;
    let seconds = children_cpu()? - before;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok((seconds, compiled(&said) as f64 - 1.0))
    } else {
        Err(said.trim().to_owned())
    }
}

/// The number of packages that cargo reports as compiled.
fn compiled(said: &str) -> usize {
    let lines = said.lines().map(str::trim_start);
    let packages: HashSet<_> = lines
        .filter_map(|line| line.strip_prefix("Compiling "))
        .collect();
    packages.len()
}

/// The CPU time of all children that have ended, and of their children.
fn children_cpu() -> Result<f64, String> {
    /// `USER_HZ`, which is the same on all systems that this runs on.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").map_err(|e| format!("/proc: {e}"))?;
    let ticks = children_ticks(&stat).ok_or("/proc/self/stat has no times")?;
    Ok(ticks / TICKS)
}

/// The sum of `cutime` and `cstime`, the 14th and 15th field after the name. The name, in parentheses, may hold any characters.
fn children_ticks(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(13).map(str::parse::<f64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_times_are_parsed_for_any_process_name() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 95 0 0 0 11 12 250 50 20 0 1 0 9 1 1";
        assert_eq!(children_ticks(stat), Some(300.0));
    }

    #[test]
    fn package_counts_once() {
        let said = "   Compiling serde v1.0.0\n   Compiling serde v1.0.0\n   Compiling a v1.0.0 (/a)\n    Finished\n";
        assert_eq!(compiled(said), 2);
    }
}
