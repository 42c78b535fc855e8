//! What a request says about itself, read on every call without parsing anything else of it.
//!
//! See [per-request fields](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    ClientCapabilities, Implementation, LoggingLevel, Meta, ProgressToken, Revision,
    UnsupportedProtocolVersionData, scan,
};
use crate::{
    Error, Result,
    jsonrpc::{ErrorCode, RequestId},
};

/// The keys of a request's `_meta` that the protocol gives a meaning, each as it stands.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct RequestMeta<'a> {
    /// The whole.
    #[serde(skip)]
    raw: Option<&'a str>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<&'a RawValue>,
    /// An [`Implementation`](super::Implementation).
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) client_info: Option<&'a RawValue>,
    /// [`ClientCapabilities`](super::ClientCapabilities).
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/subscriptionId")]
    subscription_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, default)]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tracestate: Option<&'a RawValue>,
    #[serde(borrow, default)]
    baggage: Option<&'a RawValue>,
}

/// By which rules a request is to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// By those of the session: the request says nothing of itself.
    Legacy,
    /// By those of this revision, without a session.
    Modern(Revision),
}

impl<'a> RequestMeta<'a> {
    /// Reads the `_meta` of `params`.
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`], where `_meta` is no object, or says something twice.
    pub(crate) fn of(params: Option<&'a RawValue>) -> Result<Self> {
        let Some(params) = params else {
            return Ok(Self::default());
        };
        let mut metas = scan::members(params)
            .filter(|(key, _)| key == "_meta")
            .map(|(_, meta)| meta);
        let Some(meta) = metas.next() else {
            return Ok(Self::default());
        };
        if metas.next().is_some() {
            return Err(Error::invalid_params("`_meta` stands there twice"));
        }
        match meta {
            "{}" | "null" => Ok(Self::default()),
            // An array would pass as a struct's members in their order.
            _ if !meta.starts_with('{') => Err(Error::invalid_params("`_meta` must be an object")),
            _ => serde_json::from_str(meta)
                .map(|parts| Self {
                    raw: Some(meta),
                    ..parts
                })
                .map_err(|error| Error::invalid_params(format!("`_meta`: {error}"))),
        }
    }

    /// By which rules the request is to be served. `served` are the revisions that this side speaks.
    ///
    /// # Errors
    /// [`ErrorCode::UNSUPPORTED_PROTOCOL_VERSION`] where it is made in another revision;
    /// [`ErrorCode::INVALID_PARAMS`] where it is modern and lacks a key that it must have.
    pub(crate) fn classify(&self, served: &[Revision]) -> Result<Era> {
        let Some(version) = self.protocol_version else {
            return if self.client_info.is_some() || self.client_capabilities.is_some() {
                Err(Error::invalid_params(self.what_is_missing()))
            } else {
                Ok(Era::Legacy)
            };
        };
        let Some(version) = text(version) else {
            return Err(Error::invalid_params(self.what_is_missing()));
        };
        let revision = version
            .parse()
            .ok()
            .filter(|revision: &Revision| revision.is_modern() && served.contains(revision));
        let Some(revision) = revision else {
            return Err(unsupported_version(served, &version));
        };
        if !self.has_capabilities() {
            return Err(Error::invalid_params(self.what_is_missing()));
        }
        Ok(Era::Modern(revision))
    }

    /// What a modern request must say and this one does not, in words. For those who know from elsewhere (an HTTP
    /// header) that the request is modern.
    pub(crate) fn what_is_missing(&self) -> String {
        let version = self.protocol_version.and_then(text).is_none();
        let version = version.then(|| format!("`{}` (a string)", Meta::PROTOCOL_VERSION));
        let capabilities = !self.has_capabilities();
        let capabilities =
            capabilities.then(|| format!("`{}` (an object)", Meta::CLIENT_CAPABILITIES));
        let missing: Vec<String> = version.into_iter().chain(capabilities).collect();
        format!(
            "every request of revision {} needs these keys in `_meta`: {}",
            Revision::LATEST,
            missing.join(" and ")
        )
    }

    /// The `_meta` as it arrived. `None` where there is none, or nothing in it.
    pub(crate) fn raw(&self) -> Option<&'a str> {
        self.raw
    }

    /// What the sender said of itself, as texts that are equal where it said the same.
    pub(crate) fn identity(&self) -> (&'a str, &'a str) {
        let text = |raw: Option<&'a RawValue>| raw.map_or("", RawValue::get);
        (text(self.client_info), text(self.client_capabilities))
    }

    /// What the sender of a modern request said of itself.
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`], where it is not what the protocol has there.
    pub(crate) fn client(&self) -> Result<(Option<Implementation>, ClientCapabilities)> {
        let info = self
            .client_info
            .map(|raw| parse(Meta::CLIENT_INFO, raw))
            .transpose()?;
        let capabilities = self.client_capabilities;
        let capabilities = capabilities.map(|raw| parse(Meta::CLIENT_CAPABILITIES, raw));
        Ok((info, capabilities.transpose()?.unwrap_or_default()))
    }

    fn has_capabilities(&self) -> bool {
        self.client_capabilities
            .is_some_and(|capabilities| capabilities.get().starts_with('{'))
    }

    /// The revision that the request is made in, as it is named.
    pub(crate) fn protocol_version(&self) -> Option<Cow<'a, str>> {
        text(self.protocol_version?)
    }

    /// The token under which the caller wants to hear of progress.
    pub(crate) fn progress_token(&self) -> Option<ProgressToken> {
        typed(self.progress_token)
    }

    /// The least severe level that the caller wants to hear of.
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`] where there is no such level.
    pub(crate) fn log_level(&self) -> Result<Option<LoggingLevel>> {
        let Some(level) = self.log_level else {
            return Ok(None);
        };
        serde_json::from_str(level.get())
            .map(Some)
            .map_err(|error| Error::invalid_params(format!("`{}`: {error}", Meta::LOG_LEVEL)))
    }

    /// The id of the `subscriptions/listen` request that a notification belongs to.
    pub(crate) fn subscription_id(&self) -> Option<RequestId> {
        self.subscription_id.and_then(RequestId::from_raw)
    }

    /// The W3C `traceparent` of the caller.
    pub(crate) fn traceparent(&self) -> Option<Cow<'a, str>> {
        text(self.traceparent?)
    }

    /// The W3C `tracestate` of the caller.
    pub(crate) fn tracestate(&self) -> Option<Cow<'a, str>> {
        text(self.tracestate?)
    }

    /// The W3C `baggage` of the caller.
    pub(crate) fn baggage(&self) -> Option<Cow<'a, str>> {
        text(self.baggage?)
    }
}

/// The error for a request made in a revision that is not served. The newest served revisions come first in its data.
pub(crate) fn unsupported_version(served: &[Revision], requested: &str) -> Error {
    let mut served = served.to_vec();
    served.sort_unstable_by(|a, b| b.cmp(a));
    let supported: Vec<&str> = served.into_iter().map(Revision::as_str).collect();
    let message = format!(
        "unsupported protocol version; served are {}",
        supported.join(", ")
    );
    Error::protocol(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message)
        .with_data(UnsupportedProtocolVersionData::new(supported, requested))
}

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    scan::unescape(raw.get())
}

fn parse<T: DeserializeOwned>(key: &str, raw: &RawValue) -> Result<T> {
    serde_json::from_str(raw.get())
        .map_err(|error| Error::invalid_params(format!("`{key}`: {error}")))
}

fn typed<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    fn era(params: &str, served: &[Revision]) -> Result<Era, (i64, String)> {
        let params = raw(params);
        let classify = || RequestMeta::of(Some(&params))?.classify(served);
        classify().map_err(|error| (error.code().value(), error.message().to_owned()))
    }

    const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{}"#;

    #[test]
    fn a_request_without_a_version_is_legacy() {
        for params in [
            "{}",
            r#"{"_meta":{}}"#,
            r#"{"_meta":null,"a":"_meta"}"#,
            r#"{"_meta":{"progressToken":1}}"#,
        ] {
            assert_eq!(era(params, &Revision::ALL), Ok(Era::Legacy), "{params}");
        }
        assert!(matches!(
            RequestMeta::of(None).unwrap().classify(&[]),
            Ok(Era::Legacy)
        ));
    }

    #[test]
    fn a_request_with_all_keys_is_modern() {
        let params =
            format!(r#"{{"arguments":{{"_meta":1}},"_meta":{{{VERSION},{CAPABILITIES}}}}}"#);
        let modern = Ok(Era::Modern(Revision::V2026_07_28));
        assert_eq!(era(&params, &Revision::ALL), modern);
        let escaped = params.replace(r#","_meta""#, r#","\u005fmeta""#);
        assert_eq!(era(&escaped, &Revision::ALL), modern);
    }

    #[test]
    fn missing_keys_are_named() {
        for (meta, named) in [
            (VERSION.to_owned(), Meta::CLIENT_CAPABILITIES),
            (CAPABILITIES.to_owned(), Meta::PROTOCOL_VERSION),
            (
                format!(r#"{VERSION},{}"#, CAPABILITIES.replace("{}", "[]")),
                Meta::CLIENT_CAPABILITIES,
            ),
            (
                format!(r#"{CAPABILITIES},"{}":7"#, Meta::PROTOCOL_VERSION),
                Meta::PROTOCOL_VERSION,
            ),
        ] {
            let (code, message) =
                era(&format!(r#"{{"_meta":{{{meta}}}}}"#), &Revision::ALL).unwrap_err();
            assert_eq!(code, -32602, "{meta}");
            assert!(message.contains(named), "{meta}: {message}");
        }
    }

    #[test]
    fn other_versions_are_refused_with_those_that_are_served() {
        for (version, served) in [
            ("1900-01-01", &Revision::ALL[..]),
            ("2025-11-25", &Revision::ALL[..]),
            ("2026-07-28", &[Revision::V2024_11_05][..]),
        ] {
            let params = raw(&format!(
                r#"{{"_meta":{{"{}":"{version}"}}}}"#,
                Meta::PROTOCOL_VERSION
            ));
            let error = RequestMeta::of(Some(&params))
                .unwrap()
                .classify(served)
                .unwrap_err();
            assert_eq!(error.code(), ErrorCode::UNSUPPORTED_PROTOCOL_VERSION);
            let data: UnsupportedProtocolVersionData =
                serde_json::from_str(error.data().unwrap().get()).unwrap();
            assert_eq!(data.requested, version);
            assert_eq!(data.supported.len(), served.len());
            assert!(data.supported.is_sorted_by(|a, b| a > b));
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for params in [
            r#"{"_meta":{},"_meta":{}}"#,
            r#"{"_meta":{},"\u005fmeta":{}}"#,
            r#"{"_meta":{"progressToken":1,"progressToken":2}}"#,
            r#"{"_meta":[]}"#,
            r#"{"_meta":"2026-07-28"}"#,
        ] {
            assert_eq!(
                era(params, &Revision::ALL).unwrap_err().0,
                -32602,
                "{params}"
            );
        }
    }

    #[test]
    fn the_other_keys() {
        let params = raw(
            r#"{"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"notice","traceparent":"00-a","io.modelcontextprotocol/subscriptionId":4}}"#,
        );
        let meta = RequestMeta::of(Some(&params)).unwrap();
        assert_eq!(meta.progress_token(), Some("p".into()));
        assert_eq!(meta.log_level().unwrap(), Some(LoggingLevel::Notice));
        assert_eq!(meta.traceparent().as_deref(), Some("00-a"));
        assert_eq!(meta.subscription_id(), Some(4.into()));
        let params = raw(r#"{"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}"#);
        assert!(RequestMeta::of(Some(&params)).unwrap().log_level().is_err());
    }
}
