//! Connects a client and a server in memory.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use oxmcp_protocol::Revision;

use crate::{
    client::{Client, ClientSession},
    debug::opaque_debug,
    error::Result,
    server::Server,
    transport::in_memory,
};

/// Connects a client to a server in this process. Await the result to get the session.
///
/// See the [module](super) for an example.
pub fn connect(server: &Server) -> Connect {
    Connect {
        server: server.clone(),
        client: Client::new("oxmcp-testing", "1.0.0"),
        revision: None,
        is_lenient: false,
    }
}

/// A session that is about to be opened; created by [`connect`].
#[must_use = "await it to open the session"]
pub struct Connect {
    server: Server,
    client: Client,
    revision: Option<Revision>,
    is_lenient: bool,
}

impl Connect {
    /// Reads leniently on both sides, as with other implementations. By default, both sides are [strict](Server::strict), so
    /// that a test notices violations of the specification.
    pub fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self
    }

    /// Pins the revision. By default, the newest that both support is negotiated.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Connects this client, instead of one without capabilities.
    pub fn client(mut self, client: &Client) -> Self {
        self.client = client.clone();
        self
    }
}

impl IntoFuture for Connect {
    type Output = Result<ClientSession>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<ClientSession>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (mut near, mut far) = in_memory();
            if !self.is_lenient {
                (near, far) = (near.strict(), far.strict());
            }
            self.server.connect(far).await?;
            match self.revision {
                Some(revision) => self.client.connect_in(near, revision).await,
                None => self.client.connect(near).await,
            }
        })
    }
}

opaque_debug!(Connect);
