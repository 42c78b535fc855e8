//! Access to the members of objects and to the items of arrays.

use oxmcp_json::{Items as TextItems, Members as TextMembers, Text};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, value::CowStrDeserializer};

use super::{
    Leniency,
    deserializer::Lenient,
    error::{Error, Step},
    reading::State,
};

/// The members of an object, without those that are left out, and with those that are supplied.
pub(super) struct Members<'s, 'de> {
    state: &'s State,
    members: TextMembers<'de>,
    /// A member that comes before all others, and its value.
    first: Option<(&'static str, Text<'de>)>,
    first_name: Option<&'static str>,
    text: Text<'de>,
    /// The required members that were not seen yet.
    supplied: Vec<&'static str>,
    next: Next<'de>,
}

/// The value that is taken next.
enum Next<'de> {
    None,
    Value(Box<str>, Text<'de>),
    Absent(&'static str),
}

impl<'s, 'de> Members<'s, 'de> {
    pub(super) fn new(state: &'s State, text: Text<'de>, supplied: &[&'static str]) -> Self {
        Self {
            state,
            members: text.members(),
            first: None,
            first_name: None,
            text,
            supplied: supplied.to_vec(),
            next: Next::None,
        }
    }

    /// The same members, with the member `name` before all others.
    pub(super) fn with_first(mut self, name: &'static str) -> Self {
        let mut members = self.text.members();
        let found = members.find(|(key, value)| key.is_str(name) && !value.is_null());
        self.first = found.map(|(_, value)| (name, value));
        self.first_name = Some(name);
        self
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if let Some((name, value)) = self.first.take() {
            self.next = Next::Value(name.into(), value);
            return seed
                .deserialize(CowStrDeserializer::<Error>::new(name.into()))
                .map(Some);
        }
        while let Some((key, value)) = self.members.next() {
            let Some(name) = key.as_str() else {
                continue;
            };
            if self.first_name == Some(&*name) {
                // It came first, or is null.
                continue;
            }
            if self.state.leaves_out(&Step::Member((*name).into())) {
                continue;
            }
            self.supplied.retain(|it| **it != *name);
            self.next = Next::Value((*name).into(), value);
            return seed
                .deserialize(CowStrDeserializer::<Error>::new(name))
                .map(Some);
        }
        let Some(name) = self.supplied.pop() else {
            return Ok(None);
        };
        self.next = Next::Absent(name);
        seed.deserialize(CowStrDeserializer::<Error>::new(name.into()))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let state = self.state;
        match std::mem::replace(&mut self.next, Next::None) {
            Next::None => Err(Error::new("a value was asked for before its name")),
            Next::Value(name, value) => state.at(Step::Member(name), || {
                seed.deserialize(Lenient::new(state, value))
            }),
            Next::Absent(name) => state.at(Step::Member(name.into()), || {
                state.tolerate(Leniency::MissingMember);
                seed.deserialize(Lenient::absent(state))
            }),
        }
    }
}

/// The items of an array, without those that are left out.
pub(super) struct Items<'s, 'de> {
    state: &'s State,
    items: TextItems<'de>,
    one: Option<Lenient<'s, 'de>>,
    next: usize,
}

impl<'s, 'de> Items<'s, 'de> {
    pub(super) fn new(state: &'s State, text: Text<'de>) -> Self {
        Self {
            state,
            items: text.items(),
            one: None,
            next: 0,
        }
    }

    /// A single item in place of an array.
    pub(super) fn one(item: Lenient<'s, 'de>) -> Self {
        Self {
            one: Some(item),
            ..Self::new(item.state, Text::checked("[]"))
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let state = self.state;
        loop {
            let item = match self.one.take() {
                Some(one) => one,
                None => match self.items.next() {
                    Some(text) => Lenient::new(state, text),
                    None => return Ok(None),
                },
            };
            let step = Step::Item(self.next);
            self.next += 1;
            if !state.leaves_out(&step) {
                return state.at(step, || seed.deserialize(item)).map(Some);
            }
        }
    }
}
