//! A lock of a file, which has one holder among all processes of a machine.

use std::{fs::File, io, path::Path, time::Duration};

#[cfg(unix)]
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use tokio::time::{Instant, sleep};

use crate::error::{Error, Result};

/// The time limit for acquiring a lock. Its holder may wait for an authorization server, for 10 s at most with each request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two attempts. A call that blocks until it has the lock could not be cancelled.
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is held until this is dropped, or the process ends in any way.
pub(crate) struct FileLock(File);

impl FileLock {
    /// Waits for the lock of a file. The file must be open for writing, because others cannot be locked over NFS. The file remains
    /// when the lock is released, because another process may be about to take it.
    pub(crate) async fn acquire(file: File, path: &Path) -> Result<Self> {
        let deadline = Instant::now() + TIMEOUT;
        while !try_lock(&file)? {
            if Instant::now() >= deadline {
                return Err(Error::timeout(format!(
                    "could not lock {} within {TIMEOUT:?}: it is locked elsewhere; try again, \
                     or end the process that holds the lock",
                    path.display()
                )));
            }
            sleep(PAUSE).await;
        }
        Ok(Self(file))
    }
}

/// The lock is released explicitly: a process that is about to be started may have the file open, too, and Windows closes it late.
impl Drop for FileLock {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        let _ = unlock(&self.0);
    }
}

/// Takes the lock, if it is free.
#[cfg(unix)]
fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(unix)]
fn unlock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::Unlock)?)
}

/// Takes the lock, if it is free.
#[cfg(windows)]
fn try_lock(file: &File) -> io::Result<bool> {
    match fs4::FileExt::try_lock(file) {
        Ok(()) => Ok(true),
        Err(fs4::TryLockError::WouldBlock) => Ok(false),
        Err(fs4::TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(windows)]
fn unlock(file: &File) -> io::Result<()> {
    fs4::FileExt::unlock(file)
}
