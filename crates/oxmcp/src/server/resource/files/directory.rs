//! Served directory: reading and listing its files.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
};

use bytes::Bytes;

use super::{
    entry::{Kind, Refused},
    path::is_hidden,
    system,
};

/// The maximum depth to which a directory is listed.
const MAX_DEPTH: usize = 64;

/// A directory and its contents. It remains the same directory even if another one takes its path.
#[derive(Debug)]
pub(crate) struct Directory(system::Root);

/// A file found by listing.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) names: Vec<OsString>,
    pub(crate) size: u64,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        system::Root::open(path).map(Self)
    }

    /// The path of the directory when it was opened, without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Reads a file. Blocks.
    pub(crate) fn read(&self, names: &[OsString], max_bytes: u64) -> Result<Vec<u8>, Refused> {
        let Some((name, parents)) = names.split_last() else {
            return Err(Refused::NotFound);
        };
        let mut directory = self.0.top()?;
        for parent in parents {
            directory = directory.enter(parent)?;
        }
        match directory.kind(name)? {
            Kind::File { .. } => directory.read(name, max_bytes),
            Kind::Directory => Err(Refused::NoFile("it is a directory")),
            Kind::Other => Err(Refused::NoFile("it is not a regular file")),
        }
    }

    /// Lists the files in the directory, in the order of their names. Blocks.
    pub(crate) fn list(&self, most: usize, hidden: bool) -> io::Result<Vec<Found>> {
        let mut list = List {
            found: Vec::new(),
            most,
            hidden,
        };
        list.walk(&self.0.top()?, &mut Vec::new())?;
        Ok(list.found)
    }

    /// Reads all files in the directory, in the order of their names. Blocks.
    ///
    /// # Errors
    /// The first file or directory that cannot be read, and why.
    pub(crate) fn read_all(&self, bounds: Bounds) -> Result<Vec<StoredFile>, String> {
        let mut all = ReadAll {
            files: Vec::new(),
            bounds,
        };
        let top = self.0.top().map_err(|error| error.to_string())?;
        all.walk(&top, "", 1)?;
        Ok(all.files)
    }
}

/// The bounds within which all files of a directory are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) most: usize,
    pub(crate) max_bytes: u64,
    pub(crate) hidden: bool,
}

/// A file of a directory that was read as a whole, with [`FileResources::read_all`](super::FileResources::read_all).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredFile {
    /// The path within the directory, with `/` between the names.
    pub path: String,
    /// The contents.
    pub bytes: Bytes,
}

struct ReadAll {
    files: Vec<StoredFile>,
    bounds: Bounds,
}

impl ReadAll {
    fn walk(
        &mut self,
        directory: &system::Level<'_>,
        parent: &str,
        depth: usize,
    ) -> Result<(), String> {
        let failed = |error: io::Error| format!("{parent:?}: {error}");
        let mut names = directory.names().map_err(failed)?;
        names.sort();
        for name in names {
            if self.bounds.hidden || !is_hidden(std::slice::from_ref(&name)) {
                self.visit(directory, parent, &name, depth)?;
            }
        }
        Ok(())
    }

    /// Reads an entry. One that was removed meanwhile is omitted, and so are symbolic links, with a warning.
    fn visit(
        &mut self,
        directory: &system::Level<'_>,
        parent: &str,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), String> {
        let Some(text) = name.to_str() else {
            return Err(format!(
                "{parent:?}: the file name {name:?} is not UTF-8; rename the file"
            ));
        };
        let path = match parent {
            "" => text.to_owned(),
            _ => format!("{parent}/{text}"),
        };
        let failed = |error: io::Error| format!("{path:?}: {error}");
        match directory.kind(name) {
            Ok(Kind::File { .. }) => self.read(directory, path, name),
            Ok(Kind::Directory) if depth >= MAX_DEPTH => {
                Err(format!("{path:?}: more than {MAX_DEPTH} levels deep"))
            }
            Ok(Kind::Directory) => match directory.enter(name).map_err(Refused::from) {
                Ok(inner) => self.walk(&inner, &path, depth + 1),
                Err(Refused::Io(error)) => Err(failed(error)),
                Err(_) => Ok(()),
            },
            Ok(Kind::Other) => {
                tracing::warn!(
                    path,
                    "omitting a symbolic link or special file from a directory"
                );
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    fn read(
        &mut self,
        directory: &system::Level<'_>,
        path: String,
        name: &OsStr,
    ) -> Result<(), String> {
        let Bounds {
            most, max_bytes, ..
        } = self.bounds;
        if self.files.len() >= most {
            return Err(format!("more than {most} files"));
        }
        match directory.read(name, max_bytes) {
            Ok(bytes) => {
                let bytes = bytes.into();
                self.files.push(StoredFile { path, bytes });
                Ok(())
            }
            Err(Refused::TooLong) => Err(format!("{path:?}: larger than {max_bytes} bytes")),
            Err(Refused::Io(error)) => Err(format!("{path:?}: {error}")),
            Err(Refused::NotFound | Refused::NoFile(_)) => Ok(()),
        }
    }
}

struct List {
    found: Vec<Found>,
    most: usize,
    hidden: bool,
}

impl List {
    fn walk(&mut self, directory: &system::Level<'_>, path: &mut Vec<OsString>) -> io::Result<()> {
        let mut names = directory.names()?;
        names.sort();
        for name in names {
            if self.found.len() >= self.most {
                return Ok(());
            }
            if self.hidden || !is_hidden(std::slice::from_ref(&name)) {
                self.visit(directory, path, &name)?;
            }
        }
        Ok(())
    }

    /// Visits an entry. Omits one that was removed meanwhile or cannot be accessed.
    fn visit(
        &mut self,
        directory: &system::Level<'_>,
        path: &mut Vec<OsString>,
        name: &OsStr,
    ) -> io::Result<()> {
        path.push(name.to_owned());
        match directory.kind(name) {
            Ok(Kind::File { size }) => self.found.push(Found {
                names: path.clone(),
                size,
            }),
            Ok(Kind::Directory) if path.len() < MAX_DEPTH => {
                if let Ok(inner) = directory.enter(name) {
                    self.walk(&inner, path)?;
                }
            }
            _ => {}
        }
        path.pop();
        Ok(())
    }
}
