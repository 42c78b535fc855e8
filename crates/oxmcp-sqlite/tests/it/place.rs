//! Temporary directories for the files of tests.

use std::{
    fs,
    path::PathBuf,
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A path of a file that does not exist yet, in its own directory, which is removed on drop.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sqlite-{}-{number}", process::id());
        let place = Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        fs::create_dir_all(&place.0).unwrap();
        place
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("state.db")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
