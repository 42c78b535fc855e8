//! Reading the envelope of a message, in one pass and without copying what it holds.

use std::{borrow::Cow, fmt, str};

use serde::de::IgnoredAny;

use super::{
    ErrorCode, ErrorObject, RequestId,
    answered::{answered_by, start},
    members::Members,
};
use crate::json::{Checked, Cursor, Text};

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

    pub(super) fn invalid(id: Option<RequestId>, message: impl Into<String>) -> Self {
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
        let mut cursor = Cursor::new(text);
        let is_usual = cursor.enters(USUAL_BEGINNING);
        let mut members = Members::new(is_usual);
        let checked = if is_usual {
            members.take_usual(&mut cursor, params).and_then(|()| {
                let take = |key, cursor: &mut Cursor<'a>| members.take(key, cursor, params);
                cursor.rest(take).map(|()| true)
            })
        } else {
            cursor.whole(|key, cursor| members.take(key, cursor, params))
        };
        match checked {
            Ok(true) => match members.twice() {
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
