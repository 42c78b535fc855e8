//! The runner of cases: as many at once as there are processors, each within a time limit, with a verdict for each.

use std::{
    cell::Cell,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::Mutex,
    time::Duration,
};

use crate::{
    setup,
    step::{self, Outcome, locked},
};

/// The time limit of a case: many times what the slowest case needs on a small machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The number of lines that are shown of each output of a failed case.
const SHOWN_LINES: usize = 40;

/// A client that talks to a server.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The revision that must be seen in the transcript; `None` for a case without one.
    pub(crate) revision: Option<&'static str>,
    pub(crate) command: Command,
    /// Whether the server must end by itself, with status 0, when the client is done.
    pub(crate) clean_exit: bool,
    /// The texts that must be in the transcript.
    pub(crate) says: Vec<&'static str>,
}

/// The file with the messages between client and server; see [`super::record`].
pub(crate) fn transcript(name: &str) -> PathBuf {
    log(name, "transcript")
}

fn log(name: &str, kind: &str) -> PathBuf {
    setup::scratch().join("logs").join(format!("{name}.{kind}"))
}

/// Runs all cases, prints a line for each, and then the number that passed.
pub(crate) fn run_cases(
    part: &str,
    cases: impl Iterator<Item = Case>,
    left_out: &Cell<usize>,
) -> Outcome {
    let told = Mutex::new((0, Vec::new()));
    // Collected before any case runs, because this is when the cases that are left out are reported.
    let cases: Vec<Case> = cases.collect();
    step::at_once(cases, |mut case| {
        let begin = step::now();
        let outcome = run_case(&mut case);
        let seconds = begin.elapsed().as_secs_f32();
        // Locked while the outcome is printed, so that the outputs of two cases do not mix.
        let (passed, failed) = &mut *locked(&told);
        match outcome {
            Ok(()) => {
                *passed += 1;
                println!("ok     {} ({seconds:.1} s)", case.name);
            }
            Err(reason) => {
                println!("FAILED {} ({seconds:.1} s): {reason}", case.name);
                show_logs(&case);
                failed.push(case.name);
            }
        }
    });
    let (passed, failed) = &*locked(&told);
    println!(
        "\n{passed} passed, {} failed{}",
        failed.len(),
        step::skipped(left_out.get())
    );
    match failed.as_slice() {
        [] if passed + left_out.get() == 0 => Err(format!("FAILED: {part}: no case matches")),
        [] => Ok(()),
        [first, ..] => Err(format!(
            "FAILED: {part}: {}\nrerun only one: cargo xtask test {part} {first}",
            failed.join(", ")
        )),
    }
}

fn run_case(case: &mut Case) -> Outcome {
    let status = run_to_the_end(case).map_err(|error| format!("cannot run it: {error}"))?;
    let Some(status) = status else {
        return Err(format!("timed out after {} s", LIMIT.as_secs()));
    };
    if !status.success() {
        return Err(format!("the client exited with {status}"));
    }
    let Some(revision) = case.revision else {
        return Ok(());
    };
    let transcript = fs::read_to_string(transcript(case.name))
        .map_err(|error| format!("the server was not started through the recorder: {error}"))?;
    speaks(&transcript, revision)?;
    says(&transcript, &case.says)?;
    if case.clean_exit {
        ended_cleanly(&transcript)
    } else {
        Ok(())
    }
}

/// Runs a case until it ends. `None` if it reached the time limit.
fn run_to_the_end(case: &mut Case) -> io::Result<Option<ExitStatus>> {
    let (out, err, transcript) = (
        log(case.name, "out"),
        log(case.name, "err"),
        transcript(case.name),
    );
    fs::create_dir_all(out.parent().unwrap_or(&out))?;
    if transcript.exists() {
        fs::remove_file(transcript)?;
    }
    // Files, not pipes: processes that the client leaves behind cannot block the runner.
    let child = case
        .command
        .stdin(Stdio::null())
        .stdout(File::create(out)?)
        .stderr(File::create(err)?)
        .spawn()?;
    step::wait(child, LIMIT)
}

/// Checks which revision is spoken. A legacy server names it in its answer; a modern client names it in each request.
fn speaks(transcript: &str, revision: &str) -> Outcome {
    let (mark, key) = if revision < "2026" {
        ("< ", "\"protocolVersion\":")
    } else {
        ("> ", "\"io.modelcontextprotocol/protocolVersion\":")
    };
    let named = format!("{key}\"{revision}\"");
    let mut lines = transcript.lines().filter(|line| line.starts_with(mark));
    if lines.any(|line| line.replace("\": ", "\":").contains(&named)) {
        return Ok(());
    }
    Err(format!("revision {revision} was not negotiated"))
}

fn says(transcript: &str, words: &[&str]) -> Outcome {
    let said = |word: &&&str| {
        transcript
            .lines()
            .any(|line| line.starts_with(['>', '#']) && line.contains(**word))
    };
    match words.iter().find(|word| !said(word)) {
        Some(word) => Err(format!("the transcript lacks {word}")),
        None => Ok(()),
    }
}

/// Checks that every server that was started has ended with status 0.
fn ended_cleanly(transcript: &str) -> Outcome {
    let ends: Vec<&str> = transcript
        .lines()
        .filter_map(|line| line.strip_prefix("exit "))
        .collect();
    match ends.iter().find(|status| **status != "0") {
        Some(status) => Err(format!("our server exited with status {status}")),
        None if ends.is_empty() => {
            Err("our server did not exit at the end of its input".to_owned())
        }
        None => Ok(()),
    }
}

fn show_logs(case: &Case) {
    println!("    rerun only this: {}", step::shown(&case.command));
    for kind in ["out", "err", "transcript"] {
        let file = log(case.name, kind);
        println!("    --- {}", file.display());
        for line in last_lines(&file) {
            println!("    {line}");
        }
    }
}

fn last_lines(file: &Path) -> Vec<String> {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(SHOWN_LINES);
    let shorten = |line: &&str| line.chars().take(400).collect();
    lines.iter().skip(skipped).map(shorten).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revision_comes_from_legacy_server_or_modern_client() {
        let legacy =
            "> {\"protocolVersion\":\"2025-11-25\"}\n< {\"protocolVersion\": \"2025-03-26\"}\n";
        assert_eq!(speaks(legacy, "2025-03-26"), Ok(()));
        assert!(
            speaks(legacy, "2025-11-25").is_err(),
            "an offer is no agreement"
        );

        let modern = "> {\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}\n";
        assert_eq!(speaks(modern, "2026-07-28"), Ok(()));
        assert!(speaks(&modern.replace('>', "<"), "2026-07-28").is_err());
    }

    #[test]
    fn expected_client_message_counts_only_from_client() {
        assert_eq!(
            says("> notifications/cancelled\n", &["notifications/cancelled"]),
            Ok(())
        );
        assert!(says("< notifications/cancelled\n", &["notifications/cancelled"]).is_err());
    }

    #[test]
    fn clean_end_requires_exit_status_zero_everywhere() {
        assert_eq!(ended_cleanly("> {}\nexit 0\nexit 0\n"), Ok(()));
        assert!(ended_cleanly("exit 0\nexit 1\n").is_err());
        assert!(ended_cleanly("> {}\n").is_err(), "killed before it ended");
    }
}
