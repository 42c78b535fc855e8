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

/// A request, and all that is needed to serve it.
pub(in crate::server) struct Call<'a> {
    pub(in crate::server) role: &'a ServerRole,
    pub(in crate::server) features: &'a Features,
    pub(in crate::server) cx: RequestContext,
    pub(in crate::server) params: &'a RequestParams<'a>,
}

/// The answer to a request, or the work that leads to it.
pub(in crate::server) enum Served {
    Ready(Body),
    Pending(Work),
}

impl Served {
    /// Work whose first poll comes before the next message is taken, since the client's next messages rely on it.
    pub(in crate::server) fn in_order(
        work: impl Future<Output = Result<Body>> + Send + 'static,
    ) -> Self {
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
    /// If they do not fit.
    pub(in crate::server) fn read<T: Payload + DeserializeOwned>(&self, method: &str) -> Result<T> {
        let connection = &self.cx.parts().connection;
        let read = connection.read(method, self.params.raw.get());
        read.map_err(|error| misfit(method, &error))
    }

    /// The session that the request came over.
    ///
    /// # Errors
    /// If there is none, which is an internal error.
    pub(in crate::server) fn session(&self) -> Result<ServerSession> {
        self.cx
            .server_session()
            .ok_or_else(|| Error::internal("the request came over no session"))
    }

    /// Answers with a result that is complete already.
    pub(in crate::server) fn answer<R>(&self, mut result: R) -> Result<Served>
    where
        R: Serialize + Project + HasMeta,
    {
        let mut out = Vec::new();
        let info = Some(&*self.features.info_json);
        encode_result(&mut out, &mut result, self.cx.revision(), info)?;
        Ok(Served::Ready(Body::Json(into_text(out)?)))
    }

    /// The error that there is no feature of that id. It lists a few ids that exist.
    pub(super) fn unknown<T: Registered>(&self, id: &str) -> Error {
        /// The maximum number of ids in the error; more would be noise.
        const MAX_SHOWN: usize = 20;
        let visible = T::registry(self.features).after(None);
        let mut visible = visible.filter(|feature| feature.is_listed(&self.cx));
        let known: Vec<_> = visible.by_ref().take(MAX_SHOWN).map(|it| it.id()).collect();
        let more = if visible.next().is_some() {
            ", …"
        } else {
            ""
        };
        let known = match known.as_slice() {
            [] => "there are none".to_owned(),
            known => format!("there are: {}{more}", known.join(", ")),
        };
        let shown: String = id.chars().take(128).collect();
        Error::invalid_params(format!("Unknown {}: {shown} ({known})", T::KIND))
    }
}

/// The error of a caller whose params do not fit the method.
pub(super) fn misfit(method: &str, error: &serde_json::Error) -> Error {
    let why = plain_decode_error(error);
    Error::invalid_params(format!("the params of {method} do not fit: {why}"))
}
