//! Envelope of a message: its members, read in one pass and without copying, and the request, notification or response
//! that they form.

use std::{borrow::Cow, fmt, mem, str};

use oxmcp_json::{Checked, Cursor, Text};
use serde::de::IgnoredAny;

use crate::jsonrpc::{
    answered_ids::{answered_by, start},
    error::{ErrorCode, ErrorObject},
    id::RequestId,
};

/// The beginning of nearly all messages.
const USUAL_BEGINNING: &str = r#"{"jsonrpc":"2.0""#;

/// Params of a message, which may be parsed in part while the message is checked.
pub trait Params<'a> {
    /// Params that were not read yet.
    const UNREAD: Self;

    /// Takes the params at the cursor.
    ///
    /// # Errors
    /// If the text is not valid JSON, or the params make the message invalid.
    fn take(&mut self, cursor: &mut Cursor<'a>) -> Checked<()>;

    /// The text of the params as a whole.
    fn raw(&self) -> Text<'a>;

    /// Takes the result at the cursor, if the message is a response.
    ///
    /// # Errors
    /// If the text is not valid JSON, or the result makes the message invalid.
    fn take_result(&mut self, cursor: &mut Cursor<'a>) -> Checked<Text<'a>> {
        cursor.value()
    }
}

/// The params as a whole.
impl<'a> Params<'a> for Text<'a> {
    const UNREAD: Self = Self::EMPTY;

    fn take(&mut self, cursor: &mut Cursor<'a>) -> Checked<()> {
        *self = cursor.value()?;
        Ok(())
    }

    fn raw(&self) -> Self {
        *self
    }
}

/// One message, with borrowed contents. The params, too, are borrowed from the variable into which they were read:
/// their parsed form can be large, so it is not moved.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "only the SDK may use it")]
pub enum Envelope<'a, P = Text<'a>> {
    /// A request.
    Request(RawRequest<'a, P>),
    /// A notification.
    Notification(RawNotification<'a, P>),
    /// A response.
    Response(RawResponse<'a, P>),
}

/// A request, with its params as they were read.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct RawRequest<'a, P = Text<'a>> {
    /// The id for the response.
    pub id: RequestId,
    /// The name of the method.
    pub method: Cow<'a, str>,
    /// The params, which are an object. `None` if the request has none.
    pub params: Option<&'a P>,
}

/// A notification, with its params as they were read.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct RawNotification<'a, P = Text<'a>> {
    /// The name of the method.
    pub method: Cow<'a, str>,
    /// The params, which are an object. `None` if the notification has none.
    pub params: Option<&'a P>,
}

impl<'a, P: Params<'a>> RawNotification<'_, P> {
    /// Returns the approximate number of bytes that the notification holds from the peer: its method and its params.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.method.len() + self.params.map_or(0, |params| params.raw().get().len())
    }
}

/// A response, with its result as raw JSON.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct RawResponse<'a, P> {
    /// The id of the request. `None` if the peer could not read that id.
    pub id: Option<RequestId>,
    /// The result or the error.
    pub outcome: Result<Text<'a>, ErrorObject>,
    /// The parts of the result that were found while the message was checked.
    pub found: &'a P,
}

/// The reason why a message cannot be served, with the ID for the error response, if one could be read.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct Malformed {
    /// The id for the error response.
    pub id: Option<RequestId>,
    /// If the message was meant as a response: the id of the answered request, which the receiver itself has chosen.
    pub answers: Option<RequestId>,
    /// Whether the message was meant as a request or a notification, and as nothing else.
    pub is_asked: bool,
    /// The error to respond with.
    pub error: ErrorObject,
}

impl Malformed {
    fn parse(message: impl fmt::Display) -> Self {
        let error = ErrorObject::new(ErrorCode::PARSE_ERROR, format!("not JSON: {message}"));
        Self {
            id: None,
            answers: None,
            is_asked: false,
            error,
        }
    }

    pub(crate) fn invalid(id: Option<RequestId>, message: impl Into<String>) -> Self {
        let error = ErrorObject::new(ErrorCode::INVALID_REQUEST, message);
        Self {
            id,
            answers: None,
            is_asked: false,
            error,
        }
    }

