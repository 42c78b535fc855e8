//! What the validator finds, before it is put into words.

use std::borrow::Cow;

use serde_json::Value;

use super::{dialect::Dialect, grammar::Shape};

/// A value that a keyword does not accept.
#[derive(Debug)]
pub(in crate::schema) struct Offence<'v, 'i> {
    /// The schema that the keyword stands in.
    pub(in crate::schema) place: &'v Value,
    pub(in crate::schema) keyword: &'static str,
    /// The JSON Pointer of the value.
    pub(in crate::schema) pointer: String,
    pub(in crate::schema) instance: Cow<'i, Value>,
    pub(in crate::schema) detail: Detail<'v, 'i>,
}

#[derive(Debug)]
pub(in crate::schema) enum Detail<'v, 'i> {
    None,
    /// The name of a member that is not there.
    Missing(&'v str),
    /// The names of members that should not be there, as many as are told.
    Unexpected(Vec<String>),
    /// What each alternative has against the value.
    Alternatives(Vec<Vec<Offence<'v, 'i>>>),
    /// More than one alternative accepts the value.
    Several,
    /// What is wrong with the name of a member.
    Name(Box<Offence<'v, 'i>>),
    /// The value is no schema, or not what a keyword of a schema holds.
    Misfit(Misfit),
}

/// What a value in a schema is not.
#[derive(Clone, Copy, Debug)]
pub(in crate::schema) struct Misfit {
    pub(in crate::schema) dialect: Dialect,
    /// The keyword that the value belongs to, if it does.
    pub(in crate::schema) keyword: Option<&'static str>,
    pub(in crate::schema) shape: Shape,
}

impl<'v> Offence<'v, '_> {
    /// The same, of a value that does not outlive it.
    pub(super) fn into_owned<'o>(self) -> Offence<'v, 'o> {
        Offence {
            place: self.place,
            keyword: self.keyword,
            pointer: self.pointer,
            instance: Cow::Owned(self.instance.into_owned()),
            detail: match self.detail {
                Detail::None => Detail::None,
                Detail::Missing(name) => Detail::Missing(name),
                Detail::Unexpected(names) => Detail::Unexpected(names),
                Detail::Alternatives(all) => {
                    let own = |one: Vec<Self>| one.into_iter().map(Self::into_owned).collect();
                    Detail::Alternatives(all.into_iter().map(own).collect())
                }
                Detail::Several => Detail::Several,
                Detail::Misfit(misfit) => Detail::Misfit(misfit),
                Detail::Name(offence) => Detail::Name(Box::new(offence.into_owned())),
            },
        }
    }
}
