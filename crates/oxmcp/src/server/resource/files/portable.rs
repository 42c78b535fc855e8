//! File access on platforms without descriptors of directories: each path is resolved as a whole, and checked before and after
//! it is opened.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::entry::{Kind, Refused};

/// The served directory.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
}

/// A directory on the way to a file.
#[derive(Debug)]
pub(crate) struct Level<'a> {
    root: &'a Path,
    path: PathBuf,
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn top(&self) -> io::Result<Level<'_>> {
        Ok(Level {
            root: &self.path,
            path: self.path.clone(),
        })
    }
}

impl<'a> Level<'a> {
    /// The path of an entry, if neither the entry nor a directory on the way is a link.
    fn child(&self, name: &OsStr) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let resolved = path.canonicalize()?;
        if resolved != path || !resolved.starts_with(self.root) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(path)
    }

    /// Opens a subdirectory.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Level<'a>> {
        let path = self.child(name)?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let root = self.root;
        Ok(Level { root, path })
    }

    /// The kind of an entry; links are not followed.
    pub(crate) fn kind(&self, name: &OsStr) -> io::Result<Kind> {
        Ok(kind(&fs::symlink_metadata(self.path.join(name))?))
    }

    /// The names of all entries.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = fs::read_dir(&self.path)?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &OsStr, max_bytes: u64) -> Result<Vec<u8>, Refused> {
        let path = self.child(name)?;
        let file = File::open(&path)?;
        match kind(&file.metadata()?) {
            Kind::File { size } if size <= max_bytes => {}
            Kind::File { .. } => return Err(Refused::TooLong),
            _ => return Err(Refused::NotFound),
        }
        // If the path became a link meanwhile, opening may have followed it.
        self.child(name)?;
        let mut bytes = Vec::new();
        file.take(max_bytes.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(Refused::TooLong);
        }
        Ok(bytes)
    }
}

fn kind(metadata: &Metadata) -> Kind {
    if metadata.is_file() {
        Kind::File {
            size: metadata.len(),
        }
    } else if metadata.is_dir() {
        Kind::Directory
    } else {
        Kind::Other
    }
}
