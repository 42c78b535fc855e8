//! The task policy: when a tool call becomes a task.

use std::time::Duration;

/// Decides when a tool call becomes a task. This applies only to requests that declare the extension; the client cannot ask for
/// a task.
///
/// In 2025-11-25 the client asks for a task, with the member `task` of the call. Then every policy except
/// [`Never`](Self::Never) makes the call a task at once. Without the member, calls with [`Required`](Self::Required) are
/// refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskPolicy {
    /// Never: the call is answered when it is done.
    #[default]
    Never,
    /// After the handler has run for this time, not counting the time in which its client answers questions. A call that ends
    /// sooner is answered as usual.
    After(Duration),
    /// When the handler asks for it, with [`TaskContext::become_task`](super::TaskContext::become_task): for handlers that
    /// learn only from others whether their work takes long. A call that ends without it is answered as usual.
    OnDemand,
    /// As soon as the handler waits for anything except its client: questions that it asks before that are answered before
    /// there is a task.
    Always,
    /// Before the handler begins, so that the task asks all of its questions. Clients that do not declare the extension are
    /// refused. In revisions without tasks, the tool is not listed, and calling it fails with an error that names the required
    /// revision.
    Required,
}
