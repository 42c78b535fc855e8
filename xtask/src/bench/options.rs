//! The options of `cargo xtask bench`.

use std::time::Duration;

use super::{
    cells::{CELLS, Cell},
    programs::{DEFAULT, PROGRAMS},
};

const USAGE: &str = "\
Usage: cargo xtask bench [OPTIONS]

  --quick               fewer and shorter rounds, for a first impression
  --only WORD           only the cells whose name contains WORD; may be repeated
  --era 2025|2026       only this era
  --programs A,B,C      the programs to measure instead of oxmcp,rmcp,raw
  --cpu                 only CPU time
  --instructions        only instructions and allocations per call (needs valgrind)
  --memory              only the memory of sessions
  --build               only the CPU time of a clean build of the minimal server over stdio
  --chart               draw docs/bench.svg from the last measured CPU times; with --cpu, measure them first
";

/// The measurements to take, and their durations.
pub(crate) struct Options {
    pub(crate) cells: Vec<&'static Cell>,
    pub(crate) eras: Vec<&'static str>,
    /// Names of [`PROGRAMS`], in the order of the measurements.
    pub(crate) programs: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) measured: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) cpu: bool,
    pub(crate) counts: bool,
    pub(crate) memory: bool,
    pub(crate) build: bool,
    pub(crate) chart: bool,
    /// The divisor of the numbers of calls in a count.
    pub(crate) fewer: u64,
}

impl Options {
    pub(crate) fn parse(args: &[&str]) -> Result<Self, String> {
        let mut quick = false;
        let (mut cpu, mut counts, mut memory) = (false, false, false);
        let (mut build, mut chart) = (false, false);
        let mut words = Vec::new();
        let mut eras = vec!["2025", "2026"];
        let mut programs = DEFAULT.to_owned();
        let mut args = args.iter().copied();
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| format!("{arg} needs a value\n\n{USAGE}"))
            };
            match arg {
                "--quick" => quick = true,
                "--cpu" => cpu = true,
                "--instructions" => counts = true,
                "--memory" => memory = true,
                "--build" => build = true,
                "--chart" => chart = true,
                "--only" => words.push(value()?.to_owned()),
                "--programs" => value()?.clone_into(&mut programs),
                "--era" => {
                    let era = value()?;
                    eras.retain(|known| *known == era);
                }
                _ => return Err(USAGE.to_owned()),
            }
        }
        let named = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
        // A cell is also measured if the goal of a named cell is a multiple of its numbers.
        let wanted = |cell: &&Cell| {
            let mut beside = CELLS.iter().filter(|other| named(other.name));
            named(cell.name) || beside.any(|other| other.needs(cell))
        };
        let is_all = !(cpu || counts || memory || build || chart);
        let options = Self {
            cells: CELLS.iter().filter(wanted).collect(),
            eras,
            programs: programs.split(',').map(str::to_owned).collect(),
            rounds: if quick { 2 } else { 7 },
            measured: Duration::from_millis(if quick { 120 } else { 300 }),
            warm_up: Duration::from_millis(if quick { 40 } else { 100 }),
            cpu: cpu || is_all,
            counts: counts || is_all,
            memory: memory || is_all,
            build,
            chart,
            fewer: if quick { 5 } else { 1 },
        };
        options.check()
    }

    /// The eras in which this cell is measured.
    pub(crate) fn eras_of(&self, cell: &Cell) -> impl Iterator<Item = &'static str> {
        let eras = self.eras.iter().copied();
        eras.filter(|era| cell.eras.contains(era))
    }

    fn check(self) -> Result<Self, String> {
        if self.cells.is_empty() || self.eras.is_empty() {
            let names: Vec<_> = CELLS.iter().map(|cell| cell.name).collect();
            return Err(format!(
                "no cell matches; the cells are: {}; the eras are 2025 and 2026",
                names.join(", ")
            ));
        }
        let unknown = |name: &&String| !PROGRAMS.iter().any(|program| program.name == **name);
        match self.programs.iter().find(unknown) {
            None => Ok(self),
            Some(name) => {
                let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
                Err(format!(
                    "unknown program `{name}`; the programs are: {}",
                    names.join(", ")
                ))
            }
        }
    }
}
