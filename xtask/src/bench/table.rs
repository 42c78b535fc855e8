//! Tables for a terminal: a group of columns for each program, and the goal at the end.

const CELL: usize = 19;
const ERA: usize = 5;

/// A column's head and width.
#[derive(Clone, Copy)]
pub(crate) struct Column(pub(crate) &'static str, pub(crate) usize);

/// The shape of a table. Rows are printed as soon as they are measured, to show progress.
pub(crate) struct Table {
    programs: Vec<&'static str>,
    columns: Vec<Column>,
}

impl Table {
    pub(crate) fn new(programs: Vec<&'static str>, columns: &[Column]) -> Self {
        Self {
            programs,
            columns: columns.to_vec(),
        }
    }

    pub(crate) fn print_head(&self) {
        let width: usize = self.columns.iter().map(|Column(_, width)| width).sum();
        let names: String = self
            .programs
            .iter()
            .map(|name| format!(" |{name:>width$}"))
            .collect();
        println!("{:CELL$}{:ERA$}{names}", "", "");
        let heads: String = self
            .columns
            .iter()
            .map(|Column(head, width)| format!("{head:>width$}"))
            .collect();
        let heads: String = self.programs.iter().map(|_| format!(" |{heads}")).collect();
        println!("{:CELL$}{:ERA$}{heads} | goal of oxmcp", "", "era");
    }

    /// Prints a row with a group of fields for each program, `None` if the program could not be measured.
    pub(crate) fn print_row(
        &self,
        cell: &str,
        era: &str,
        groups: impl Iterator<Item = Option<Vec<String>>>,
        verdict: &str,
    ) {
        let group = |fields: Option<Vec<String>>| {
            let fields = fields.unwrap_or_else(|| vec!["-".to_owned(); self.columns.len()]);
            let columns = self.columns.iter().zip(fields);
            let fields: String = columns
                .map(|(Column(_, width), field)| format!("{field:>width$}"))
                .collect();
            format!(" |{fields}")
        };
        let groups: String = groups.map(group).collect();
        println!("{cell:CELL$}{era:ERA$}{groups} | {verdict}");
    }
}

/// A ratio as it is printed.
pub(crate) fn multiple(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// The verdict on a goal that should not be exceeded.
pub(crate) fn verdict(goal: Option<f64>, reached: Option<f64>, unit: &str) -> String {
    said(goal, reached, unit, |goal, reached| reached <= goal)
}

/// The verdict on a goal that should be exceeded.
pub(crate) fn at_least(goal: Option<f64>, reached: Option<f64>, unit: &str) -> String {
    said(goal, reached, unit, |goal, reached| reached >= goal)
}

fn said(
    goal: Option<f64>,
    reached: Option<f64>,
    unit: &str,
    is_good: fn(f64, f64) -> bool,
) -> String {
    match (goal, reached) {
        (None, _) => String::new(),
        (Some(goal), None) => format!("{goal}{unit}"),
        (Some(goal), Some(reached)) if is_good(goal, reached) => format!("{goal}{unit} reached"),
        (Some(goal), Some(_)) => format!("{goal}{unit} MISSED"),
    }
}

/// The verdict on a goal that is a multiple of oxmcp's own number in another cell.
pub(crate) fn verdict_beside(
    goal: Option<(&str, f64)>,
    ours: Option<f64>,
    other: impl FnOnce(&str) -> Option<f64>,
) -> String {
    let Some((name, goal)) = goal else {
        return String::new();
    };
    let ratio = ours.zip(other(name)).map(|(ours, other)| ours / other);
    let said = verdict(Some(goal), ratio, "x");
    match ratio {
        Some(ratio) => format!("{ratio:.2} of {name}, goal {said}"),
        None => format!("{said} of {name}"),
    }
}

/// Several verdicts in one field.
pub(crate) fn joined(verdicts: &[String]) -> String {
    let said = verdicts.iter().filter(|verdict| !verdict.is_empty());
    said.map(String::as_str).collect::<Vec<_>>().join(", ")
}
