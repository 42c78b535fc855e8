//! The tools of a server of 2025-11-25 that can run as tasks, as they were listed last.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use oxmcp_protocol::{ListToolsResult, TaskSupport};

use crate::sync::Mutex;

/// The approximate bytes that the map and the allocator take for an entry.
const ENTRY_BYTES: usize = 64;

/// The support for tasks of the tools that can or must run as tasks, by their names.
#[derive(Debug, Default)]
pub(crate) struct TaskSupports {
    state: Mutex<State>,
    is_listed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    by_tool: HashMap<String, TaskSupport>,
    bytes: usize,
}

impl TaskSupports {
    /// Learns the task support of a page of listed tools. All entries together take no more bytes than a list may have
    /// (`limit`).
    pub(crate) fn learn(&self, page: &ListToolsResult, limit: usize) {
        let mut state = self.state.lock();
        for tool in &page.tools {
            if state.by_tool.remove(&tool.name).is_some() {
                state.bytes -= tool.name.len() + ENTRY_BYTES;
            }
            let execution = tool.execution.as_ref();
            let support = execution.and_then(|it| it.task_support.clone());
            let Some(support @ (TaskSupport::Optional | TaskSupport::Required)) = support else {
                continue;
            };
            let bytes = tool.name.len() + ENTRY_BYTES;
            if state.bytes + bytes <= limit {
                state.bytes += bytes;
                state.by_tool.insert(tool.name.clone(), support);
            }
        }
    }

    pub(crate) fn get(&self, tool: &str) -> Option<TaskSupport> {
        self.state.lock().by_tool.get(tool).cloned()
    }

    /// Records that all tools were listed.
    pub(crate) fn note_listed(&self) {
        self.is_listed.store(true, Ordering::Relaxed);
    }

    /// Whether all tools were listed since the server said that they have changed.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Relaxed)
    }

    /// Forgets all entries, after the tools of the server have changed.
    pub(crate) fn forget(&self) {
        *self.state.lock() = State::default();
        self.is_listed.store(false, Ordering::Relaxed);
    }
}
