//! The table of attacks, compared with the tests.

use crate::{
    http::attack_table::{ALL, TABLE},
    tidy::source::files,
};

/// The tests of attacks in a file, and whether each uses `mounts!()`.
fn tests_of(text: &str) -> Vec<(&str, bool)> {
    let begin = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("async ")
            .unwrap_or(line)
            .starts_with("fn attack_")
    };
    let lines: Vec<_> = text.lines().collect();
    let starts = (0..lines.len()).filter(|at| begin(lines[*at]));
    let test = |at: usize| {
        let (before, name) = lines[at].split_once("fn ").unwrap();
        let indentation = before.len() - before.trim_start().len();
        let end = format!("{}}}", " ".repeat(indentation));
        let mut body = lines[at..].iter().take_while(|line| **line != end);
        (
            name.split('(').next().unwrap(),
            body.any(|line| line.contains("mounts!()")),
        )
    };
    starts.map(test).collect()
}

#[test]
fn every_attack_is_in_one_row_and_tried_over_its_mounts() {
    let mut wrong = Vec::new();
    let mut found = Vec::new();
    for source in files() {
        for (test, asks) in tests_of(&source.text) {
            found.push(test.to_owned());
            let rows: Vec<_> = TABLE
                .iter()
                .filter(|row| row.tests.contains(&test))
                .collect();
            match rows[..] {
                [row] if row.mounts.is_empty() == asks => wrong.push(format!(
                    "{}: {test}: `for mount in mounts!()` stands in those tests whose row has mounts",
                    source.path
                )),
                [_] => {}
                _ => wrong.push(format!(
                    "{}: {test} belongs into one row of the table of attacks, {}",
                    source.path,
                    "crates/oxmcp-tests/tests/it/http/attack_table.rs"
                )),
            }
        }
    }
    for row in TABLE {
        assert_eq!(row.why.is_empty(), row.mounts == ALL, "{:?}", row.tests);
        let gone = row
            .tests
            .iter()
            .filter(|test| !found.iter().any(|it| it == *test));
        wrong.extend(gone.map(|test| format!("{test} is in the table of attacks, and no test")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
