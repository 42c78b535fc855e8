//! Failures that the validator finds, before they are described in messages.

use std::{
    borrow::Cow,
    mem::{size_of, size_of_val},
};

use serde_json::Value;

use crate::full::{dialect::Dialect, grammar::table::Shape};

/// A value that a keyword does not accept.
#[derive(Debug)]
pub(crate) struct Failure<'v, 'i> {
    /// The schema that has the keyword.
    pub(crate) place: &'v Value,
    pub(crate) keyword: &'static str,
    /// The JSON Pointer of the value.
    pub(crate) pointer: String,
    pub(crate) instance: Cow<'i, Value>,
    pub(crate) detail: Detail<'v, 'i>,
}

#[derive(Debug)]
pub(crate) enum Detail<'v, 'i> {
    None,
    /// The name of a missing member.
    Missing(&'v str),
    /// The names of members that are not allowed, up to the number that is reported.
    Unexpected(Vec<Cow<'i, str>>),
    /// The failures of each alternative.
    Alternatives(Vec<Vec<Failure<'v, 'i>>>),
    /// More than one alternative accepts the value.
    Several,
    /// The failure of the name of a member.
    Name(Box<Failure<'v, 'i>>),
    /// The value is not a schema, or does not have the form that a keyword of a schema requires.
    Misfit(Misfit),
}

/// The form that a value in a schema must have but does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misfit {
    pub(crate) dialect: Dialect,
    /// The keyword that has the value, if any.
    pub(crate) keyword: Option<&'static str>,
    pub(crate) shape: Shape,
}

impl<'v> Failure<'v, '_> {
    /// The memory that the failure takes, in bytes.
    pub(crate) fn size(&self) -> usize {
        let instance = match &self.instance {
            Cow::Owned(Value::String(text)) => text.len(),
            _ => 0,
        };
        let detail = match &self.detail {
            Detail::Name(failure) => failure.size(),
            Detail::Unexpected(names) => size_of_val(names.as_slice()),
            _ => 0,
        };
        size_of::<Self>() + self.pointer.len() + instance + detail
    }

    /// The same failure with an owned instance.
    pub(crate) fn into_owned<'o>(self) -> Failure<'v, 'o> {
        Failure {
            place: self.place,
            keyword: self.keyword,
            pointer: self.pointer,
            instance: Cow::Owned(self.instance.into_owned()),
            detail: match self.detail {
                Detail::None => Detail::None,
                Detail::Missing(name) => Detail::Missing(name),
                Detail::Unexpected(names) => {
                    let own = |name: Cow<'_, str>| Cow::Owned(name.into_owned());
                    Detail::Unexpected(names.into_iter().map(own).collect())
                }
                Detail::Alternatives(all) => {
                    let own = |one: Vec<Self>| one.into_iter().map(Self::into_owned).collect();
                    Detail::Alternatives(all.into_iter().map(own).collect())
                }
                Detail::Several => Detail::Several,
                Detail::Misfit(misfit) => Detail::Misfit(misfit),
                Detail::Name(failure) => Detail::Name(Box::new(failure.into_owned())),
            },
        }
    }
}
