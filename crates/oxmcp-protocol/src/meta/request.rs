//! Request metadata: the `_meta` and selected members of the params, read without parsing the other members.
//!
//! See [per-request fields](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).

use std::borrow::Cow;

use oxmcp_json::{Checked, Cursor, SyntaxError, Text};
use serde::de::DeserializeOwned;

use crate::{
    jsonrpc::{
        envelope::Params,
        error::{ErrorCode, ErrorObject},
    },
    lenient,
    meta::{object::Meta, progress_token::ProgressToken, trace_context::TraceContext},
    result::tool_index::ResultIndex,
    revision::version::Revision,
    types::{
        capabilities::ClientCapabilities, errors::UnsupportedProtocolVersionData,
        lifecycle::Implementation, logging::LoggingLevel,
    },
};

/// The params of a message, with the members that are needed to serve it. They are found while the message is checked, and are
/// not copied.
#[derive(Clone, Copy, Debug)]
pub struct RequestParams<'a> {
    /// The whole params.
    pub raw: Text<'a>,
    /// The `_meta` of the params.
    pub meta: RequestMeta<'a>,
    /// The `name`, for example of a tool or a prompt.
    pub name: Option<Text<'a>>,
    /// The `arguments` of the call.
    pub arguments: Option<Text<'a>>,
    /// The `inputResponses`, if the request is a retry.
    pub input_responses: Option<Text<'a>>,
    /// The `requestState`, which came with the input requests.
    pub request_state: Option<Text<'a>>,
    /// Whether there is a `cursor`, which names a page in a request for a list.
    pub has_cursor: bool,
    /// The key of a member that occurs twice, and so could be read in two ways.
    twice: Option<Text<'a>>,
    /// The positions of the parts of the result, if the message is a response whose result can be that of a tool.
    pub result_index: Option<ResultIndex>,
}

impl<'a> Params<'a> for RequestParams<'a> {
    const UNREAD: Self = Self::unread();

    fn take(&mut self, cursor: &mut Cursor<'a>) -> Checked<()> {
        let start = cursor.at();
        if !cursor.enter_literal(r#"{"name":"#) {
            self.raw = cursor.members(|key, cursor| self.take_member(key, cursor))?;
            return Ok(());
        }
        // The usual order of members in a call: their names need no decoding.
        self.name = Some(cursor.value()?);
        if cursor.skip_literal(r#","arguments":"#) {
            self.arguments = Some(cursor.value()?);
        }
        cursor.finish_object(|key, cursor| self.take_member(key, cursor))?;
        self.raw = cursor.since(start).map(Text::checked)?;
        Ok(())
    }

    fn raw(&self) -> Text<'a> {
        self.raw
    }

    #[inline]
    fn take_result(&mut self, cursor: &mut Cursor<'a>) -> Checked<Text<'a>> {
        let before = cursor.mark();
        let result_index = self.result_index.insert(ResultIndex::default());
        result_index.find(cursor).or_else(|SyntaxError| {
            // Any other kind of result, or malformed JSON.
            self.result_index = None;
            cursor.go_back(before);
            cursor.value()
        })
    }
}

impl<'a> RequestParams<'a> {
    /// Params that are not read yet. Constructing them is cheaper than copying [`UNREAD`](Params::UNREAD).
    #[inline]
    #[must_use]
    pub const fn unread() -> Self {
        Self {
            raw: Text::EMPTY,
            meta: RequestMeta::unread(),
            name: None,
            arguments: None,
            input_responses: None,
            request_state: None,
            has_cursor: false,
            twice: None,
            result_index: None,
        }
    }

    /// Reads the params from a text.
    #[must_use]
    pub fn of(text: Text<'a>) -> Self {
        let mut params = Self::UNREAD;
        // A `Text` is always valid JSON.
        let _ = params.take(&mut Cursor::new(text.get()));
        params
    }

    /// Reads the member with this key.
    ///
    /// # Errors
    /// If its value is malformed.
    #[inline]
    pub fn take_member(&mut self, key: Text<'a>, cursor: &mut Cursor<'a>) -> Checked<()> {
        let again = match key.as_str().as_deref() {
            Some("_meta") => {
                let again = self.meta.raw.is_some();
                self.meta.take(cursor)?;
                again
            }
            Some("name") => self.name.replace(cursor.value()?).is_some(),
            Some("arguments") => self.arguments.replace(cursor.value()?).is_some(),
            Some("inputResponses") => self.input_responses.replace(cursor.value()?).is_some(),
            Some("requestState") => self.request_state.replace(cursor.value()?).is_some(),
            other => {
                self.has_cursor |= other == Some("cursor");
                return cursor.value().map(drop);
            }
        };
        if again {
            self.twice = Some(key);
        }
        Ok(())
    }

