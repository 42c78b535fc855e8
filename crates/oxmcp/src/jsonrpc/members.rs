//! The members of a message, and what they make of it.

use std::mem;

use super::{
    RequestId,
    envelope::{Envelope, Malformed, Params, RawNotification, RawRequest, RawResponse},
};
use crate::json::{Checked, Cursor, Text};

/// The only version of JSON-RPC.
const VERSION: &str = "2.0";

/// What stands there as an id.
#[derive(Clone, Copy)]
enum Id<'a> {
    Number(i64),
    /// Whatever it is.
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

/// The members of a message, each as it stands.
pub(super) struct Members<'a> {
    /// Whether it says the version that there is. `None` where it says none.
    has_version: Option<bool>,
    id: Option<Id<'a>>,
    method: Option<Text<'a>>,
    has_params: bool,
    result: Option<Text<'a>>,
    error: Option<Text<'a>>,
    /// A member that stands there twice.
    twice: Option<Text<'a>>,
}

impl<'a> Members<'a> {
    /// Those of a message that was not read yet, or no further than to behind the version.
    #[inline]
    pub(super) fn new(has_version: bool) -> Self {
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

    /// A member that stands there twice.
    pub(super) fn twice(&self) -> Option<Text<'a>> {
        self.twice
    }

    /// Takes the members that follow the version where they come in the usual order, without a look at their names.
    #[inline]
    pub(super) fn take_usual(
        &mut self,
        cursor: &mut Cursor<'a>,
        params: &mut impl Params<'a>,
    ) -> Checked<()> {
        if !cursor.goes_on(r#","id":"#) {
            return Ok(());
        }
        self.id = Some(Self::take_id(cursor)?);
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

    #[inline]
    fn take_id(cursor: &mut Cursor<'a>) -> Checked<Id<'a>> {
        match cursor.short_integer() {
            Some(number) => Ok(Id::Number(number)),
            None => cursor.value().map(Id::Any),
        }
    }

    /// Takes a member. Names are case-sensitive: `"Method"` is not `"method"`.
    pub(super) fn take(
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

    /// What the message is, once it was read to its end.
    pub(super) fn classify<'p, P: Params<'a>>(
        &self,
        params: &'p P,
    ) -> Result<Envelope<'p, P>, Malformed>
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
            return Err(self.refuse(id, "a message is a request or a response, not both"));
        }
        let Some(method) = method.as_str() else {
            return Err(self.refuse(id, "\"method\" must be a string"));
        };
        let params = Some(params).filter(|it| self.has_params && !it.whole().is_null());
        if params.is_some_and(|params| !params.whole().is_object()) {
            return Err(self.refuse(id, "\"params\" must be an object"));
        }
        Ok(match id {
            Some(id) => Envelope::Request(RawRequest { id, method, params }),
            None => Envelope::Notification(RawNotification { method, params }),
        })
    }

    /// The answer that the message is, unless it is nothing at all.
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
            (None, Some(error)) => match error.parse() {
                Ok(error) => Err(error),
                Err(_) => {
                    return Err(self.refuse(id, "\"error\" must hold a code and a message"));
                }
            },
            (None, None) => {
                return Err(self.refuse(id, "\"method\", \"result\" or \"error\" is missing"));
            }
            (Some(_), Some(_)) => {
                return Err(self.refuse(id, "a response has a result or an error, not both"));
            }
        };
        if id.is_none() && outcome.is_ok() {
            let message = "a response must say what it answers: \"id\" is missing";
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
