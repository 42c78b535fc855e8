//! Resource definition: the URI, description and handler of a resource.

use std::{future::ready, sync::Arc};

use oxmcp_protocol::{
    Blob, CacheHint, Resource as Definition, ResourceBody, ResourceContents, internal::uri,
};

use super::{
    IntoResourceResult, ResourceArguments,
    handler::{ErasedHandler, erase},
};
use crate::{
    error::Error,
    server::{
        definitions::options::{entry, resource_options},
        registry::{Access, AskMode},
    },
    session::handler::traits::{Handler, HandlerFuture},
};

/// A resource: its description for clients, and the function that reads it.
///
/// The URI must be absolute. Mistakes are reported by [`Server::add_resources`](crate::Server::add_resources), or when the server
/// begins to serve.
///
/// This is the type for servers. Clients read the entries of a listing as [`protocol::Resource`](crate::protocol::Resource).
/// See [resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource).
///
/// ```
/// use oxmcp::{RequestContext, Resource};
///
/// // A fixed text.
/// let license = Resource::text("docs://license", "license", "Do what you like.");
///
/// // A file, read for each request.
/// async fn log(_cx: RequestContext) -> std::io::Result<String> {
///     std::fs::read_to_string("/var/log/app.log")
/// }
/// let log = Resource::new("app://log", "log", log)
///     .title("What happened")
///     .mime_type("text/plain");
/// # let _ = (license, log);
/// ```
pub struct Resource {
    pub(crate) definition: Definition,
    pub(crate) handler: ErasedHandler,
    pub(crate) cache: Option<CacheHint>,
    pub(crate) access: Access,
    pub(crate) ask_mode: AskMode,
    /// The first mistake in the definition.
    pub(crate) mistake: Option<Error>,
}

impl Resource {
    /// Creates a resource that a function reads. `name` is for programs; [`title`](Self::title) is for people.
    ///
    /// The attribute [`#[oxmcp::resource("app://log")]`](macro@crate::resource) generates this call for a free function.
    pub fn new<Arguments, H>(uri: impl Into<String>, name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<Arguments>,
        Arguments: ResourceArguments,
        H::Returned: HandlerFuture<Output: IntoResourceResult> + Send + 'static,
    {
        let is_reply = <H::Returned as HandlerFuture>::Output::IS_REPLY;
        let mode = AskMode::of(true, is_reply);
        Self::assemble(uri.into(), name.into(), erase(handler), mode)
    }

    /// Creates a resource with a fixed text.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::fixed(uri.into(), name.into(), ResourceBody::Text(text.into()))
    }

    /// Creates a resource with fixed bytes.
    pub fn blob(uri: impl Into<String>, name: impl Into<String>, bytes: impl Into<Blob>) -> Self {
        Self::fixed(uri.into(), name.into(), ResourceBody::Blob(bytes.into()))
    }

    fn fixed(uri: String, name: String, body: ResourceBody) -> Self {
        let size = body.size();
        let handler: ErasedHandler = Arc::new(move |_context, target| {
            let contents = ResourceContents::new(&*target.uri, body.clone());
            Ok(Box::pin(ready(Ok(contents.into()))))
        });
        Self::assemble(uri, name, handler, AskMode::Never).size(size as u64)
    }

    pub(crate) fn assemble(
        uri: String,
        name: String,
        handler: ErasedHandler,
        ask_mode: AskMode,
    ) -> Self {
        let mistake = uri::check_absolute(&uri).err();
        let mistake = mistake.map(|mistake| Error::misuse(format!("resource {uri:?}: {mistake}")));
        Self {
            definition: Definition::new(uri, name),
            handler,
            cache: None,
            access: Access::default(),
            ask_mode,
            mistake,
        }
    }

    /// Sets the size of the contents in bytes, before any encoding. Fixed texts and bytes have it by default.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.definition.size = Some(bytes);
        self
    }

    /// Returns the URI of the resource.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.definition.uri
    }
}

resource_options!(Resource by uri: "resource");
entry!(Resource of Definition by uri: "resource");
