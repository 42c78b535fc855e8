//! Steps: a headline, a command, and the command line to run again if it fails.

use std::{
    env,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// What failed, said for a person.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

/// `cargo`, the one that runs us.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
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
            "FAILED: {title} ({status})\nrun just that: {shown}"
        )),
        Err(error) => Err(format!(
            "FAILED: {title}: cannot start it: {error}\nthe command: {shown}"
        )),
    }
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
        "{}{}\nFAILED: {title} ({})\nrun just that: {shown}",
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
        .ok_or_else(|| format!("it took longer than {} s", limit.as_secs()))
}

/// Waits for a process to end, and kills it when the time is up: then there is no status.
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

/// The command as one could type it, with the variables that were set for it.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!(
            "{}={}",
            name.to_string_lossy(),
            value?.to_string_lossy()
        ))
    });
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words = words.map(|word| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// Runs all of them, and fails in the end if one did: one run shows all that is wrong.
pub(crate) fn all(steps: impl IntoIterator<Item = Outcome>) -> Outcome {
    let failures: Vec<String> = steps.into_iter().filter_map(Result::err).collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n\n"))
    }
}
