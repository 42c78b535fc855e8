//! The suite's report, and the verdict on it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::step::Outcome;

/// The check that the suite makes in every run: it passes if all messages fit the schema, even if there were hardly any.
const ALWAYS: &str = "wire-schema-valid";

/// Reads the checks that the suite has written somewhere below `directory`.
pub(crate) fn read(directory: &Path) -> Outcome<Vec<Value>> {
    let file = find(directory).map_err(|error| format!("cannot find the report: {error}"))?;
    let file = file.ok_or("the suite wrote no report; see output.txt")?;
    let text =
        fs::read(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn find(directory: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = find(&path)? {
                return Ok(Some(found));
            }
        } else if path.ends_with("checks.json") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Judges whether a run has passed. The error describes the problems.
pub(crate) fn judge(checks: &[Value], client_failed: bool) -> Outcome {
    let wrong = checks
        .iter()
        .filter(|check| matches!(text(check, "status"), "FAILURE" | "WARNING"));
    let wrong: Vec<String> = wrong
        .map(|check| format!("\n    {}", words(check)))
        .collect();
    if !wrong.is_empty() {
        return Err(wrong.concat());
    }
    if client_failed {
        return Err("the client failed or timed out; see output.txt".to_owned());
    }
    let tried = |check: &&Value| text(check, "status") == "SUCCESS" && text(check, "id") != ALWAYS;
    match checks.iter().find(tried) {
        Some(_) => Ok(()),
        None => Err("the run checked nothing".to_owned()),
    }
}

fn words(check: &Value) -> String {
    let (status, id) = (text(check, "status"), text(check, "id"));
    let message = match text(check, "errorMessage") {
        "" => String::new(),
        message => format!(": {message}"),
    };
    let details = check.get("details").map_or_else(String::new, |it| {
        let details: String = it.to_string().chars().take(600).collect();
        format!("\n        {details}")
    });
    // Some descriptions continue with the duties of servers.
    let what = text(check, "description")
        .lines()
        .next()
        .unwrap_or_default();
    format!("{status} {id}: {what}{message}{details}")
}

fn text<'a>(check: &'a Value, key: &str) -> &'a str {
    check.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(id: &str, status: &str) -> Value {
        json!({"id": id, "status": status, "description": "Does what it should", "errorMessage": "it does not"})
    }

    #[test]
    fn successful_checks_pass() {
        let checks = [
            check("a", "SUCCESS"),
            check("b", "SKIPPED"),
            check("c", "INFO"),
        ];
        assert_eq!(judge(&checks, false), Ok(()));
        let failed = judge(&checks, true).unwrap_err();
        assert!(failed.contains("the client failed"));
    }

    #[test]
    fn warning_is_a_failure() {
        for status in ["FAILURE", "WARNING"] {
            let reason = judge(&[check("a", "SUCCESS"), check("b", status)], false).unwrap_err();
            assert!(
                reason.contains("b: Does what it should: it does not"),
                "{reason}"
            );
        }
    }

    #[test]
    fn run_without_attempts_fails() {
        for checks in [
            vec![],
            vec![check("a", "SKIPPED")],
            vec![check("a", "INFO"), check(ALWAYS, "SUCCESS")],
        ] {
            assert_eq!(
                judge(&checks, false).unwrap_err(),
                "the run checked nothing"
            );
        }
    }
}
