//! A new revision does not compile until each difference between revisions, and each method, is decided for it.

use std::process::Command;

use super::source::{read, root};

/// The compiler's error for a row without a column of the new revision.
const UNDECIDED: &str = "expected an array with a size of 6, found one with a size of 5";

/// The number of rows of a file that have a column for each revision.
fn rows(path: &str) -> usize {
    let text = read(path).text;
    let is_row = |line: &&str| {
        let columns = line.split(['(', '[']).next_back().unwrap_or_default();
        let mut columns = columns
            .split([')', ']'])
            .next()
            .unwrap_or_default()
            .split(' ');
        columns.clone().count() == 5 && columns.all(|it| it == "x" || it == "_")
    };
    text.lines()
        .flat_map(|line| line.split_inclusive(&[')', ']']))
        .filter(is_row)
        .count()
}

/// Compiles the protocol with a revision for which nothing was decided.
#[test]
fn undecided_revision_does_not_compile() {
    let directory = "crates/oxmcp-protocol/src/revision/";
    let differences = rows(&format!("{directory}version.rs"));
    let methods = rows(&format!("{directory}method.rs"));
    assert!(
        differences > 20 && methods > 40,
        "the tables of revisions are not here"
    );
    let compiled = Command::new(env!("CARGO"))
        .args(["check", "--package", "oxmcp-protocol", "--target-dir"])
        .arg(root().join("target/undecided-revision"))
        .env("RUSTFLAGS", "--cfg oxmcp_undecided_revision")
        .current_dir(root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    let undecided = errors.matches(UNDECIDED).count();
    assert_eq!(undecided, differences + methods, "{errors}");
    // The others are lines that say so in sum.
    let sums = ["could not compile", "aborting due to"];
    let others = errors
        .lines()
        .filter(|line| line.starts_with("error: ") && !sums.iter().any(|sum| line.contains(sum)));
    assert_eq!(others.count(), 0, "{errors}");
    assert_eq!(errors.matches("error[E").count(), undecided, "{errors}");
}
