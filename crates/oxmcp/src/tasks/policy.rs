//! Task policy: when the call of a tool becomes a task.

use std::time::Duration;

/// When the call of a tool becomes a task. It does so only for requests that declare the extension; the client cannot ask for it.
///
/// In 2025-11-25 it is the client that asks, with the member `task` of the call: then all but [`Never`](Self::Never) become a task at
/// once, and without it only [`Required`](Self::Required) is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskPolicy {
    /// Never: the call is answered when it is done.
    #[default]
    Never,
    /// When the handler has run for this long, without the time in which its client answers questions. The call begins like any
    /// other, and is answered like any other where it is done by then.
    After(Duration),
    /// At once, when the handler has to wait for anything but its client: what it asks before that is answered before there is a
    /// task.
    Always,
    /// Before the handler begins, so that all that it asks is asked by the task. A client that does not declare the extension is
    /// refused; lists of revisions without tasks do not show the tool, and its calls there are errors that say what is needed.
    Required,
}
