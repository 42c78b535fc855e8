//! The process group of a server: the server and all processes that it started, except those that moved to other groups.

use tokio::process::Child;

/// The group, which is killed with SIGKILL on drop, unless it was [let go](Self::let_go).
#[derive(Debug)]
pub(crate) struct ProcessGroup(#[cfg(unix)] Option<rustix::process::Pid>);

#[cfg(unix)]
impl ProcessGroup {
    /// The group that `child` leads.
    pub(crate) fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(rustix::process::Pid::from_raw))
    }

    pub(crate) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    pub(crate) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// Whether no process of the group is running anymore. Call it only after the leader was reaped: it also reaps the other
    /// processes if they have become children of this process, as under the init process of a container.
    pub(crate) fn is_gone(&self) -> bool {
        use rustix::process::{WaitOptions, test_kill_process_group, waitpgid};

        let Some(group) = self.0 else { return true };
        while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
        test_kill_process_group(group).is_err() || only_zombies(group.as_raw_nonzero().get())
    }

    /// Lets go of a group that is gone: its number may soon belong to another group, which must not be signaled.
    pub(crate) fn let_go(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.0 {
            // This fails if the group has just ended, which is the goal.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

/// Whether all remaining processes of the group have ended and only wait to be reaped by the init process. In containers, it
/// often does not reap, and the wait would never end.
#[cfg(target_os = "linux")]
fn only_zombies(group: i32) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    let mut stats = processes
        .flatten()
        .filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    !stats.any(|stat| {
        // The fields after the name, which may contain anything: state, parent, group.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let mut fields = fields.split(' ');
        let runs = !matches!(fields.next(), Some("Z" | "X"));
        runs && fields.nth(1).and_then(|field| field.parse().ok()) == Some(group)
    })
}

#[cfg(all(unix, not(target_os = "linux")))]
fn only_zombies(_: i32) -> bool {
    false
}

/// Without process groups, only the process itself is ended, through its handle.
#[cfg(not(unix))]
impl ProcessGroup {
    pub(crate) fn led_by(_: &Child) -> Self {
        Self()
    }

    pub(crate) fn kill(&self) {}

    pub(crate) fn is_gone(&self) -> bool {
        true
    }

    pub(crate) fn let_go(&mut self) {}
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
