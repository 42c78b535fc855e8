//! Suites in headless Chromium: `cargo xtask test apps` and `cargo xtask test ui`.

use std::env;

use xtask::packages::{CHROMIUM, LEFT_OUT};

use crate::{
    setup::{self, Tools},
    step::{self, Outcome},
};

/// A suite: a script in `interop/`, and what cargo builds for it.
#[derive(Debug)]
pub(crate) struct Suite {
    /// The folder of the script, and of the screenshots.
    folder: &'static str,
    title: &'static str,
    /// The reason that is told if there is no Chromium.
    left_out: &'static str,
    build: &'static str,
    targets: &'static [&'static str],
    /// The two things next to this program that the script gets: programs, or a folder of them.
    built: [&'static str; 2],
}

/// Apps, with the host and the views of npm's `ext-apps`.
pub(crate) const APPS: Suite = Suite {
    folder: "apps",
    title: "apps in Chromium",
    left_out: "apps in the browser: they need Chromium",
    build: "build the server and the host of apps",
    targets: &["--bin", "interop-apps", "--example", "apps"],
    built: ["interop-apps", "examples/apps"],
};

/// The page of `oxmcp ui`, with npm's everything server, our examples, and a hostile server.
pub(crate) const UI: Suite = Suite {
    folder: "ui",
    title: "the page of `oxmcp ui` in Chromium",
    left_out: "the page of `oxmcp ui`: it needs Chromium",
    build: "build the command and its examples",
    targets: &["--bin", "oxmcp", "--example", "notes", "--example", "board"],
    built: ["oxmcp", "examples"],
};

impl Suite {
    /// Runs the cases that have `word` in their names. Without Chromium and the packages of a system they are skipped and counted.
    pub(crate) fn run(&self, word: &str) -> Outcome {
        let chromium = CHROMIUM.bring()?;
        if chromium.is_none() {
            println!("{LEFT_OUT}{}", self.left_out);
        }
        let node = Tools::set_up_node()?;
        step::build_targets(self.build, self.targets)?;
        let this =
            env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let output = setup::scratch().join(self.folder);
        let mut command = node.run(&format!("{}/test.mjs", self.folder));
        command
            .arg(chromium.unwrap_or_default())
            .args(self.built.map(|name| this.with_file_name(name)))
            .args([output.as_os_str(), word.as_ref()]);
        step::run(
            &format!("{}; screenshots: {}", self.title, output.display()),
            &mut command,
        )
    }
}
