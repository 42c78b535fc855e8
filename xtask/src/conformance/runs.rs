//! The runs of the official suite, which itself lists its scenarios and their revisions.

use std::{collections::BTreeMap, fmt, path::PathBuf};

/// The scenarios that are left out: the beginnings of their names, and the reasons. (Scenarios for authorization servers do not
/// apply.)
const LEFT_OUT: &[(&str, &str)] = &[(
    "tasks-status-notifications",
    "the suite always skips it; it/extension/tasks has a test for it",
)];

/// The scenarios that are left out for a proxy.
const LEFT_OUT_OF_PROXY: &[(&str, &str)] = &[
    (
        "server-stateless",
        "it expects a notification for a list whose entries are the same",
    ),
    (
        "server-sse-polling",
        "a stream that an upstream closes is not the stream of the proxy's client",
    ),
];

/// The revisions at which scenarios of extensions are run. They belong to no revision: the suite can run them at any.
const OF_EXTENSIONS: &[&str] = &["2025-11-25", "2026-07-28"];

/// The scenarios of extensions that only some revisions support, by the beginnings of their names.
const OF_SOME_REVISIONS: &[(&str, &[&str])] = &[("tasks-", &["2026-07-28"])];

/// The side that is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

impl Side {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "server" => Some(Self::Server),
            "client" => Some(Self::Client),
            _ => None,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}

/// A scenario, as the suite lists it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scenario {
    side: Side,
    name: String,
    /// The revisions that the scenario applies to; empty for an extension.
    revisions: Vec<String>,
}

/// A scenario at a revision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) side: Side,
    pub(crate) scenario: String,
    pub(crate) revision: String,
    /// Whether the scenario belongs to an extension. The suite silently skips those unless it is forced to run them.
    pub(crate) is_extension: bool,
}

impl Run {
    /// The command that runs only this run again, against the target that `word` selects.
    pub(crate) fn again(&self, word: &str) -> String {
        let Self {
            scenario, revision, ..
        } = self;
        format!("rerun only this: cargo xtask conformance {word} '{scenario} {revision}'")
    }

    /// The directory of the report.
    pub(crate) fn directory(&self) -> PathBuf {
        let scenario = self.scenario.replace('/', "_");
        PathBuf::from(self.side.to_string())
            .join(&self.revision)
            .join(scenario)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.side, self.scenario, self.revision)
    }
}

/// Reads the output of `conformance list`: a heading for each side, and lines like `  - ping [2025-06-18,2025-11-25]`. Scenarios
/// for authorization servers belong to no side.
pub(crate) fn read(list: &str) -> Vec<Scenario> {
    let mut side = None;
    let mut scenarios = Vec::new();
    for line in list.lines() {
        let entry = line
            .trim()
            .strip_prefix("- ")
            .and_then(|entry| entry.split_once(" ["));
        match (side, entry) {
            (Some(side), Some((name, tags))) => {
                let revisions = tags.trim_end_matches(']').split(',');
                let revisions = revisions.filter(|it| it.starts_with(|c: char| c.is_ascii_digit()));
                scenarios.push(Scenario {
                    side,
                    name: name.to_owned(),
                    revisions: revisions.map(str::to_owned).collect(),
                });
            }
            (_, None) if line.contains("scenarios") => {
                let word = line.split(' ').next().unwrap_or_default();
                side = Side::parse(&word.to_lowercase());
            }
            _ => {}
        }
    }
    scenarios
}

/// The runs of one side, or of both, that have `word` in their names, and the number of scenarios that are left out for each
/// reason.
pub(crate) fn choose(
    scenarios: &[Scenario],
    side: Option<Side>,
    is_proxy: bool,
    word: &str,
) -> (Vec<Run>, BTreeMap<&'static str, usize>) {
    let mut runs = Vec::new();
    let mut left_out = BTreeMap::new();
    for scenario in scenarios
        .iter()
        .filter(|it| side.is_none_or(|side| side == it.side))
    {
        let of_proxy = LEFT_OUT_OF_PROXY.iter().filter(|_| is_proxy);
        let reason = LEFT_OUT
            .iter()
            .chain(of_proxy)
            .find(|(prefix, _)| scenario.name.starts_with(prefix));
        if let Some((_, reason)) = reason {
            *left_out.entry(*reason).or_default() += 1;
            continue;
        }
        let is_extension = scenario.revisions.is_empty();
        let mut some = OF_SOME_REVISIONS.iter();
        let some = some.find(|(prefix, _)| scenario.name.starts_with(prefix));
        let of_extensions = some.map_or(OF_EXTENSIONS, |(_, revisions)| revisions);
        let of_extensions = of_extensions.iter().filter(|_| is_extension);
        let own = scenario.revisions.iter().map(String::as_str);
        runs.extend(own.chain(of_extensions.copied()).map(|revision| Run {
            side: scenario.side,
            scenario: scenario.name.clone(),
            revision: revision.to_owned(),
            is_extension,
        }));
    }
    runs.retain(|run| run.to_string().contains(word));
    (runs, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
Server scenarios (test against a server):
  - ping [2025-06-18,2025-11-25]
  - tasks-lifecycle [extension]
  - tasks-status-notifications [extension]

Client scenarios (test against a client):
  - tools_call [2026-07-28]
  - auth/dpop [extension]
  - auth/basic-cimd [2025-11-25,2026-07-28]

Authorization server scenarios (test against an authorization server):
  - authorization-code-grant [2025-03-26]
";

    fn names(runs: &[Run]) -> Vec<String> {
        runs.iter().map(Run::to_string).collect()
    }

    #[test]
    fn scenario_runs_at_each_of_its_revisions() {
        let (runs, left_out) = choose(&read(LIST), None, false, "");
        let all = [
            "server ping 2025-06-18",
            "server ping 2025-11-25",
            "server tasks-lifecycle 2026-07-28",
            "client tools_call 2026-07-28",
            "client auth/dpop 2025-11-25",
            "client auth/dpop 2026-07-28",
            "client auth/basic-cimd 2025-11-25",
            "client auth/basic-cimd 2026-07-28",
        ];
        assert_eq!(names(&runs), all);
        let forced: Vec<_> = runs.iter().map(|run| run.is_extension).collect();
        assert_eq!(
            forced,
            [false, false, true, false, true, true, false, false]
        );
        assert_eq!(left_out.values().sum::<usize>(), 1);
    }

    #[test]
    fn side_and_word_select_the_runs() {
        let scenarios = read(LIST);
        assert_eq!(
            names(&choose(&scenarios, Some(Side::Client), false, "tools").0),
            ["client tools_call 2026-07-28"]
        );
        assert_eq!(
            names(&choose(&scenarios, None, false, "ping 2025-11-25").0),
            ["server ping 2025-11-25"]
        );
        assert!(
            choose(&scenarios, Some(Side::Client), false, "ping")
                .0
                .is_empty()
        );
    }
}
