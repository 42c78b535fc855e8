//! Reading the envelope of a message, in one pass and without copying what it holds.

use std::{borrow::Cow, fmt, str};

use serde::de::IgnoredAny;

use super::{
    ErrorCode, ErrorObject, RequestId,
    answered::{answered_by, start},
};
use crate::json::{Checked, Cursor, Text};

/// The only version of JSON-RPC.
const VERSION: &str = "2.0";
/// The same as it stands in nearly all messages.
const USUAL_VERSION: &str = r#""2.0""#;
/// How nearly all messages begin.
const USUAL_BEGINNING: &str = r#"{"jsonrpc":"2.0""#;

/// The params of a message, as far as somebody looks into them while the message is checked.
pub(crate) trait Params<'a> {
    /// Nothing is known of them yet.
    const UNREAD: Self;

    /// Takes the value that stands here.
    fn take(&mut self, cursor: &mut Cursor<'a>) -> Checked<()>;

    /// All of it.
    fn whole(&self) -> Text<'a>;

    /// Takes the result that stands here, where the message is a response.
    fn take_result(&mut self, cursor: &mut Cursor<'a>) -> Checked<Text<'a>> {
        cursor.value()
    }
}

/// Nobody looks.
impl<'a> Params<'a> for Text<'a> {
    const UNREAD: Self = Self::EMPTY;

    fn take(&mut self, cursor: &mut Cursor<'a>) -> Checked<()> {
        *self = cursor.value()?;
        Ok(())
    }

    fn whole(&self) -> Self {
        *self
    }
}

/// One message, with borrowed contents. The params, too, are borrowed, from where they were read to: whoever looks into
/// them finds much, which is better not moved about.
#[derive(Debug)]
pub(crate) enum Envelope<'a, P = Text<'a>> {
    Request(RawRequest<'a, P>),
    Notification(RawNotification<'a, P>),
    Response(RawResponse<'a, P>),
}

/// A request whose params nobody has looked at.
#[derive(Debug)]
pub(crate) struct RawRequest<'a, P = Text<'a>> {
    pub(crate) id: RequestId,
    pub(crate) method: Cow<'a, str>,
    /// An object, where there are any.
    pub(crate) params: Option<&'a P>,
}

/// A notification whose params nobody has looked at.
#[derive(Debug)]
pub(crate) struct RawNotification<'a, P = Text<'a>> {
    pub(crate) method: Cow<'a, str>,
    /// An object, where there are any.
    pub(crate) params: Option<&'a P>,
}

impl<'a, P: Params<'a>> RawNotification<'_, P> {
    /// How many bytes of the peer it keeps, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.method.len() + self.params.map_or(0, |params| params.whole().get().len())
    }
}

/// A response whose result nobody has looked at.
#[derive(Debug)]
pub(crate) struct RawResponse<'a, P> {
    /// `None` where the peer could not read the id of what it answers.
    pub(crate) id: Option<RequestId>,
    pub(crate) outcome: Result<Text<'a>, ErrorObject>,
    /// What was found in the result.
    pub(crate) found: &'a P,
}

/// Why a message cannot be served, and the id to say so to, where one could be read.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) id: Option<RequestId>,
    /// Where it was meant as a response: the id of what it answers, which is one of the receiver's own.
    pub(crate) answers: Option<RequestId>,
    /// Whether it was meant as a request or a notification, and as nothing else.
    pub(crate) is_asked: bool,
    pub(crate) error: ErrorObject,
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

    fn invalid(id: Option<RequestId>, message: impl Into<String>) -> Self {
        let error = ErrorObject::new(ErrorCode::INVALID_REQUEST, message);
        Self {
            id,
            answers: None,
            is_asked: false,
            error,
        }
    }

    /// What is wrong with a text that is no JSON.
    #[cold]
    fn syntax(text: &str) -> Self {
        let malformed = match serde_json::from_str::<IgnoredAny>(text) {
            Err(error) => Self::parse(error),
            Ok(_) => Self::parse("it is nested too deeply"),
        };
        malformed.of(text)
    }

    #[cold]
    fn twice(key: Text<'_>, text: &str) -> Self {
        Self::invalid(None, format!("{} stands there twice", key.get())).of(text)
    }

    /// The same, with what the text seems to answer: whoever waits for it would wait in vain.
    fn of(mut self, text: &str) -> Self {
        self.answers = answered_by(text);
        self
    }
}

impl<'p, P> Envelope<'p, P> {
    /// Reads one message, and its params into `params`. Keys are matched exactly, and a key that the envelope gives a
    /// meaning may stand only once: what two parsers could read differently is refused.
    pub(crate) fn parse<'a: 'p>(bytes: &'a [u8], params: &'p mut P) -> Result<Self, Malformed>
    where
        P: Params<'a>,
    {
        let text = str::from_utf8(bytes);
        let text = text.map_err(|error| Malformed::parse(error).of(start(bytes)))?;
        Self::parse_str(text, params)
    }

