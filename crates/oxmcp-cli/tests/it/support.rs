//! The command and the servers that the tests run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

pub(crate) const OXMCP: &str = env!("CARGO_BIN_EXE_oxmcp");

/// The program of the example with some of everything.
pub(crate) fn notes() -> String {
    example("notes")
}

/// The program of an example.
pub(crate) fn example(name: &str) -> String {
    let folder = PathBuf::from(OXMCP);
    let folder = folder.parent().unwrap();
    folder.join("examples").join(name).display().to_string()
}

/// The folder of a test, empty.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The command, without a terminal, in a folder that is the home of the user as well.
pub(crate) fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(OXMCP);
    command.args(args).current_dir(home).stdin(Stdio::null());
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA"] {
        command.env(name, home);
    }
    command.env_remove("CODEX_HOME");
    command
}

/// Runs the command in a folder. Returns stdout, stderr and the exit code.
pub(crate) fn run_at(home: &Path, args: &[&str]) -> (String, String, i32) {
    parts(command(home, args).output().unwrap())
}

/// Runs the command without a terminal, in an empty folder that has no configuration but this.
pub(crate) fn run_in(test: &str, config: Option<&str>, args: &[&str]) -> Output {
    let home = folder(test);
    if let Some(config) = config {
        fs::write(home.join("mcp.json"), config).unwrap();
    }
    command(&home, args).output().unwrap()
}

/// Runs the command on the example. Returns stdout, stderr and the exit code.
pub(crate) fn run(test: &str, args: &[&str]) -> (String, String, i32) {
    let notes = notes();
    let mut all = args.to_vec();
    all.extend(["--", &notes]);
    parts(run_in(test, None, &all))
}

pub(crate) fn parts(output: Output) -> (String, String, i32) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code().unwrap(),
    )
}