    /// The error for a text that is not valid JSON, or not an object.
    #[cold]
    fn syntax(text: &str) -> Self {
        let malformed = match serde_json::from_str::<IgnoredAny>(text) {
            Err(error) => Self::parse(error),
            Ok(_) if !text.trim_start().starts_with('{') => {
                return Self::invalid(None, "a JSON-RPC message must be an object");
            }
            Ok(_) => Self::parse("nested too deeply"),
        };
        malformed.of(text)
    }

    #[cold]
    fn twice(key: Text<'_>, text: &str) -> Self {
        Self::invalid(None, format!("duplicate key {}", key.get())).of(text)
    }

    /// Adds the id of the request that the text seems to answer, so that the pending call can fail.
    fn of(mut self, text: &str) -> Self {
        self.answers = answered_by(text);
        self
    }
}

impl<'p, P> Envelope<'p, P> {
    /// Reads one message, and its params into `params`. Keys are matched exactly, and a key that the envelope defines
    /// may occur only once: messages that two parsers could read differently are refused.
    ///
    /// # Errors
    /// If the bytes are not JSON, or not a JSON-RPC message.
    pub fn parse<'a: 'p>(bytes: &'a [u8], params: &'p mut P) -> Result<Self, Malformed>
    where
        P: Params<'a>,
    {
        let text = str::from_utf8(bytes);
        let text = text.map_err(|error| Malformed::parse(error).of(start(bytes)))?;
        Self::parse_str(text, params)
    }

    /// Reads one message of a batch, or one that is known to be UTF-8.
    ///
    /// # Errors
    /// If the text is not JSON, or not a JSON-RPC message.
    pub fn parse_str<'a: 'p>(text: &'a str, params: &'p mut P) -> Result<Self, Malformed>
    where
        P: Params<'a>,
    {
        let mut cursor = Cursor::new(text);
        let is_usual = cursor.enter_literal(USUAL_BEGINNING);
        let mut members = Members::new(is_usual);
        let checked = if is_usual {
            members.take_usual(&mut cursor, params).and_then(|()| {
                let take = |key, cursor: &mut Cursor<'a>| members.take(key, cursor, params);
                cursor.rest(take).map(|()| true)
            })
        } else {
            cursor.read_object(|key, cursor| members.take(key, cursor, params))
        };
        match checked {
            Ok(true) => match members.twice() {
                Some(key) => Err(Malformed::twice(key, text)),
                None => members.classify(params),
            },
            _ => Err(Malformed::syntax(text)),
        }
    }
}

/// The only version of JSON-RPC.
const VERSION: &str = "2.0";

/// The value of the member `id`.
#[derive(Clone, Copy)]
enum Id<'a> {
    Number(i64),
    /// The text of any other value.
    Any(Text<'a>),
}

impl Id<'_> {
    fn read(self) -> Option<RequestId> {
        match self {
            Self::Number(number) => Some(RequestId::Number(number)),
            Self::Any(text) => RequestId::from_text(text),
        }
    }

    fn is_null(self) -> bool {
        matches!(self, Self::Any(text) if text.is_null())
    }
}

/// The members of a message, as raw text.
pub(crate) struct Members<'a> {
    /// Whether `jsonrpc` is the known version. `None` if the member is absent.
    has_version: Option<bool>,
    id: Option<Id<'a>>,
    method: Option<Text<'a>>,
    has_params: bool,
    result: Option<Text<'a>>,
    error: Option<Text<'a>>,
    /// The key of a member that occurs twice.
    twice: Option<Text<'a>>,
}

impl<'a> Members<'a> {
    /// The members of a message that was not read yet, or only through its version.
    #[inline]
    fn new(has_version: bool) -> Self {
        Self {
            has_version: has_version.then_some(true),
            id: None,
            method: None,
            has_params: false,
            result: None,
            error: None,
            twice: None,
        }
    }

