//! The measured numbers, kept under `target/bench` for the chart.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Numbers by cell, era and program.
type Numbers = BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>;

/// A measured quantity.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// CPU time per call, in microseconds.
    Cpu,
    /// The number of rounds of which [`Cpu`](Self::Cpu) is the median.
    Rounds,
    /// Instructions per call.
    Instructions,
}

/// The latest number of each cell, era and program, of this run and of those before it.
#[derive(Default)]
pub(crate) struct Results {
    file: PathBuf,
    measures: BTreeMap<String, Numbers>,
}

impl Results {
    /// Reads the numbers of earlier runs, if there are any.
    pub(crate) fn load(root: &Path) -> Self {
        let file = root.join("target/bench/results.json");
        let measures = fs::read(&file)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        Self {
            file,
            measures: measures.unwrap_or_default(),
        }
    }

    /// Saves all known numbers for later runs.
    pub(crate) fn save(&self) -> Result<(), String> {
        let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", self.file.display());
        let text = serde_json::to_string_pretty(&self.measures).map_err(|e| wrong(&e))?;
        let folder = self.file.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder).map_err(|e| wrong(&e))?;
        fs::write(&self.file, text + "\n").map_err(|e| wrong(&e))
    }

    /// Replaces the known number. `None`, if nothing could be measured, removes it.
    pub(crate) fn record(
        &mut self,
        measure: Measure,
        (cell, era, program): (&str, &str, &str),
        number: Option<f64>,
    ) {
        let numbers = self.measures.entry(measure.name().to_owned()).or_default();
        let eras = numbers.entry(cell.to_owned()).or_default();
        let programs = eras.entry(era.to_owned()).or_default();
        match number {
            Some(number) => programs.insert(program.to_owned(), number),
            None => programs.remove(program),
        };
    }

    pub(crate) fn get(
        &self,
        measure: Measure,
        (cell, era, program): (&str, &str, &str),
    ) -> Option<f64> {
        let eras = self.measures.get(measure.name())?.get(cell)?;
        eras.get(era)?.get(program).copied()
    }
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu microseconds per call",
            Self::Rounds => "rounds",
            Self::Instructions => "instructions per call",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_number_is_kept_and_failure_removes_it() {
        let (mut results, at) = (Results::default(), ("stdio add", "2026", "raw"));
        results.record(Measure::Cpu, at, Some(13.5));
        results.record(Measure::Cpu, at, Some(12.5));
        assert_eq!(results.get(Measure::Cpu, at), Some(12.5));
        assert_eq!(results.get(Measure::Instructions, at), None);
        results.record(Measure::Cpu, at, None);
        assert_eq!(results.get(Measure::Cpu, at), None);
    }
}
