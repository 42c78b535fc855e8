//! Task policy: the conditions under which a tool call becomes a task.

use std::time::Duration;

/// The conditions under which a tool call becomes a task. They apply only to requests that declare the extension; the client cannot
/// ask for a task.
///
/// In 2025-11-25 the client asks for a task, with the member `task` of the call: then all policies but [`Never`](Self::Never) make
/// the call a task at once. Without the member, only [`Required`](Self::Required) is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskPolicy {
    /// Never: the call is answered when it is done.
    #[default]
    Never,
    /// When the handler has run for this long, not counting the time in which its client answers questions. The call begins like
    /// any other, and is answered like any other if the handler ends by then.
    After(Duration),
    /// At once, when the handler has to wait for anything but its client: questions that it asks before that are answered before
    /// there is a task.
    Always,
    /// Before the handler begins, so that the task asks all of its questions. A client that does not declare the extension is
    /// refused. In revisions without tasks, lists do not show the tool, and calls of it return errors that say what is needed.
    Required,
}
