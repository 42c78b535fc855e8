//! Who waits to be woken.

use std::task::Waker;

/// Notes who waits, in place of who waited before: mostly it is the same task, whose waker is not cloned again.
pub(crate) fn note(waiting: &mut Option<Waker>, waker: &Waker) {
    match waiting {
        Some(known) => known.clone_from(waker),
        none => *none = Some(waker.clone()),
    }
}
