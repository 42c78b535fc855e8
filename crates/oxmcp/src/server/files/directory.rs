use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
};

use super::{path::is_hidden, system};

/// How deep directories are looked into, for a list of what is in them.
const DEEPEST: usize = 64;

/// A directory, and all that is in it. It stays the same one when its path comes to mean another.
#[derive(Debug)]
pub(super) struct Directory(system::Root);

/// Why a file is not read.
#[derive(Debug)]
pub(super) enum Refused {
    NotFound,
    /// It is there, and what it is says this.
    NoFile(&'static str),
    /// It is longer than is allowed.
    TooLong,
    Io(io::Error),
}

/// What is in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File { size: u64 },
    Directory,
    Other,
}

/// A file that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) names: Vec<OsString>,
    pub(super) size: u64,
}

impl Directory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        system::Root::open(path).map(Self)
    }

    /// Where it was when it was opened, without symbolic links.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The contents of a file. Blocks.
    pub(super) fn read(&self, names: &[OsString], longest: u64) -> Result<Vec<u8>, Refused> {
        let Some((name, parents)) = names.split_last() else {
            return Err(Refused::NotFound);
        };
        let mut directory = self.0.top().map_err(refused)?;
        for parent in parents {
            directory = directory.enter(parent).map_err(refused)?;
        }
        match directory.kind(name).map_err(refused)? {
            Kind::File { .. } => directory.read(name, longest),
            Kind::Directory => Err(Refused::NoFile("it is a directory")),
            Kind::Other => Err(Refused::NoFile("it is no plain file")),
        }
    }

    /// The files in it, in the order of their names. Blocks.
    pub(super) fn list(&self, most: usize, hidden: bool) -> io::Result<Vec<Found>> {
        let mut list = List {
            found: Vec::new(),
            most,
            hidden,
        };
        list.walk(&self.0.top()?, &mut Vec::new())?;
        Ok(list.found)
    }
}

/// What a name leads nowhere by is as good as not there; above all a symbolic link, which is not followed.
fn refused(error: io::Error) -> Refused {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refused::NotFound,
        _ if system::is_link(&error) => Refused::NotFound,
        // A name that no file can have.
        io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput => Refused::NotFound,
        _ => Refused::Io(error),
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        refused(error)
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

    /// What has gone meanwhile, or cannot be looked into, is left out.
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
            Ok(Kind::Directory) if path.len() < DEEPEST => {
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
