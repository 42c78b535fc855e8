//! A new revision does not compile until each difference between revisions, and each method, is decided for it.

use std::process::Command;

use super::source::{read, root};

/// The compiler's error for a row without a column of the new revision: its array is too short.
const UNDECIDED: &str = "error[E0308]: mismatched types";

/// The number of rows of a file that have a column for each revision.
fn rows(path: &str) -> usize {
    let text = read(path).text;
    let is_row = |columns: &&str| {
        let columns = columns.split(']').next().unwrap_or_default().split(", ");
        columns.clone().count() == 5 && columns.clone().all(|it| it == "Y" || it == "N")
    };
    text.split('[').filter(is_row).count()
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
    let output = String::from_utf8_lossy(&compiled.stderr);
    let errors = |start: &str| output.lines().filter(|it| it.starts_with(start)).count();
    assert_eq!(errors(UNDECIDED), differences + methods, "{output}");
    // The last line sums them up.
    assert_eq!(errors("error"), differences + methods + 1, "{output}");
}
