//! The folder in which a program keeps its state, by the conventions of the operating system.

use std::{
    env,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use crate::error::{Error, Result};

/// The folder of a program's logins.
pub(crate) fn logins_of(app: &str) -> Result<PathBuf> {
    Ok(folder_of(app)?.join("logins"))
}

/// The folder of a program's logins that are sealed by a key of a keyring.
#[cfg(feature = "keyring")]
pub(crate) fn sealed_logins_of(app: &str) -> Result<PathBuf> {
    Ok(folder_of(app)?.join("sealed-logins"))
}

/// The folder in which a program keeps its state.
fn folder_of(app: &str) -> Result<PathBuf> {
    if !is_name(app) {
        return Err(Error::misuse(format!(
            "invalid app name {app:?}: it must be a valid folder name"
        )));
    }
    let folder = state_folder(|name| env::var_os(name)).ok_or_else(|| {
        Error::misuse(
            "could not find the state folder of this user; set XDG_STATE_HOME or HOME (LOCALAPPDATA on Windows), or name \
             a folder with `FileTokenStore::at`",
        )
    })?;
    Ok(folder.join(app))
}

/// Whether a text is the name of one folder, on every system.
fn is_name(text: &str) -> bool {
    let mut components = Path::new(text).components();
    let is_one = matches!(components.next(), Some(Component::Normal(it)) if it == text)
        && components.next().is_none();
    is_one && !text.contains(['/', '\\', ':', '\0'])
}

/// The folder in which all programs of a user keep their state.
fn state_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // A relative path would depend on the folder in which the program was started.
    let folder = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        Some(folder("HOME")?.join("Library/Application Support"))
    } else {
        folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))
    }
}

#[cfg(all(test, unix, not(target_os = "macos")))]
mod tests {
    use super::*;

    #[test]
    fn state_folder_follows_the_environment() {
        let of = |variables: &'static [(&str, &str)]| {
            state_folder(|name| {
                let mut found = variables.iter().filter(|(it, _)| *it == name);
                found.next().map(|(_, value)| value.into())
            })
        };
        assert_eq!(
            of(&[("HOME", "/home/a")]),
            Some("/home/a/.local/state".into())
        );
        assert_eq!(
            of(&[("HOME", "/home/a"), ("XDG_STATE_HOME", "/state")]),
            Some("/state".into())
        );
        assert_eq!(
            of(&[("HOME", "/home/a"), ("XDG_STATE_HOME", "state")]),
            Some("/home/a/.local/state".into())
        );
        assert_eq!(of(&[("HOME", "")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn program_name_invalid_as_folder_is_refused() {
        for name in [
            "", ".", "..", "a/b", "/a", "a/", "./a", "..\\a", "a\0", "C:",
        ] {
            assert!(logins_of(name).is_err(), "{name:?}");
        }
        assert!(is_name("my-app") && is_name("My App 2.0") && is_name("..."));
    }
}
