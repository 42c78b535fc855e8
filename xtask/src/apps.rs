//! `cargo xtask test apps`: apps in headless Chromium, with the host and the views of npm's `ext-apps`.

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
        println!("{LEFT_OUT}apps in the browser: they need Chromium");
    }
    let node = Tools::set_up_node()?;
    build()?;
    let output = setup::scratch().join("apps");
    let mut command = node.run("apps/test.mjs");
    command
        .arg(chromium.unwrap_or_default())
        .args([beside("interop-apps")?, beside("examples/apps")?])
        .args([output.as_os_str(), word.as_ref()]);
    step::run(
        &format!("apps in Chromium; screenshots: {}", output.display()),
        &mut command,
    )
}

/// Builds the server and the host of the cases.
fn build() -> Outcome {
    let mut command = cargo(["build", "--quiet", "--locked", "--workspace"]);
    command.args([
        "--all-features",
        "--bin",
        "interop-apps",
        "--example",
        "apps",
    ]);
    step::run("build the server and the host of apps", &mut command)
}

/// The path of a program that cargo has built next to this one.
fn beside(name: &str) -> Outcome<PathBuf> {
    let this = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok(this.with_file_name(name))
}
