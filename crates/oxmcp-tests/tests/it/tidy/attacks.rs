//! The table of attacks, compared with the tests.

use crate::{
    http::attack_table::{ALL, TABLE},
    tidy::source::files,
};

/// The beginning of the comment that marks the test of an attack and names the attack.
const MARK: &str = "// Attack: ";

/// The tests of attacks in a file, and whether each uses `mounts!()`. A test of an attack is the function after a [`MARK`].
fn tests_of(text: &str) -> Vec<(&str, bool)> {
    let is_function = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("async ")
            .unwrap_or(line)
            .starts_with("fn ")
    };
    let lines: Vec<_> = text.lines().collect();
    let is_mark = |at: &usize| lines[*at].trim_start().starts_with(MARK);
    let starts = (0..lines.len()).filter(is_mark).map(|mark| {
        let mut rest = mark..lines.len();
        rest.find(|at| is_function(lines[*at])).unwrap()
    });
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
fn every_attack_has_one_row_and_its_mounts() {
    let mut wrong = Vec::new();
    let mut found = Vec::new();
    for source in files() {
        for (test, asks) in tests_of(&source.text) {
            if found.iter().any(|it| it == test) {
                wrong.push(format!(
                    "{}: duplicate name of an attack test: {test}",
                    source.path
                ));
            }
            found.push(test.to_owned());
            let rows: Vec<_> = TABLE
                .iter()
                .filter(|row| row.tests.contains(&test))
                .collect();
            match rows[..] {
                [row] if row.mounts.is_empty() == asks => wrong.push(format!(
                    "{}: {test}: a test needs `for mount in mounts!()` exactly if its row has mounts",
                    source.path
                )),
                [_] => {}
                _ => wrong.push(format!(
                    "{}: {test} must be in exactly one row of the table of attacks, {}",
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
        wrong.extend(
            gone.map(|test| {
                format!("{test} is in the table of attacks, but there is no such test")
            }),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
