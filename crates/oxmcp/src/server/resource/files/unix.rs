//! File access by descriptors of directories: a path is never resolved as a whole, so that concurrent changes cannot lead out of
//! the served directory.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::entry::{Kind, Refused};

/// The served directory.
#[derive(Debug)]
pub(crate) struct Root {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// A directory on the way to a file.
#[derive(Debug)]
pub(crate) enum Level<'a> {
    Top(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = fs::open(&path, flags, Mode::empty())?;
        Ok(Self { descriptor, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn top(&self) -> io::Result<Level<'_>> {
        Ok(Level::Top(self.descriptor.as_fd()))
    }
}

impl Level<'_> {
    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Top(descriptor) => *descriptor,
            Self::Below(descriptor) => descriptor.as_fd(),
        }
    }

    /// Opens a subdirectory.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Level<'static>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = fs::openat(self.descriptor(), name, flags, Mode::empty())?;
        Ok(Level::Below(below))
    }

    /// The kind of an entry; links are not followed.
    pub(crate) fn kind(&self, name: &OsStr) -> io::Result<Kind> {
        let stat = fs::statat(self.descriptor(), name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(kind(&stat))
    }

    /// The names of all entries.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.descriptor())? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &OsStr, max_bytes: u64) -> Result<Vec<u8>, Refused> {
        // The file may have been replaced since it was checked: opening it must neither block nor follow a link.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file =
            fs::openat(self.descriptor(), name, flags, Mode::empty()).map_err(io::Error::from)?;
        let stat = fs::fstat(&file).map_err(io::Error::from)?;
        match kind(&stat) {
            Kind::File { size } if size <= max_bytes => {}
            Kind::File { .. } => return Err(Refused::TooLong),
            _ => return Err(Refused::NotFound),
        }
        let mut bytes = Vec::new();
        // The file may grow while it is read.
        let mut file = File::from(file).take(max_bytes.saturating_add(1));
        file.read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(Refused::TooLong);
        }
        Ok(bytes)
    }
}

fn kind(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File {
            size: u64::try_from(stat.st_size).unwrap_or_default(),
        },
        FileType::Directory => Kind::Directory,
        _ => Kind::Other,
    }
}
