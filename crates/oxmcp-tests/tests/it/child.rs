//! Processes that tests start: this test binary, started again to run one test.

use std::{
    env,
    process::{self, Command},
    sync::mpsc,
    thread,
    time::Duration,
};

/// The longest time that such a process may run. Its output ends with it, so the reader of the output ends, too.
const LIMIT: Duration = Duration::from_secs(120);

/// The command that runs only the test of this path, with this role.
pub(crate) fn command(test: &str, variable: &str, role: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    // On a single thread the harness writes the name of a test, without a newline, before the test begins.
    let args = [
        "--exact",
        test,
        "--include-ignored",
        "--nocapture",
        "--test-threads=2",
    ];
    command.args(args).env(variable, role);
    command
}

/// The role of this process, if a test has started it. The process ends after [`LIMIT`].
pub(crate) fn role(variable: &str) -> Option<String> {
    let role = env::var(variable).ok()?;
    thread::spawn(|| {
        let (_open, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(LIMIT);
        process::abort();
    });
    Some(role)
}
