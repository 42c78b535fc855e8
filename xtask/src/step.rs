//! Stages and their steps: a headline, a command, and the command line to run again if it fails.

use std::{
    env,
    ffi::OsStr,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    num::NonZero,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use xtask::packages::LEFT_OUT;

/// The workspace of an extension by a third party.
pub(crate) const THIRD_PARTY: &str = "crates/oxmcp-tests/third-party";

/// The result of a step. The error describes what failed.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

/// A command of the `cargo` that runs this program.
///
/// It does not get what cargo has told this program about its package: build scripts that read it would run again after each
/// `cargo build` by hand, and everything that depends on them would be built again.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command.args(args).current_dir(root());
    command
}

/// The same in a workspace below the root, which builds into the target directory of the root, so that common dependencies are
/// built once.
pub(crate) fn cargo_in<'a>(directory: &str, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = cargo(args);
    command
        .current_dir(root().join(directory))
        .env("CARGO_TARGET_DIR", root().join("target"));
    command
}

/// Builds the programs that the tests start.
pub(crate) fn build(programs: &[&str]) -> Outcome {
    let targets: Vec<&str> = programs.iter().flat_map(|it| ["--bin", *it]).collect();
    build_targets("build our server and our client", &targets)
}

/// Builds what the tests start, with the features with which `cargo test` has built everything else.
pub(crate) fn build_targets(title: &str, targets: &[&str]) -> Outcome {
    let mut command = cargo([
        "build",
        "--quiet",
        "--locked",
        "--workspace",
        "--all-features",
    ]);
    run(title, command.args(targets))
}

/// Prints the headline of a step.
pub(crate) fn headline(title: &str) {
    println!("\n=== {title}");
}

/// Runs one step, its output going straight to the terminal.
pub(crate) fn run(title: &str, command: &mut Command) -> Outcome {
    headline(title);
    let shown = shown(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!(
            "FAILED: {title} ({status})\nrerun only this: {shown}"
        )),
        Err(error) => Err(format!(
            "FAILED: {title}: cannot start it: {error}\nthe command: {shown}"
        )),
    }
}

/// Runs one step that runs tests. Tests that pass are counted and not shown, and compiled packages are not shown either; all other
/// lines are shown as they come.
pub(crate) fn run_tests(title: &str, command: &mut Command) -> Outcome {
    headline(title);
    let shown = shown(command);
    let failed = |what: String| Err(format!("FAILED: {title}{what}\nrerun only this: {shown}"));
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return failed(format!(": cannot start it: {error}")),
    };
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let Counts { passed, left_out } = thread::scope(|scope| {
        let errors = scope.spawn(|| show(errors));
        let (shown, of_errors) = (show(output), errors.join().unwrap_or_default());
        Counts {
            passed: shown.passed + of_errors.passed,
            left_out: shown.left_out + of_errors.left_out,
        }
    });
    match child.wait() {
        Ok(status) if status.success() => {
            // A test that was left out counts as passed in its test program.
            let passed = passed.saturating_sub(left_out);
            println!("{passed} tests passed, 0 failed{}", skipped(left_out));
            Ok(())
        }
        Ok(status) => failed(format!(" ({status}), {passed} tests passed")),
        Err(error) => failed(format!(": {error}")),
    }
}

/// The number of tests that have passed, and the number of tests that were reported as left out.
#[derive(Default)]
struct Counts {
    passed: usize,
    left_out: usize,
}

/// Shows the lines that are not routine, and counts the tests.
fn show(output: Option<impl Read>) -> Counts {
    let lines = output
        .into_iter()
        .flat_map(|output| BufReader::new(output).split(b'\n'));
    let mut counts = Counts::default();
    for line in lines.map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        counts.left_out += usize::from(line.starts_with(LEFT_OUT));
        if let Some(result) = line.strip_prefix("test result: ok. ") {
            let count = result.split(' ').next();
            counts.passed += count.and_then(|count| count.parse().ok()).unwrap_or(0);
        } else if !is_routine(&line) {
            println!("{line}");
        }
    }
    counts
}

/// The end of a closing line, which says how many tests were skipped, if any.
pub(crate) fn skipped(left_out: usize) -> String {
    match left_out {
        0 => String::new(),
        count => format!(", {count} skipped"),
    }
}

/// Whether a line of cargo or of a test program reports only that all is well.
fn is_routine(line: &str) -> bool {
    const CARGO: [&str; 10] = [
        "Blocking",
        "Compiling",
        "Doc-tests",
        "Downloaded",
        "Downloading",
        "Executable",
        "Finished",
        "Locking",
        "Running",
        "Updating",
    ];
    let word = line.trim_start().split(' ').next().unwrap_or_default();
    let is_test = line.starts_with("test ") || line.starts_with("running ");
    // A failed test is shown, and so is one that hangs.
    let is_told = line.ends_with("FAILED") || line.contains(" has been running for over ");
    line.trim().is_empty()
        || (CARGO.contains(&word) && line.starts_with(' '))
        || (is_test && !is_told)
}

/// Runs one step in silence; its output is shown only if it fails.
pub(crate) fn run_quietly(title: &str, command: &mut Command) -> Outcome {
    headline(title);
    let shown = shown(command);
    let output = command.output().map_err(|error| {
        format!("FAILED: {title}: cannot start it: {error}\nthe command: {shown}")
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{}{}\nFAILED: {title} ({})\nrerun only this: {shown}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status,
    ))
}

