//! The `_meta` of a request, read on every call: borrowed, and no more of it than serving needs.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ClientCapabilities, Implementation, LoggingLevel, Meta, ProgressToken, Revision};
use crate::{Error, Result};

/// What a request says of itself and of its sender.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta<'a> {
    raw: Option<&'a RawValue>,
    parts: Parts<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Parts<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
    #[serde(default, rename = "progressToken")]
    progress_token: Option<ProgressToken>,
}

/// By which era's rules a request wants to be served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim<'a> {
    /// It has no modern metadata.
    None,
    /// It names a revision that is modern.
    Modern(Revision),
    /// It names a revision that is not known or is not one that requests can name.
    Unknown(Cow<'a, str>),
}

impl<'a> RequestMeta<'a> {
    /// Reads the metadata of params.
    pub(crate) fn of(params: Option<&'a RawValue>) -> Result<Self> {
        #[derive(Deserialize)]
        struct WithMeta<'a> {
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        let Some(params) = params else {
            return Ok(Self::default());
        };
        let WithMeta { meta } =
            serde_json::from_str(params.get()).map_err(|error| malformed(&error))?;
        let Some(raw) = meta else {
            return Ok(Self::default());
        };
        let parts = serde_json::from_str(raw.get()).map_err(|error| malformed(&error))?;
        Ok(Self {
            raw: Some(raw),
            parts,
        })
    }

    pub(crate) fn raw(&self) -> Option<&'a RawValue> {
        self.raw
    }

    pub(crate) fn progress_token(&self) -> Option<ProgressToken> {
        self.parts.progress_token.clone()
    }

    pub(crate) fn log_level(&self) -> Result<Option<LoggingLevel>> {
        let Some(level) = self.parts.log_level else {
            return Ok(None);
        };
        serde_json::from_str(level.get()).map(Some).map_err(|_| {
            Error::invalid_params(format!("_meta {:?} is no log level", Meta::LOG_LEVEL))
        })
    }

    /// The era that the request claims.
    pub(crate) fn claim(&self) -> Claim<'a> {
        match &self.parts.protocol_version {
            None => Claim::None,
            Some(name) => match name.parse::<Revision>() {
                Ok(revision) if revision.is_modern() => Claim::Modern(revision),
                _ => Claim::Unknown(name.clone()),
            },
        }
    }

    /// What the sender said of itself, as text that is equal where it said the same.
    pub(crate) fn identity(&self) -> (&'a str, &'a str) {
        let text = |raw: Option<&'a RawValue>| raw.map_or("", RawValue::get);
        (
            text(self.parts.client_info),
            text(self.parts.client_capabilities),
        )
    }

    /// What the sender of a modern request said of itself.
    pub(crate) fn client(&self) -> Result<(Option<Implementation>, ClientCapabilities)> {
        let Some(capabilities) = self.parts.client_capabilities else {
            return Err(Error::invalid_params(format!(
                "_meta lacks {:?}, which every modern request must have",
                Meta::CLIENT_CAPABILITIES
            )));
        };
        let info = self
            .parts
            .client_info
            .map(|info| serde_json::from_str(info.get()))
            .transpose();
        Ok((
            info.map_err(|error| malformed(&error))?,
            serde_json::from_str(capabilities.get()).map_err(|error| malformed(&error))?,
        ))
    }

    /// What a request is told that is neither modern nor belongs to a session.
    pub(crate) fn missing() -> Error {
        Error::invalid_params(format!(
            "no session is open: send initialize first, or put {:?} and {:?} into the _meta of each request",
            Meta::PROTOCOL_VERSION,
            Meta::CLIENT_CAPABILITIES
        ))
    }
}

fn malformed(error: &serde_json::Error) -> Error {
    Error::invalid_params(format!("the params' _meta does not fit: {error}"))
}