    /// The key of a member that occurs twice.
    fn twice(&self) -> Option<Text<'a>> {
        self.twice
    }

    /// Takes the members after the version if they come in the usual order, without parsing their names.
    #[inline]
    fn take_usual(&mut self, cursor: &mut Cursor<'a>, params: &mut impl Params<'a>) -> Checked<()> {
        if !cursor.skip_literal(r#","id":"#) {
            return Ok(());
        }
        self.id = Some(Self::take_id(cursor)?);
        if cursor.skip_literal(r#","method":"#) {
            self.method = Some(cursor.value()?);
            if cursor.skip_literal(r#","params":"#) {
                self.has_params = true;
                params.take(cursor)?;
            }
        } else if cursor.skip_literal(r#","result":"#) {
            self.result = Some(params.take_result(cursor)?);
        }
        Ok(())
    }

    #[inline]
    fn take_id(cursor: &mut Cursor<'a>) -> Checked<Id<'a>> {
        match cursor.short_integer() {
            Some(number) => Ok(Id::Number(number)),
            None => cursor.value().map(Id::Any),
        }
    }

    /// Takes a member. Names are case-sensitive: `"Method"` is not `"method"`.
    fn take(
        &mut self,
        key: Text<'a>,
        cursor: &mut Cursor<'a>,
        params: &mut impl Params<'a>,
    ) -> Checked<()> {
        let again = match key.as_str().as_deref() {
            Some("jsonrpc") => {
                let is_known = cursor.value()?.is_str(VERSION);
                self.has_version.replace(is_known).is_some()
            }
            Some("id") => self.id.replace(Self::take_id(cursor)?).is_some(),
            Some("method") => self.method.replace(cursor.value()?).is_some(),
            Some("error") => self.error.replace(cursor.value()?).is_some(),
            Some("result") => self.result.replace(params.take_result(cursor)?).is_some(),
            Some("params") => {
                params.take(cursor)?;
                mem::replace(&mut self.has_params, true)
            }
            _ => return cursor.value().map(drop),
        };
        if again {
            self.twice = Some(key);
        }
        Ok(())
    }

    /// Determines the kind of the message once all of its members were read.
    fn classify<'p, P: Params<'a>>(&self, params: &'p P) -> Result<Envelope<'p, P>, Malformed>
    where
        'a: 'p,
    {
        let id = self.id.and_then(Id::read);
        if self.has_version != Some(true) {
            return Err(self.refuse(id, "\"jsonrpc\" must be \"2.0\""));
        }
        let null_id = self.id.is_some_and(Id::is_null);
        if self.id.is_some() && id.is_none() && !(null_id && self.error.is_some()) {
            return Err(self.refuse(id, "\"id\" must be a string or an integer"));
        }
        let Some(method) = self.method else {
            return self.response(id, params);
        };
        if self.is_answer() {
            return Err(self.refuse(id, "a message must be a request or a response, not both"));
        }
        let Some(method) = method.as_str() else {
            return Err(self.refuse(id, "\"method\" must be a string"));
        };
        let params = Some(params).filter(|it| self.has_params && !it.raw().is_null());
        if params.is_some_and(|params| !params.raw().is_object()) {
            return Err(self.refuse(id, "\"params\" must be an object"));
        }
        Ok(match id {
            Some(id) => Envelope::Request(RawRequest { id, method, params }),
            None => Envelope::Notification(RawNotification { method, params }),
        })
    }

    /// Reads the message as a response, or refuses it.
    fn response<'p, P>(
        &self,
        id: Option<RequestId>,
        found: &'p P,
    ) -> Result<Envelope<'p, P>, Malformed>
    where
        'a: 'p,
    {
        let outcome = match (self.result, self.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => match ErrorObject::read(error) {
                Ok(error) => Err(error),
                Err(_) => {
                    return Err(self.refuse(id, "\"error\" must have a code and a message"));
                }
            },
            (None, None) => {
                return Err(self.refuse(id, "missing \"method\", \"result\" or \"error\""));
            }
            (Some(_), Some(_)) => {
                return Err(self.refuse(id, "a response must have a result or an error, not both"));
            }
        };
        if id.is_none() && outcome.is_ok() {
            let message = "missing \"id\" in a response";
            return Err(self.refuse(id, message));
        }
        Ok(Envelope::Response(RawResponse { id, outcome, found }))
    }

    fn is_answer(&self) -> bool {
        self.result.is_some() || self.error.is_some()
    }

    #[cold]
    fn refuse(&self, id: Option<RequestId>, message: &str) -> Malformed {
        let mut malformed = Malformed::invalid(id, message);
        malformed.is_asked = self.method.is_some() && !self.is_answer();
        if self.is_answer() {
            malformed.answers.clone_from(&malformed.id);
            malformed.id = malformed.id.filter(|_| self.method.is_some());
        }
        malformed
    }
}