/// Runs a command with all its output going into a file. It must end within the limit, whatever its status.
pub(crate) fn run_into(file: &Path, command: &mut Command, limit: Duration) -> Outcome<ExitStatus> {
    let child = File::create(file).and_then(|out| {
        let err = out.try_clone()?;
        command.stdout(out).stderr(err).spawn()
    });
    let status = child.and_then(|child| wait(child, limit));
    status
        .map_err(|error| format!("cannot run it: {error}"))?
        .ok_or_else(|| format!("timed out after {} s", limit.as_secs()))
}

/// Waits for a process to end. When the time is up, kills it and returns no status.
pub(crate) fn wait(mut child: Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let begin = now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "there is no tokio here, and time is for the reader only"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The command as typed at the root of the repository, with the directory and the variables that were set for it.
pub(crate) fn shown(command: &Command) -> String {
    let root = root();
    let relative = |path: &str| {
        let below = Path::new(path).strip_prefix(&root);
        below.map_or_else(|_| path.to_owned(), |below| below.display().to_string())
    };
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!(
            "{}={}",
            name.to_string_lossy(),
            relative(&value?.to_string_lossy())
        ))
    });
    let is_cargo = env::var_os("CARGO").is_some_and(|cargo| cargo == command.get_program());
    let program = if is_cargo {
        OsStr::new("cargo")
    } else {
        command.get_program()
    };
    let words = [program].into_iter().chain(command.get_args());
    let words = words.map(|word| {
        let word = relative(&word.to_string_lossy());
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    let line = variables.chain(words).collect::<Vec<_>>().join(" ");
    match command
        .get_current_dir()
        .and_then(|it| it.strip_prefix(&root).ok())
    {
        Some(below) if !below.as_os_str().is_empty() => {
            format!("(cd {} && {line})", below.display())
        }
        _ => line,
    }
}

/// A part of a run: its name, and the function that runs it.
pub(crate) type Stage = (&'static str, fn() -> Outcome);

/// Lists the stages, runs all of them, and reports how long each took and which failed, so that one run shows all failures.
pub(crate) fn stages(stages: &[Stage]) -> Outcome {
    let count = stages.len();
    println!("{count} stages:");
    for (number, (title, _)) in (1..).zip(stages) {
        println!("  {number}. {title}");
    }
    let mut outcomes = Vec::new();
    let mut summary = String::from("\n");
    for (number, (title, run)) in (1..).zip(stages) {
        println!("\n##### {number} of {count}: {title}");
        let begin = now();
        let outcome = run();
        let seconds = begin.elapsed().as_secs();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("##### {number} of {count}: {word} in {seconds} s");
        summary += &format!("{word:>6} {seconds:>5} s  {title}\n");
        outcomes.push(outcome);
    }
    print!("{summary}");
    all(outcomes)
}

/// Passes each item to `run`, as many at once as there are processors: the work is mostly to start programs and to wait for them.
pub(crate) fn at_once<T>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    run: impl Fn(T) + Sync,
) {
    let waiting = Mutex::new(items.into_iter());
    let count = thread::available_parallelism().map_or(2, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                while let Some(item) = { locked(&waiting).next() } {
                    run(item);
                }
            });
        }
    });
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs all steps, and fails at the end if one failed, so that one run shows all failures.
pub(crate) fn all(steps: impl IntoIterator<Item = Outcome>) -> Outcome {
    let failures: Vec<String> = steps.into_iter().filter_map(Result::err).collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_output_is_counted_and_hidden() {
        let routine = "   Compiling oxmcp v0.1.0
     Running tests/it/main.rs (target/debug/deps/it)

running 3 tests
test a ... ok
test b ... ok
test result: ok. 2 passed; 0 failed; 1 ignored
   Doc-tests oxmcp
test result: ok. 1 passed; 0 failed; 0 ignored
";
        let Counts { passed, left_out } = show(Some(routine.as_bytes()));
        assert_eq!((passed, left_out), (3, 0));
        let is_shown = |line: &&str| !is_routine(line) && !line.starts_with("test result: ok. ");
        assert_eq!(routine.lines().find(is_shown), None);
        for told in [
            "test c ... FAILED",
            "test d has been running for over 60 seconds",
            "thread 'c' panicked at src/lib.rs:1:1:",
            "  left: 1",
            "warning: unused variable: `x`",
            "error: test failed, to rerun pass `-p oxmcp --lib`",
        ] {
            assert!(!is_routine(told), "{told}");
        }
        let skipped = format!("{LEFT_OUT}the test behind nginx\n");
        assert_eq!(show(Some(skipped.as_bytes())).left_out, 1);
    }

    #[test]
    fn rerun_command_works_from_the_repository_root() {
        assert_eq!(shown(&cargo(["test", "--locked"])), "cargo test --locked");
        let within = cargo_in("bench", ["test", "a word"]);
        assert_eq!(
            shown(&within),
            "(cd bench && CARGO_TARGET_DIR=target cargo test 'a word')"
        );
        let mut with = cargo(["test"]);
        with.env("OXMCP_SCHEMAS", root().join("target/schemas"));
        assert_eq!(shown(&with), "OXMCP_SCHEMAS=target/schemas cargo test");
    }

    #[test]
    fn all_stages_run_and_each_failure_is_reported() {
        let failed = stages(&[
            ("one", || Err("FAILED: the first".into())),
            ("two", || Ok(())),
            ("three", || Err("FAILED: the third".into())),
        ]);
        assert_eq!(
            failed.unwrap_err(),
            "FAILED: the first\n\nFAILED: the third"
        );
    }
}
