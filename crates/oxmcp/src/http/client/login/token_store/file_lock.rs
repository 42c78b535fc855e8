//! A lock of a file, which one holder has in all processes of a machine.

use std::{fs::File, io, path::Path, time::Duration};

#[cfg(unix)]
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use tokio::time::{Instant, sleep};

use crate::error::{Error, Result};

/// How long a lock is waited for. Whoever holds it waits for an authorization server, and that for 10 s at most for each request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long the lock is left alone between two attempts. A call that waits for the lock could not be given up.
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is held until this is dropped, or the process ends in whatever way.
pub(super) struct FileLock(File);

impl FileLock {
    /// Waits for the lock of a file, which is open for writing: over NFS others cannot be locked. The file stays when the lock goes,
    /// since another process may be about to take it.
    pub(super) async fn acquire(file: File, path: &Path) -> Result<Self> {
        let deadline = Instant::now() + TIMEOUT;
        while !try_lock(&file)? {
            if Instant::now() >= deadline {
                return Err(Error::timeout(format!(
                    "another holder has not let go of the lock {} within {TIMEOUT:?}, and nothing is changed without it: try again, \
                     or end the process that hangs",
                    path.display()
                )));
            }
            sleep(PAUSE).await;
        }
        Ok(Self(file))
    }
}

/// It is let go of by name: a process that is about to be started may have the file open, too, and Windows closes it late.
impl Drop for FileLock {
    fn drop(&mut self) {
        // Where that fails, closing the file does it.
        let _ = unlock(&self.0);
    }
}

/// Takes the lock, if nobody has it.
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

/// Takes the lock, if nobody has it.
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