    /// Reads one message of a batch, or one that is known to be UTF-8.
    pub(crate) fn parse_str<'a: 'p>(text: &'a str, params: &'p mut P) -> Result<Self, Malformed>
    where
        P: Params<'a>,
    {
        let mut members = Members::default();
        let mut cursor = Cursor::new(text);
        let checked = if cursor.enters(USUAL_BEGINNING) {
            members.take_usual(&mut cursor, params).and_then(|()| {
                let take = |key, cursor: &mut Cursor<'a>| members.take(key, cursor, params);
                cursor.rest(take).map(|()| true)
            })
        } else {
            cursor.whole(|key, cursor| members.take(key, cursor, params))
        };
        match checked {
            Ok(true) => match members.twice {
                Some(key) => Err(Malformed::twice(key, text)),
                None => members.classify(params),
            },
            Ok(false) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
                Err(Malformed::invalid(None, "a JSON-RPC message is an object"))
            }
            _ => Err(Malformed::syntax(text)),
        }
    }
}

/// The members of a message, each as it stands.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<Text<'a>>,
    id: Option<Text<'a>>,
    method: Option<Text<'a>>,
    has_params: bool,
    result: Option<Text<'a>>,
    error: Option<Text<'a>>,
    /// A member that stands there twice.
    twice: Option<Text<'a>>,
}

impl<'a> Members<'a> {
    /// Takes the members that come next where they come in the usual order, without a look at their names.
    #[inline]
    fn take_usual(&mut self, cursor: &mut Cursor<'a>, params: &mut impl Params<'a>) -> Checked<()> {
        self.jsonrpc = Some(Text::string(USUAL_VERSION, true));
        if !cursor.goes_on(r#","id":"#) {
            return Ok(());
        }
        self.id = Some(cursor.value()?);
        if cursor.goes_on(r#","method":"#) {
            self.method = Some(cursor.value()?);
            if cursor.goes_on(r#","params":"#) {
                self.has_params = true;
                params.take(cursor)?;
            }
        } else if cursor.goes_on(r#","result":"#) {
            self.result = Some(params.take_result(cursor)?);
        }
        Ok(())
    }

    /// Takes a member. Names are case-sensitive: `"Method"` is not `"method"`.
    fn take(
        &mut self,
        key: Text<'a>,
        cursor: &mut Cursor<'a>,
        params: &mut impl Params<'a>,
    ) -> Checked<()> {
        let name = key.as_str();
        let slot = match name.as_deref() {
            Some("jsonrpc") => &mut self.jsonrpc,
            Some("id") => &mut self.id,
            Some("method") => &mut self.method,
            Some("error") => &mut self.error,
            Some("result") => {
                if self.result.replace(params.take_result(cursor)?).is_some() {
                    self.twice = Some(key);
                }
                return Ok(());
            }
            Some("params") => {
                if self.has_params {
                    self.twice = Some(key);
                }
                self.has_params = true;
                return params.take(cursor);
            }
            _ => return cursor.value().map(drop),
        };
        if slot.replace(cursor.value()?).is_some() {
            self.twice = Some(key);
        }
        Ok(())
    }

    fn classify<'p, P: Params<'a>>(self, params: &'p P) -> Result<Envelope<'p, P>, Malformed>
    where
        'a: 'p,
    {
        let id = self.id.and_then(RequestId::from_text);
        let answered = self.result.is_some() || self.error.is_some();
        let refuse = |message: &str| {
            let mut malformed = Malformed::invalid(id.clone(), message);
            malformed.is_asked = self.method.is_some() && !answered;
            if answered {
                malformed.answers.clone_from(&id);
                malformed.id = malformed.id.filter(|_| self.method.is_some());
            }
            malformed
        };
        if !self.jsonrpc.is_some_and(|it| it.is_str(VERSION)) {
            return Err(refuse("\"jsonrpc\" must be \"2.0\""));
        }
        let null_id = self.id.is_some_and(Text::is_null);
        if self.id.is_some() && id.is_none() && !(null_id && self.error.is_some()) {
            return Err(refuse("\"id\" must be a string or an integer"));
        }
        match (self.method, answered) {
            (Some(_), true) => Err(refuse("a message is a request or a response, not both")),
            (None, false) => Err(refuse("\"method\", \"result\" or \"error\" is missing")),
            (None, true) => self.response(id.clone(), params, refuse),
            (Some(method), false) => {
                let method = method.as_str();
                let method = method.ok_or_else(|| refuse("\"method\" must be a string"))?;
                let params = Some(params).filter(|it| self.has_params && !it.whole().is_null());
                if params.is_some_and(|params| !params.whole().is_object()) {
                    return Err(refuse("\"params\" must be an object"));
                }
                Ok(match id {
                    Some(id) => Envelope::Request(RawRequest { id, method, params }),
                    None => Envelope::Notification(RawNotification { method, params }),
                })
            }
        }
    }

    fn response<'p, P>(
        &self,
        id: Option<RequestId>,
        found: &'p P,
        refuse: impl Fn(&str) -> Malformed,
    ) -> Result<Envelope<'p, P>, Malformed>
    where
        'a: 'p,
    {
        let outcome = match (self.result, self.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error
                .parse()
                .map_err(|_| refuse("\"error\" must hold a code and a message"))?),
            _ => return Err(refuse("a response has a result or an error, not both")),
        };
        if id.is_none() && outcome.is_ok() {
            return Err(refuse(
                "a response must say what it answers: \"id\" is missing",
            ));
        }
        Ok(Envelope::Response(RawResponse { id, outcome, found }))
    }
}
