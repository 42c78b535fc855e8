//! The handle of a connected group: its lists, its servers, and its end.

use std::{fmt, sync::Arc};

use oxmcp::{
    ClientSession, Error, Result,
    protocol::{Prompt, Resource, ResourceTemplate, Root, Tool},
};

use super::{
    event::GroupEvents,
    state::{Shared, Slot},
    status::{ServerState, ServerStatus},
};

/// The sessions of a group with its servers, as if they were one session. Cheap to clone; all clones are the same group.
///
/// When the last handle is dropped, the sessions are closed in the background; [`close`](Self::close) waits until they are.
#[derive(Clone)]
pub struct GroupSession {
    handle: Arc<Handle>,
}

/// Stops the supervisors when the last [`GroupSession`] is dropped.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

/// The server of a tool or prompt, and its name there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The label of the server.
    pub server: String,
    /// The name that the server lists.
    pub name: String,
}

impl fmt::Debug for GroupSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.shared().members.iter().map(|it| &it.label);
        f.debug_list().entries(labels).finish()
    }
}

impl GroupSession {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let handle = Arc::new(Handle { shared });
        Self { handle }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Returns the tools of all connected servers, by server and in its order, under their names in the group.
    #[must_use]
    pub fn tools(&self) -> Arc<[Tool]> {
        Arc::clone(&self.shared().catalog().tools)
    }

    /// Returns the prompts of all connected servers, as [`tools`](Self::tools) does.
    #[must_use]
    pub fn prompts(&self) -> Arc<[Prompt]> {
        Arc::clone(&self.shared().catalog().prompts)
    }

    /// Returns the resources of all connected servers. A URI that two servers list is in host form: see
    /// [`Hosts`](crate::router::Hosts).
    #[must_use]
    pub fn resources(&self) -> Arc<[Resource]> {
        Arc::clone(&self.shared().catalog().resources)
    }

    /// Returns the resource templates of all connected servers, with their URIs as [`resources`](Self::resources) has them.
    #[must_use]
    pub fn resource_templates(&self) -> Arc<[ResourceTemplate]> {
        Arc::clone(&self.shared().catalog().templates)
    }

    /// Returns the tools that fit a query best, the best first: for a model that is not to see all of them. Words are compared
    /// as they are, in names, titles, descriptions and parameters; the order is the same each time.
    ///
    /// ```
    /// # fn run(group: &oxmcp_group::GroupSession) {
    /// let tools = group.search_tools("create an issue on github", 5);
    /// # let _ = tools;
    /// # }
    /// ```
    #[must_use]
    pub fn search_tools(&self, query: &str, limit: usize) -> Vec<Tool> {
        let catalog = self.shared().catalog();
        let hits = catalog.index().search(query, limit);
        let tools = hits.into_iter().filter_map(|it| catalog.tools.get(it));
        tools.cloned().collect()
    }

    /// Returns the server of a tool, and the name of the tool there.
    #[must_use]
    pub fn tool_origin(&self, name: &str) -> Option<Origin> {
        let catalog = self.shared().catalog();
        let (server, name) = catalog.tool_names.target(name)?;
        Some(Origin {
            server: self.shared().label(server).to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns the state of each server, in the order in which they were added.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.shared().statuses()
    }

    /// Returns the session with a server, for requests that the group does not have. `None` while it is not connected.
    #[must_use]
    pub fn session(&self, label: &str) -> Option<ClientSession> {
        self.shared().open_session(self.index(label)?)
    }

    /// Returns the events from now on. At most 256 wait for a reader.
    #[must_use]
    pub fn events(&self) -> GroupEvents {
        GroupEvents(self.shared().subscribe())
    }

    /// Tries at once to connect a server that has failed, without waiting for the next attempt.
    ///
    /// # Errors
    /// If no server has this label.
    pub fn retry(&self, label: &str) -> Result<()> {
        let index = self.index(label);
        let retry = index.and_then(|index| self.shared().retries.get(index));
        let retry = retry.ok_or_else(|| Error::misuse(format!("no server is named `{label}`")))?;
        retry.notify_one();
        Ok(())
    }

    /// Adds roots for all servers, as [`Client::add_roots`](oxmcp::Client::add_roots) does for one.
    ///
    /// # Errors
    /// If the URI of a root does not begin with `file://`. In that case no root is added.
    pub fn add_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<()> {
        let roots: Vec<Root> = roots.into_iter().collect();
        let mut members = self.shared().members.iter();
        members.try_for_each(|it| it.client.add_roots(roots.clone()))
    }

    /// Removes roots by URI for all servers, as [`Client::remove_roots`](oxmcp::Client::remove_roots) does for one.
    pub fn remove_roots<U: AsRef<str>>(&self, uris: impl IntoIterator<Item = U>) {
        let uris: Vec<U> = uris.into_iter().collect();
        for member in &self.shared().members {
            member.client.remove_roots(uris.iter().map(AsRef::as_ref));
        }
    }

    /// Waits until the first attempt to connect to each server is over, whether it succeeded or failed.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn settled(&self) {
        self.shared().until_all(|it| it.first.is_some()).await;
    }

    /// Closes all sessions, and waits until they have ended.
    ///
    /// # Cancel safety
    /// Closing continues if the future is dropped.
    pub async fn close(&self) {
        let shared = self.shared();
        shared.stop.cancel();
        let is_closed = |it: &Slot| it.state == ServerState::Closed;
        shared.until_all(is_closed).await;
        shared.end_events();
    }

    fn index(&self, label: &str) -> Option<usize> {
        let mut members = self.shared().members.iter();
        members.position(|it| it.label == label)
    }
}
