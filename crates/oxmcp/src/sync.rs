//! Locks without poisoning.

use std::sync::{self, MutexGuard, PoisonError};
#[cfg(feature = "server")]
use std::sync::{RwLockReadGuard, RwLockWriteGuard};

/// A mutex that can be locked even after a panic.
///
/// This is safe because no change of a guarded value can panic halfway and leave it inconsistent.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader-writer lock that can be locked even after a panic.
#[cfg(feature = "server")]
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(sync::RwLock<T>);

#[cfg(feature = "server")]
impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
