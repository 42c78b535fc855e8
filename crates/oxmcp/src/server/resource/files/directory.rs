//! Served directory: reading and listing its files.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
};

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
