//! `cargo xtask test ui`: the page of `oxmcp ui` in headless Chromium, with npm's everything server, our examples, and a hostile server.

use std::{env, path::PathBuf};

use xtask::packages::{CHROMIUM, LEFT_OUT};

use crate::{
    setup::{self, Tools},
    step::{self, Outcome, cargo},
};

/// Runs the cases that have `word` in their names. Without Chromium and the packages of a system they are skipped and counted.
pub(crate) fn run(word: &str) -> Outcome {
    let chromium = CHROMIUM.bring()?;
    if chromium.is_none() {
        println!("{LEFT_OUT}the page of `oxmcp ui`: it needs Chromium");
    }
    let node = Tools::set_up_node()?;
    build()?;
    let output = setup::scratch().join("ui");
    let mut command = node.run("ui/test.mjs");
    command
        .arg(chromium.unwrap_or_default())
        .args([beside("oxmcp")?, beside("examples")?])
        .args([output.as_os_str(), word.as_ref()]);
    step::run(
        &format!(
            "the page of `oxmcp ui` in Chromium; screenshots: {}",
            output.display()
        ),
        &mut command,
    )
}

/// Builds the command and the servers of the cases.
fn build() -> Outcome {
    let mut command = cargo(["build", "--quiet", "--locked", "--workspace"]);
    command.args(["--all-features", "--bin", "oxmcp"]);
    command.args(["--example", "notes", "--example", "board"]);
    step::run("build the command and its examples", &mut command)
}

/// The path of something that cargo has built next to this program.
fn beside(name: &str) -> Outcome<PathBuf> {
    let this = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok(this.with_file_name(name))
}
