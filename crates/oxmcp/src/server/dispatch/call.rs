//! [`Call`], the input of the function that serves a method, and [`Served`], the result of that function.

use oxmcp_protocol::{
    Payload,
    internal::{HasMeta, Project, RequestParams, encode_result, into_text},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::{Error, Result, plain_decode_error},
    server::{
        dispatch::ServerRole,
        features::{Features, Registered},
        session::ServerSession,
    },
    session::{
        connection::RequestContext,
        inbound::{body::Body, run::Work},
    },
};

/// A request, and everything needed to serve it.
pub(crate) struct Call<'a> {
    pub(crate) role: &'a ServerRole,
    pub(crate) features: &'a Features,
    pub(crate) cx: RequestContext,
    pub(crate) params: &'a RequestParams<'a>,
}

/// The response to a request, or the work that produces it.
pub(crate) enum Served {
    Ready(Body),
    Pending(Work),
}

impl Served {
    /// Work that is first polled before the next message is read, since the client's next messages rely on it.
    pub(crate) fn in_order(work: impl Future<Output = Result<Body>> + Send + 'static) -> Self {
        Self::Pending(Work {
            future: Box::pin(work),
            inline: None,
        })
    }
}

impl Call<'_> {
    /// The params as a type.
    ///
    /// # Errors
    /// If they are invalid.
    pub(crate) fn read<T: Payload + DeserializeOwned>(&self, method: &str) -> Result<T> {
        let connection = &self.cx.parts().connection;
        let read = connection.read(method, self.params.raw.get());
        read.map_err(|error| misfit(method, &error))
    }

    /// The session of the request.
    ///
    /// # Errors
    /// An internal error if there is none.
    pub(crate) fn session(&self) -> Result<ServerSession> {
        self.cx
            .server_session()
            .ok_or_else(|| Error::internal("request has no session"))
    }

    /// Responds with a complete result.
    pub(crate) fn answer<R>(&self, mut result: R) -> Result<Served>
    where
        R: Serialize + Project + HasMeta,
    {
        let mut out = Vec::new();
        let info = Some(&*self.features.info_json);
        encode_result(&mut out, &mut result, self.cx.revision(), info)?;
        Ok(Served::Ready(Body::Json(into_text(out)?)))
    }

    /// The error for an unknown feature. It lists a few known ids.
    pub(crate) fn unknown<T: Registered>(&self, id: &str) -> Error {
        /// The maximum number of ids in the error; more would be noise.
        const MAX_SHOWN: usize = 20;
        let visible = T::registry(self.features).listed_after(None);
        let mut visible = visible.filter(|feature| feature.is_listed(&self.cx));
        let known: Vec<_> = visible.by_ref().take(MAX_SHOWN).map(|it| it.id()).collect();
        let more = if visible.next().is_some() {
            ", …"
        } else {
            ""
        };
        let known = match known.as_slice() {
            [] => "none available".to_owned(),
            known => format!("available: {}{more}", known.join(", ")),
        };
        let shown: String = id.chars().take(128).collect();
        Error::invalid_params(format!("Unknown {}: {shown} ({known})", T::KIND))
    }
}

/// The error for invalid params of a method.
pub(crate) fn misfit(method: &str, error: &serde_json::Error) -> Error {
    let why = plain_decode_error(error);
    Error::invalid_params(format!("invalid params of {method}: {why}"))
}
