//! A file that is changed: its diff, its backup, and the write.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use similar::TextDiff;

use crate::{
    args::Scope,
    commands::transcript::without_secrets,
    failure::{Failure, Reason, Result},
};

/// The maximum size of a file. Some hosts keep their history in the same file.
const MAX_BYTES: u64 = 64 << 20;
/// The lines of a diff around a change.
const CONTEXT: usize = 3;

/// A file before and after the change.
#[derive(Debug)]
pub(super) struct Change {
    /// The path, as the host has it.
    pub(super) path: PathBuf,
    /// The file itself, if the path is a link.
    real: PathBuf,
    exists: bool,
    has_mark: bool,
    scope: Scope,
    pub(super) before: String,
    pub(super) after: String,
}

impl Change {
    /// Reads a file. One that does not exist is empty.
    pub(super) fn read(path: PathBuf, scope: Scope) -> Result<Self> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::usage(format!("could not read {}: {error}", path.display()))
        };
        let real = match fs::canonicalize(&path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(&path).is_ok() {
                    return Err(failed(
                        &"it is a link to a file that does not exist; create the file, or remove the link",
                    ));
                }
                without_links(&path)
            }
            Err(error) => return Err(failed(&error)),
        };
        if scope == Scope::Project && !is_in_current_folder(&real) {
            return Err(failed(
                &"a link leads out of the current folder; remove the link, or use `--scope user`",
            ));
        }
        let read = text(&real).map_err(|error| failed(&error))?;
        let exists = read.is_some();
        let read = read.unwrap_or_default();
        let has_mark = read.starts_with('\u{feff}');
        let before = read.trim_start_matches('\u{feff}').to_owned();
        Ok(Self {
            path,
            real,
            exists,
            has_mark,
            scope,
            after: before.clone(),
            before,
        })
    }

    #[must_use]
    pub(super) fn to(mut self, after: String) -> Self {
        self.after = after;
        self
    }

    /// Whether both are changes of one file.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.real == other.real
    }

    pub(super) fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// The change as a unified diff. Secrets are replaced: lines around the change may contain those of other servers.
    pub(super) fn diff(&self, secrets: &[String]) -> String {
        let name = self.path.display().to_string();
        let old = if self.exists { &name } else { "/dev/null" };
        // A change of the ends of lines must be seen; where there is none, they are left out.
        let ends = |text: &str| {
            let long = text.matches("\r\n").count();
            (long > 0, text.matches('\n').count() > long)
        };
        let has_ends = self.exists && ends(&self.before) != ends(&self.after);
        let shown = |text: &str| match has_ends {
            true => text.to_owned(),
            false => text.replace("\r\n", "\n"),
        };
        let (before, after) = (shown(&self.before), shown(&self.after));
        let diff = TextDiff::from_lines(&before, &after);
        let diff = diff
            .unified_diff()
            .context_radius(CONTEXT)
            .header(old, &name)
            .to_string();
        without_secrets(&diff, secrets)
    }

    /// Writes the file. Returns the path of the backup, if there was a file.
    ///
    /// The new contents are in place at once or not at all, and the file keeps its permissions.
    pub(super) fn write(&self) -> Result<Option<PathBuf>> {
        let failed = |error: io::Error| {
            let path = self.path.display();
            Failure::new(Reason::Refused, format!("could not write {path}: {error}"))
        };
        let now = text(&self.real).map_err(failed)?;
        let is_same = now.as_deref().map(|it| it.trim_start_matches('\u{feff}'))
            == self.exists.then_some(self.before.as_str());
        if !is_same {
            let path = self.path.display();
            return Err(Failure::new(
                Reason::Refused,
                format!(
                    "could not write {path}: another program has changed it meanwhile; run the command again"
                ),
            ));
        }
        let folder = self.real.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let backup = self.exists.then(|| self.backup());
        if let Some(backup) = &backup {
            self.save(folder, backup).map_err(failed)?;
        }
        self.replace(folder).map_err(failed)?;
        Ok(backup)
    }

    fn backup(&self) -> PathBuf {
        let mut name = OsString::from(&self.real);
        name.push(".oxmcp-backup");
        PathBuf::from(name)
    }

    /// Writes the backup, unless there is one: the first has what the user had before any change. A link in its place is replaced.
    fn save(&self, folder: &Path, backup: &Path) -> io::Result<()> {
        if fs::symlink_metadata(backup).is_ok_and(|it| it.is_file()) {
            return Ok(());
        }
        let file = self.file(folder, &self.before)?;
        file.persist(backup)?;
        Ok(())
    }

    fn replace(&self, folder: &Path) -> io::Result<()> {
        self.file(folder, &self.after)?.persist(&self.real)?;
        Ok(())
    }

    /// A new file with the text and the permissions, which still has no name.
    fn file(&self, folder: &Path, text: &str) -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mark = if self.has_mark { "\u{feff}" } else { "" };
        io::Write::write_all(&mut file, format!("{mark}{text}").as_bytes())?;
        if self.exists {
            file.as_file()
                .set_permissions(fs::metadata(&self.real)?.permissions())?;
        } else if self.scope == Scope::Project {
            make_readable(file.as_file())?;
        }
        file.as_file().sync_all()?;
        Ok(file)
    }
}

/// The path of a file that does not exist, once the links of its folders are followed.
fn without_links(path: &Path) -> PathBuf {
    let mut parents = path.ancestors().skip(1);
    let real = parents.find_map(|it| {
        let folder = match it.as_os_str() {
            name if name.is_empty() => Path::new("."),
            _ => it,
        };
        let rest = path.strip_prefix(it).ok()?;
        Some(fs::canonicalize(folder).ok()?.join(rest))
    });
    real.unwrap_or_else(|| path.to_owned())
}

/// Lets others read a file of a project, as they read its other files. A file of the user stays private.
#[cfg(unix)]
fn make_readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &fs::File) -> io::Result<()> {
    Ok(())
}

/// Whether the file, or the folder in which it will be created, is in the current folder once its links are followed.
fn is_in_current_folder(path: &Path) -> bool {
    let Ok(folder) = fs::canonicalize(".") else {
        return false;
    };
    let mut parents = path.ancestors().map(|it| match it.as_os_str() {
        name if name.is_empty() => Path::new("."),
        _ => it,
    });
    let existing = parents.find_map(|it| fs::canonicalize(it).ok());
    existing.is_some_and(|it| it.starts_with(folder))
}

/// The text of a regular file. `None` if it does not exist.
pub(super) fn text(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut text = String::new();
    let length = fs::File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)?;
    if length as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it has more than {MAX_BYTES} bytes"
        )));
    }
    Ok(Some(text))
}