    /// Returns the first member of this name, for members that only one reader looks at; for others there is
    /// [`only_member`](Self::only_member).
    #[must_use]
    pub fn first_member(&self, name: &str) -> Option<Text<'a>> {
        let mut members = self.raw.members();
        let (_, value) = members.find(|(key, _)| key.is_str(name))?;
        Some(value)
    }

    /// Returns the member of this name, if it is the only one. It is meant for the receiver of the params, because
    /// intermediaries may have read another one of several. Duplicates of `name` are rejected by [`check`](Self::check), which
    /// comes first.
    #[must_use]
    pub fn only_member(&self, name: &str) -> Option<Text<'a>> {
        if name == "name" {
            return self.name;
        }
        let mut members = self.raw.members().filter(|(key, _)| key.is_str(name));
        let (_, value) = members.next()?;
        members.next().is_none().then_some(value)
    }

    /// Rejects params that can be read in more than one way.
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`], if `_meta` is neither an object nor null, or a member whose value is kept here occurs twice.
    pub fn check(&self) -> Result<(), ErrorObject> {
        if let Some(twice) = self.twice.or(self.meta.twice) {
            let message = format!("duplicate key {}", twice.get());
            return Err(ErrorObject::invalid_params(message));
        }
        match self.meta.raw {
            // An empty array is an empty object of PHP or Lua.
            Some(raw) if !raw.is_object() && !raw.is_null() && !is_empty_array(raw) => {
                Err(ErrorObject::invalid_params("`_meta` must be an object"))
            }
            _ => Ok(()),
        }
    }
}

impl Default for RequestParams<'_> {
    fn default() -> Self {
        Self::UNREAD
    }
}

/// The keys of a request's `_meta` that the protocol defines, each as raw JSON.
#[derive(Clone, Copy, Debug)]
pub struct RequestMeta<'a> {
    /// The whole `_meta`.
    raw: Option<Text<'a>>,
    protocol_version: Option<Text<'a>>,
    client_info: Option<Text<'a>>,
    client_capabilities: Option<Text<'a>>,
    log_level: Option<Text<'a>>,
    progress_token: Option<Text<'a>>,
    traceparent: Option<Text<'a>>,
    twice: Option<Text<'a>>,
}

/// The rules by which a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "only the SDK may use it")]
pub enum Era {
    /// The rules of the session: the request has no keys of a modern request.
    Legacy,
    /// The rules of this revision, without a session.
    Modern(Revision),
}

impl<'a> RequestMeta<'a> {
    /// Metadata that is not read yet.
    pub const UNREAD: Self = Self::unread();

    #[inline]
    const fn unread() -> Self {
        Self {
            raw: None,
            protocol_version: None,
            client_info: None,
            client_capabilities: None,
            log_level: None,
            progress_token: None,
            traceparent: None,
            twice: None,
        }
    }

    /// Reads the metadata at the cursor.
    fn take(&mut self, cursor: &mut Cursor<'a>) -> Checked<()> {
        let whole = cursor.members(|key, cursor| {
            let slot = match key.as_str().as_deref() {
                Some(Meta::PROTOCOL_VERSION) => &mut self.protocol_version,
                Some(Meta::CLIENT_INFO) => &mut self.client_info,
                Some(Meta::CLIENT_CAPABILITIES) => &mut self.client_capabilities,
                Some(Meta::LOG_LEVEL) => &mut self.log_level,
                Some(Meta::PROGRESS_TOKEN) => &mut self.progress_token,
                Some(Meta::TRACEPARENT) => &mut self.traceparent,
                _ => return cursor.value().map(drop),
            };
            if slot.replace(cursor.value()?).is_some() {
                self.twice = Some(key);
            }
            Ok(())
        })?;
        self.raw = Some(whole);
        Ok(())
    }

    /// Determines the rules by which the request is served. `served` are the revisions that this side supports.
    ///
    /// # Errors
    /// [`ErrorCode::UNSUPPORTED_PROTOCOL_VERSION`] if the request is made in another revision; [`ErrorCode::INVALID_PARAMS`] if it
    /// is modern and lacks a required key.
    pub fn classify(&self, served: &[Revision]) -> Result<Era, ErrorObject> {
        let Some(version) = self.protocol_version else {
            return if self.client_info.is_some() || self.client_capabilities.is_some() {
                Err(ErrorObject::invalid_params(self.what_is_missing()))
            } else {
                Ok(Era::Legacy)
            };
        };
        let Some(version) = version.as_str() else {
            return Err(ErrorObject::invalid_params(self.what_is_missing()));
        };
        let revision = version
            .parse()
            .ok()
            .filter(|revision: &Revision| revision.is_modern() && served.contains(revision));
        let Some(revision) = revision else {
            return Err(unsupported_version(served, &version));
        };
        if !self.has_capabilities() {
            return Err(ErrorObject::invalid_params(self.what_is_missing()));
        }
        Ok(Era::Modern(revision))
    }

    /// Returns the revision that the request names, served or not.
    #[must_use]
    pub fn version(&self) -> Option<Cow<'a, str>> {
        self.protocol_version?.as_str()
    }

    /// Returns whether the request has a key that only modern requests have.
    pub fn claims_modern(&self) -> bool {
        let keys = [
            self.protocol_version,
            self.client_info,
            self.client_capabilities,
        ];
        keys.iter().any(Option::is_some)
    }

    /// Names the keys that a modern request must have and this one lacks, for an error message. For callers that know from
    /// another source (an HTTP header) that the request is modern.
    pub fn what_is_missing(&self) -> String {
        let version = self.protocol_version.and_then(Text::as_str).is_none();
        let version = version.then(|| format!("`{}` (a string)", Meta::PROTOCOL_VERSION));
        let capabilities = !self.has_capabilities();
        let capabilities =
            capabilities.then(|| format!("`{}` (an object)", Meta::CLIENT_CAPABILITIES));
        let missing: Vec<String> = version.into_iter().chain(capabilities).collect();
        format!(
            "requests of revision {} require these keys in `_meta`: {}",
            Revision::LATEST,
            missing.join(" and ")
        )
    }

    /// Returns the `_meta` as received. `None` if there is none.
    pub fn raw(&self) -> Option<&'a str> {
        self.raw.map(Text::get)
    }

    /// Returns the client info and the client capabilities as raw texts, empty if they are absent. Equal texts mean equal
    /// metadata.
    #[must_use]
    pub fn identity(&self) -> (&'a str, &'a str) {
        let text = |text: Option<Text<'a>>| text.map_or("", Text::get);
        (text(self.client_info), text(self.client_capabilities))
    }

    /// Returns the implementation and the capabilities of the client that sent a modern request.
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`], if one of them does not have the form that the protocol defines.
    pub fn client(&self) -> Result<(Option<Implementation>, ClientCapabilities), ErrorObject> {
        let info = self.client_info.filter(|info| !info.is_null());
        let info = info.map(|raw| parse(Meta::CLIENT_INFO, raw)).transpose()?;
        let capabilities = self.client_capabilities;
        let capabilities = capabilities.map(|raw| parse(Meta::CLIENT_CAPABILITIES, raw));
        Ok((info, capabilities.transpose()?.unwrap_or_default()))
    }

    fn has_capabilities(&self) -> bool {
        self.client_capabilities.is_some_and(Text::is_object)
    }

    /// Returns the token under which the caller wants to receive progress notifications.
    #[must_use]
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.progress_token?.parse().ok()
    }

    /// Returns whether the caller sends a `traceparent`.
    #[must_use]
    pub fn has_traceparent(&self) -> bool {
        self.traceparent.is_some()
    }

    /// Returns the trace context of the caller, with the valid fields that are present.
    #[must_use]
    pub fn trace_context(&self) -> TraceContext {
        TraceContext::read(|name| match name {
            Meta::TRACEPARENT => self.traceparent?.as_str(),
            _ => {
                let mut members = self.raw?.members();
                let (_, value) = members.find(|(key, _)| key.is_str(name))?;
                value.as_str()
            }
        })
    }

    /// Returns the least severe level that the caller wants to receive.
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`] if the level is unknown.
    pub fn log_level(&self) -> Result<Option<LoggingLevel>, ErrorObject> {
        let level = self.log_level.filter(|level| !level.is_null());
        level.map(|level| parse(Meta::LOG_LEVEL, level)).transpose()
    }
}

/// Returns the error for a request in a revision that is not served. Its data lists the newest served revisions first.
pub fn unsupported_version(served: &[Revision], requested: &str) -> ErrorObject {
    let mut served = served.to_vec();
    served.sort_unstable_by(|a, b| b.cmp(a));
    let supported: Vec<&str> = served.into_iter().map(Revision::as_str).collect();
    let message = format!(
        "unsupported protocol version; expected one of {}",
        supported.join(", ")
    );
    ErrorObject::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message)
        .with_data(UnsupportedProtocolVersionData::new(supported, requested))
}

fn is_empty_array(text: Text<'_>) -> bool {
    text.get().starts_with('[') && text.items().next().is_none()
}

fn parse<T: DeserializeOwned>(key: &str, text: Text<'_>) -> Result<T, ErrorObject> {
    let strict = text.parse();
    strict
        .or_else(|error| {
            lenient::read(text.get())
                .map(|it| it.value)
                .map_err(|_| error)
        })
        .map_err(|error| ErrorObject::invalid_params(format!("`{key}`: {error}")))
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample};

    use super::*;
    use crate::jsonrpc::envelope::Envelope;

    fn meta(params: &str) -> Result<RequestMeta<'_>, ErrorObject> {
        let params = RequestParams::of(Text::checked(params));
        params.check().map(|()| params.meta)
    }

    fn era(params: &str, served: &[Revision]) -> Result<Era, (i64, String)> {
        let classify = || meta(params)?.classify(served);
        classify().map_err(|error| (error.code.value(), error.message))
    }

    const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{}"#;

    #[test]
    fn request_without_a_version_is_legacy() {
        for params in [
            "{}",
            r#"{"_meta":{}}"#,
            r#"{"_meta":null,"a":"_meta"}"#,
            r#"{"_meta":{"progressToken":1}}"#,
        ] {
            assert_eq!(era(params, &Revision::ALL), Ok(Era::Legacy), "{params}");
        }
        assert!(matches!(RequestMeta::UNREAD.classify(&[]), Ok(Era::Legacy)));
    }

    #[test]
    fn request_with_all_keys_is_modern() {
        let params =
            format!(r#"{{"arguments":{{"_meta":1}},"_meta":{{{VERSION},{CAPABILITIES}}}}}"#);
        let modern = Ok(Era::Modern(Revision::V2026_07_28));
        assert_eq!(era(&params, &Revision::ALL), modern);
        let escaped = params.replace(r#","_meta""#, r#","\u005fmeta""#);
        assert_eq!(era(&escaped, &Revision::ALL), modern);
    }

    #[test]
    fn duplicate_member_is_refused_by_receiver() {
        let params = RequestParams::of(Text::checked(r#"{"uri":"a","name":"b","x":1,"uri":"c"}"#));
        let first = |name| params.first_member(name).map(Text::get);
        let only = |name| params.only_member(name).map(Text::get);
        assert_eq!((first("uri"), only("uri")), (Some(r#""a""#), None));
        for (name, value) in [("name", Some(r#""b""#)), ("x", Some("1")), ("y", None)] {
            assert_eq!((first(name), only(name)), (value, value), "{name}");
        }
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
    fn unsupported_version_is_refused_with_supported_ones() {
        for (version, served) in [
            ("1900-01-01", &Revision::ALL[..]),
            ("2025-11-25", &Revision::ALL[..]),
            ("2026-07-28", &[Revision::V2024_11_05][..]),
        ] {
            let params = format!(
                r#"{{"_meta":{{"{}":"{version}"}}}}"#,
                Meta::PROTOCOL_VERSION
            );
            let error = meta(&params).unwrap().classify(served).unwrap_err();
            assert_eq!(error.code, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION);
            let data: UnsupportedProtocolVersionData =
                serde_json::from_str(error.data.unwrap().get()).unwrap();
            assert_eq!(data.requested, version);
            assert_eq!(data.supported.len(), served.len());
            assert!(data.supported.is_sorted_by(|a, b| a > b));
        }
    }

    #[test]
    fn ambiguous_metadata_is_refused() {
        for params in [
            r#"{"_meta":{},"_meta":{}}"#,
            r#"{"_meta":{},"\u005fmeta":{}}"#,
            r#"{"_meta":{"progressToken":1,"progressToken":2}}"#,
            r#"{"_meta":["2026-07-28"]}"#,
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
    fn other_meta_keys_are_read() {
        let meta_of = meta;
        let meta = meta_of(r#"{"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"notice","traceparent":"00-a","io.modelcontextprotocol/subscriptionId":4}}"#).unwrap();
        assert_eq!(meta.progress_token(), Some("p".into()));
        assert_eq!(meta.log_level().unwrap(), Some(LoggingLevel::Notice));
        let loud = meta_of(r#"{"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}"#);
        assert!(loud.unwrap().log_level().is_err());
    }

    /// Describes a parsed message, or the error.
    fn said(message: &str) -> String {
        let mut params = RequestParams::UNREAD;
        match Envelope::parse(message.as_bytes(), &mut params) {
            Ok(Envelope::Request(request)) => {
                let params = request.params;
                let params = params.map(|it| (it.name, it.arguments, it.meta.raw, it.twice));
                format!("{} {} {params:?}", request.id, request.method)
            }
            Ok(Envelope::Response(response)) => {
                let is_plain = response.found.result_index.is_some();
                format!("{:?} {:?} {is_plain}", response.id, response.outcome)
            }
            other => format!("{other:?}"),
        }
    }

    /// The tokens of an object: some of the usual members in their order, followed by others.
    fn tokens(
        usual: &'static [&'static [&'static str]],
        others: &'static [&'static [&'static str]],
    ) -> impl Strategy<Value = Vec<&'static str>> {
        let usual = sample::subsequence(usual, 0..=usual.len());
        let others = collection::vec(sample::select(others), 0..2);
        (usual, others).prop_map(|(mut members, others)| {
            members.extend(others);
            let mut tokens = vec!["{"];
            for (index, member) in members.iter().enumerate() {
                tokens.extend((index > 0).then_some(","));
                tokens.extend(*member);
            }
            tokens.push("}");
            tokens
        })
    }

    /// The tokens of a message.
    fn message() -> impl Strategy<Value = Vec<&'static str>> {
        let params = tokens(
            &[
                &["\"name\"", ":", "\"add\""],
                &["\"arguments\"", ":", "{", "\"a\"", ":", "1", "}"],
                &["\"_meta\"", ":", "{", "\"progressToken\"", ":", "1", "}"],
            ],
            &[
                &["\"name\"", ":", "7"],
                &["\"arguments\"", ":", "null"],
                &["\"more\"", ":", "[", "]"],
            ],
        );
        let envelope = tokens(
            &[
                &["\"jsonrpc\"", ":", "\"2.0\""],
                &["\"id\"", ":", "7"],
                &["\"method\"", ":", "\"tools/call\""],
                &["\"params\"", ":", "the params"],
            ],
            &[
                &["\"jsonrpc\"", ":", "2.0"],
                &["\"\\u0069d\"", ":", "null"],
                &["\"params\"", ":", "the params"],
                &["\"result\"", ":", "the params"],
                &["\"more\"", ":", "\"\""],
            ],
        );
        (envelope, params).prop_map(|(envelope, params)| {
            let within = |token| match token {
                "the params" => params.clone(),
                token => vec![token],
            };
            envelope.into_iter().flat_map(within).collect()
        })
    }

    proptest! {
        #[test]
        fn whitespace_changes_nothing(
            tokens in message(),
            spaces in collection::vec(sample::select(vec!["", "", "", " ", "\r\n\t"]), 1..40),
        ) {
            let spaced: String = tokens.iter().zip(spaces.iter().cycle()).flat_map(|(token, space)| [*token, *space]).collect();
            // White space between all tokens, so that no fast path applies.
            let expected = tokens.join(" ");
            let said = |message: &str| said(message).replace(char::is_whitespace, "");
            prop_assert_eq!(said(&spaced).replace(r"\r\n\t", ""), said(&expected), "{}", spaced);
        }
    }

    #[test]
    fn duplicate_of_any_member_read_is_refused() {
        let keys = [
            "_meta",
            "name",
            "arguments",
            "inputResponses",
            "requestState",
        ];
        for key in keys {
            for times in 1..=3 {
                let members = vec![format!(r#""{key}":{{}}"#); times].join(",");
                let params = format!("{{{members}}}");
                let checked = RequestParams::of(Text::checked(&params)).check();
                assert_eq!(checked.is_ok(), times == 1, "{params}");
            }
        }
        // Duplicates of members that are not kept here are left to the code that reads them.
        let others = r#"{"cursor":"a","cursor":"b"}"#;
        assert!(RequestParams::of(Text::checked(others)).check().is_ok());
    }

    #[test]
    fn invalid_traceparent_is_ignored() {
        let meta = |parent: &str| format!(r#"{{"_meta":{{"traceparent":"{parent}"}}}}"#);
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let span = "00f067aa0ba902b7";
        for (parent, is_one) in [
            (format!("00-{trace}-{span}-01"), true),
            (format!("cc-{trace}-{span}-01-more"), true),
            (format!("00-{trace}-{span}-01-more"), false),
            (format!("ff-{trace}-{span}-01"), false),
            (format!("00-{}-{span}-01", "0".repeat(32)), false),
            (format!("00-{trace}-{}-01", "0".repeat(16)), false),
            (format!("00-{}-{span}-01", trace.to_uppercase()), false),
            (format!("00-{trace}-{span}-1"), false),
            (format!("00-{trace}-{span}"), false),
            (String::new(), false),
        ] {
            let text = meta(&parent);
            let params = RequestParams::of(Text::checked(&text));
            let context = params.meta.trace_context();
            assert_eq!(context.traceparent().is_some(), is_one, "{parent}");
        }
    }

    #[test]
    fn fast_path_reads_the_same_as_the_parser() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deep = |arguments: &str| format!(r#"{{"name":"add","arguments":{arguments}}}"#);
        let params = [
            r#"{"name":"add","arguments":{"a":1}}"#.to_owned(),
            r#"{"name":"add","arguments":{"a":1},"_meta":{"progressToken":1}}"#.to_owned(),
            r#"{"name":"add","arguments":{},"name":"twice"}"#.to_owned(),
            r#"{"name":"add","arguments":{},"arguments":{}}"#.to_owned(),
            r#"{"name":7}"#.to_owned(),
            r#"{"name":"add","more":[]}"#.to_owned(),
            r#"{"name":"add",}"#.to_owned(),
            deep(&nested(126)),
            deep(&nested(127)),
        ];
        for params in &params {
            let rest = format!(r#""id":7,"method":"tools/call","params":{params}"#);
            let usual = said(&format!(r#"{{"jsonrpc":"2.0",{rest}}}"#));
            let spaced = said(&format!(r#"{{ "jsonrpc" : "2.0" , {rest}}}"#));
            let other = said(&format!(r#"{{{rest},"jsonrpc":"2.0"}}"#));
            let strange = rest.replacen(r#""name":"#, r#""name" :"#, 1);
            let strange = said(&format!(r#"{{"jsonrpc":"2.0",{strange}}}"#));
            for other in [&spaced, &other, &strange] {
                let is_error = usual.starts_with("Err");
                assert!(
                    is_error && other.starts_with("Err") || *other == usual,
                    "{usual}\n{other}"
                );
            }
        }
        // Many senders write a space after each colon and comma, and nowhere else.
        let spaced = r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add", "arguments": {}}}"#;
        assert!(said(spaced).starts_with("7 tools/call"));
        assert!(said(r#"{"jsonrpc":"2.0","id": 7,"method":"x"}"#).starts_with("7 x"));
        assert!(said(r#"{"jsonrpc":"2\u002e0","id":7,"method":"x"}"#).starts_with("7 x"));
        assert!(said(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"x"}"#).contains("duplicate"));
        assert!(said(r#"{"jsonrpc":"2.0","id":7,"result":{},"result":{}}"#).contains("duplicate"));
        let error = r#""error":{"code":1,"message":"a"}"#;
        let errors = format!(r#"{{"jsonrpc":"2.0","id":7,{error},{error}}}"#);
        assert!(said(&errors).contains("duplicate"));
        assert!(said(r#"{"jsonrpc":"2.0","id":7,"method":"x"} "#).starts_with("7 x"));
        assert!(said(r#"{"jsonrpc":"2.0"}"#).contains("missing"));
        assert!(said(r#"{"jsonrpc":"2.0","id":7"#).starts_with("Err"));
    }
}
