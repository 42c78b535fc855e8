//! The error of a process that could not be started, with advice.

use std::{
    env,
    ffi::OsString,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{error::Error, logged::cut};

/// The number of characters of a program that are shown.
const SHOWN: usize = 200;
/// The number of directories of `PATH` that are shown.
const SHOWN_DIRECTORIES: usize = 12;

/// The program, for people to read. Without its arguments: they may contain secrets, and errors and logs reach models.
pub(crate) fn display(command: &Command) -> String {
    let program = word(&command.get_program().to_string_lossy());
    cut(program, SHOWN).into_owned()
}

fn word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./@:=+,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}

/// The error of a command that could not be started.
pub(crate) fn spawn_error(command: &Command, error: &io::Error) -> Error {
    let why = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => not_found(command),
        ErrorKind::PermissionDenied => Some(format!(
            "{error}: the file is not a program, or this user cannot execute it"
        )),
        _ => None,
    };
    let why = why.unwrap_or_else(|| error.to_string());
    let text = format!("cannot start the server {}: {why}", display(command));
    Error::from(io::Error::new(error.kind(), text))
}

/// The reason if a file is missing: the working directory, the program or its interpreter.
fn not_found(command: &Command) -> Option<String> {
    if let Some(directory) = command.get_current_dir().filter(|path| !path.is_dir()) {
        return Some(format!(
            "working directory {} does not exist",
            directory.display()
        ));
    }
    let program = Path::new(command.get_program());
    if program.components().count() > 1 {
        let base = command.get_current_dir().unwrap_or_else(|| Path::new(""));
        return Some(if program.exists() || base.join(program).exists() {
            no_interpreter(program)
        } else {
            format!("file {} does not exist", program.display())
        });
    }
    let directories = search_path(command);
    let found = directories
        .iter()
        .map(|directory| directory.join(program))
        .find(|file| file.exists());
    Some(found.map_or_else(
        || nowhere(program, &directories),
        |file| no_interpreter(&file),
    ))
}

fn no_interpreter(file: &Path) -> String {
    format!(
        "{} exists, but the interpreter in its first line (after #!) does not",
        file.display()
    )
}

/// The directories that were searched for the program.
fn search_path(command: &Command) -> Vec<PathBuf> {
    let changed = command.get_envs().find(|(name, _)| *name == "PATH");
    let path: Option<OsString> = match changed {
        Some((_, value)) => value.map(Into::into),
        None => env::var_os("PATH"),
    };
    path.map(|path| env::split_paths(&path).collect())
        .unwrap_or_default()
}

fn nowhere(program: &Path, directories: &[PathBuf]) -> String {
    let name = program.to_string_lossy();
    let mut shown: Vec<_> = directories
        .iter()
        .take(SHOWN_DIRECTORIES)
        .map(|directory| directory.display().to_string())
        .collect();
    if directories.len() > SHOWN_DIRECTORIES {
        shown.push("…".into());
    }
    format!(
        "{name} not found in PATH ({}); {}",
        shown.join(", "),
        hint(&name)
    )
}

/// The advice that is most likely to help.
fn hint(name: &str) -> &'static str {
    if name.contains(char::is_whitespace) {
        return "pass arguments with arg() or args(), because no shell splits the name";
    }
    match name {
        "node" | "npx" | "npm" if cfg!(windows) => {
            "install Node.js, and add the file extension, as in \"npx.cmd\""
        }
        "node" | "npx" | "npm" => "install Node.js, or use the full path",
        "uv" | "uvx" => "install uv, or use the full path",
        "python" => "try \"python3\", or use the full path",
        "docker" => "install Docker, or use the full path",
        _ => {
            "install it, or use the full path, because programs started from a desktop often have a shorter PATH than a shell"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_readable() {
        assert_eq!(display(&Command::new("my server")), "\"my server\"");
        let long = Command::new("ü".repeat(1000));
        assert_eq!(display(&long).chars().count(), SHOWN + 1);
    }

    #[test]
    fn error_does_not_show_the_arguments() {
        let mut command = Command::new("no-such-server");
        command.args(["--token", "secret"]).env("TOKEN", "secret");
        let error = spawn_error(&command, &ErrorKind::NotFound.into()).to_string();
        assert!(
            error.contains("cannot start the server no-such-server: "),
            "{error}"
        );
        assert!(
            !error.contains("secret") && !error.contains("--token"),
            "{error}"
        );
    }
}
