//! A server behind a gateway: how sessions with it are opened.

use std::{fmt, sync::Arc};

use oxmcp::{
    Limits, RequestContext, Result, Server, in_memory,
    transport::{BoxReadHalf, BoxTransport, BoxWriteHalf, Transport, boxed},
};

type Open = dyn Fn(Option<&RequestContext>) -> BoxTransport + Send + Sync;

/// A server behind a [`Gateway`](crate::Gateway): a [`Server`] in this process, or a function that returns a transport.
///
/// A gateway opens several sessions with one server: one for itself, and one for each client session. So it needs a function
/// that makes transports.
///
/// ```
/// use oxmcp::{Command, Server};
/// use oxmcp_group::Upstream;
///
/// let in_process: Upstream = Server::new("clock", "1.0.0").into();
/// let process = Upstream::new(|| Command::new("files-server"));
/// # let _ = (in_process, process);
/// ```
#[derive(Clone)]
pub struct Upstream {
    open: Arc<Open>,
    is_for_one_client: bool,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upstream")
    }
}

impl Upstream {
    /// Creates an upstream from a function that returns a transport for each session.
    #[must_use]
    pub fn new<T: Transport>(open: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(move |_| boxed(open())),
            is_for_one_client: false,
        }
    }

    /// Creates an upstream from a function that returns a transport for each session of a client.
    ///
    /// The context is that of the first request of the client for which the session is opened, and `None` for the gateway's own
    /// session, which reads the lists. A gateway passes on nothing of its clients' authorization: this is the place to choose
    /// credentials by [`RequestContext::principal`], for this upstream only. Different clients never share a session with
    /// such an upstream.
    ///
    /// ```
    /// use oxmcp::Command;
    /// use oxmcp_group::Upstream;
    ///
    /// let mail = Upstream::for_client(|client| {
    ///     let user = client.and_then(|it| it.principal());
    ///     Command::new("mail-server").env("MAIL_USER", user.map_or("", |it| it.as_str()))
    /// });
    /// # let _ = mail;
    /// ```
    #[must_use]
    pub fn for_client<T: Transport>(
        open: impl Fn(Option<&RequestContext>) -> T + Send + Sync + 'static,
    ) -> Self {
        Self {
            open: Arc::new(move |client| boxed(open(client))),
            is_for_one_client: true,
        }
    }

    /// Whether each of its sessions is opened for one client.
    pub(super) fn is_for_one_client(&self) -> bool {
        self.is_for_one_client
    }

    pub(super) fn open(&self, client: Option<&RequestContext>) -> BoxTransport {
        (self.open)(client)
    }
}

impl From<Server> for Upstream {
    fn from(server: Server) -> Self {
        Self::new(move || InProcess(server.clone()))
    }
}

/// A transport to a server in this process, which can be connected again.
struct InProcess(Server);

impl Transport for InProcess {
    type Read = BoxReadHalf;
    type Write = BoxWriteHalf;

    async fn connect(&mut self, limits: &Limits) -> Result<(BoxReadHalf, BoxWriteHalf)> {
        let (near, far) = in_memory();
        self.0.connect(far).await?;
        let mut near = boxed(near);
        near.connect(limits).await
    }
}
