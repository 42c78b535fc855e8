//! The deserializer that accepts deviating values and converts them to those that the type expects.

use std::{borrow::Cow, collections::HashSet};

use oxmcp_json::{Items as TextItems, Members as TextMembers, Text};
use serde::de::{
    self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
    value::CowStrDeserializer,
};

use super::{
    BASE64, BLOCK, ENTRY, FIELD, Leniency, ONE_OR_MANY, SCHEMA, TAGGED,
    error::{Error, Step},
    repair::standard_base64,
    state::{Attempts, State},
};
use crate::values::json::whole;

/// The name by which `RawValue` asks for the text of a value.
const RAW: &str = "$serde_json::private::RawValue";

/// Required members that can be absent without harm: the names of the members, by the name of the type.
const SUPPLIED: &[(&str, &[&str])] = &[
    ("Implementation", &["name", "version"]),
    ("InitializeParams", &["capabilities", "clientInfo"]),
    ("InitializeResult", &["capabilities", "serverInfo"]),
    ("DiscoverResult", &["capabilities"]),
    ("ListToolsResult", &["tools"]),
    ("ListPromptsResult", &["prompts"]),
    ("ListResourcesResult", &["resources"]),
    ("ListResourceTemplatesResult", &["resourceTemplates"]),
    ("ListRootsResult", &["roots"]),
    ("ListTasksResult", &["tasks"]),
    ("Select", &["type"]),
    ("GetPromptResult", &["messages"]),
    ("ReadResourceResult", &["contents"]),
    ("CompleteResult", &["completion"]),
    ("Completion", &["values"]),
];

/// Other spellings of the names of enums.
const SPELLINGS: &[(&str, &str)] = &[
    ("warn", "warning"),
    ("err", "error"),
    ("fatal", "critical"),
    ("crit", "critical"),
    ("trace", "debug"),
    ("information", "info"),
    ("panic", "emergency"),
    ("emerg", "emergency"),
    ("accepted", "accept"),
    ("declined", "decline"),
    ("reject", "decline"),
    ("cancelled", "cancel"),
    ("canceled", "cancel"),
];

/// A deserializer of one value. See the [module](super).
#[derive(Clone, Copy)]
pub(crate) struct Lenient<'s, 'de> {
    state: &'s State,
    text: Text<'de>,
    /// Whether the value stands for a member that is absent.
    is_absent: bool,
}

impl<'s, 'de> Lenient<'s, 'de> {
    pub(crate) fn new(state: &'s State, text: Text<'de>) -> Self {
        Self {
            state,
            text,
            is_absent: false,
        }
    }

    /// A value for a member that is required and absent.
    fn absent(state: &'s State) -> Self {
        Self {
            state,
            text: Text::checked("null"),
            is_absent: true,
        }
    }

    /// Reads the value as serde_json does.
    fn strictly<T>(
        self,
        read: impl FnOnce(
            &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
        ) -> serde_json::Result<T>,
    ) -> Result<T, Error> {
        let mut strict = serde_json::Deserializer::from_str(self.text.get());
        Ok(read(&mut strict)?)
    }

    fn first(self) -> Option<u8> {
        self.text.get().bytes().next()
    }

    /// Whether the value is null where a value is expected, which is noted.
    fn is_null(self) -> bool {
        let is_null = self.text.is_null();
        if is_null && !self.is_absent {
            self.state.tolerate(Leniency::NullMember);
        }
        is_null
    }

    /// The text of the value as a string: of a string its contents, of a number or boolean its text.
    fn as_text(self) -> Result<Cow<'de, str>, Error> {
        match self.first() {
            Some(b'"') => {
                let text = self.text.as_str();
                text.ok_or_else(|| Error::new("the string is not valid"))
            }
            Some(b'{' | b'[') => {
                let kind = if self.first() == Some(b'{') {
                    "an object"
                } else {
                    "an array"
                };
                Err(Error::new(format_args!("expected a string, got {kind}")))
            }
            _ if self.is_absent => Ok(Cow::Borrowed("")),
            _ if self.text.is_null() => Err(Error::new("expected a string, got null")),
            _ => {
                self.state.tolerate(Leniency::OtherType);
                Ok(Cow::Borrowed(self.text.get()))
            }
        }
    }

    /// The text of the value as a number, if it differs from the value.
    fn as_number(self) -> Option<String> {
        let text = match self.first()? {
            b'"' => self.text.as_str()?.trim().to_owned(),
            b'-' | b'0'..=b'9' => self.text.get().to_owned(),
            _ => return None,
        };
        let number: f64 = text
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())?;
        let written = match whole(number) {
            Some(whole) if text.contains(['.', 'e', 'E']) => whole.to_string(),
            _ => text,
        };
        self.state.tolerate(Leniency::OtherType);
        Some(written)
    }

    /// Reads a number: strictly, or else in the form in which it can be meant.
    fn number<T>(
        self,
        read: impl Fn(&mut serde_json::Deserializer<serde_json::de::StrRead<'_>>) -> Option<T>,
    ) -> Result<T, Error> {
        let strict = |text: &str| read(&mut serde_json::Deserializer::from_str(text));
        if let Some(number) = strict(self.text.get()) {
            return Ok(number);
        }
        let meant = self.as_number().and_then(|text| strict(&text));
        meant.ok_or_else(|| {
            let shown: String = self.text.get().chars().take(40).collect();
            Error::new(format_args!("expected a number, got {shown}"))
        })
    }

    /// The value itself, or the only item of an array.
    fn single(self) -> Self {
        let mut items = self.text.items();
        match (items.next(), items.next()) {
            (Some(only), None) if self.first() == Some(b'[') => {
                self.state.tolerate(Leniency::SingleItem);
                Self::new(self.state, only)
            }
            _ => self,
        }
    }

    fn is_empty_array(self) -> bool {
        self.first() == Some(b'[') && self.text.items().next().is_none()
    }

    /// The members of the value, if it can be meant as an object.
    fn object(self, supplied: &'static [&'static str]) -> Option<Members<'s, 'de>> {
        let text = match self.first() {
            Some(b'{') => self.text,
            _ if self.is_empty_array() => {
                self.state.tolerate(Leniency::EmptyArray);
                Text::EMPTY
            }
            _ if self.is_null() => Text::EMPTY,
            _ => return None,
        };
        Some(Members::new(self.state, text, supplied))
    }

    fn tagged<V: Visitor<'de>>(
        self,
        name: &'static str,
        (tag, default): (&'static str, Option<&'static str>),
        visitor: V,
    ) -> Result<V::Value, Error> {
        let read = || {
            let value = self.single();
            if value.first() == Some(b'"') {
                let text = value.as_text()?;
                value.state.tolerate(Leniency::UntypedContent);
                return visitor.visit_str(&text);
            }
            let Some(members) = value.object(&[]) else {
                return Err(Error::new("expected an object"));
            };
            refuse_twice(value.text, tag)?;
            if value.state.is_unknown() {
                if let Some(name) = name_twice(value.text) {
                    return Err(Error::twice(&name));
                }
                return visitor.visit_newtype_struct(value);
            }
            visitor.visit_map(members.with_first(tag, default.map(Text::checked)))
        };
        read().map_err(|mut error: Error| {
            let is_own = error.place.is_none() && self.first() == Some(b'{');
            error.is_tagged |= is_own && name == BLOCK;
            self.state.placed(error)
        })
    }

    /// Reads a field of a form, as a sequence: the object, and the same object by its kind, unless that has failed.
    fn field<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let times = if self.state.is_unknown() { 1 } else { 2 };
        let read = visitor.visit_seq(Repeated { value: self, times });
        read.map_err(|mut error| {
            error.is_tagged |= error.place.is_none() && self.first() == Some(b'{');
            self.state.placed(error)
        })
    }
}

macro_rules! numbers {
    ($( $method:ident $visit:ident $type:ty, )+) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let number = self.number(|strict| <$type as de::Deserialize>::deserialize(strict).ok())?;
            visitor.$visit(number)
        }
    )+ };
}

impl<'de> Deserializer<'de> for Lenient<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.strictly(|strict| strict.deserialize_any(visitor))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let value = match self.text.get() {
            "true" => true,
            "false" => false,
            _ if self.is_null() => false,
            other => {
                let text = self.text.as_str();
                let meant = match text
                    .as_deref()
                    .unwrap_or(other)
                    .to_ascii_lowercase()
                    .as_str()
                {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    _ => return Err(Error::new("expected a boolean")),
                };
                self.state.tolerate(Leniency::OtherType);
                meant
            }
        };
        visitor.visit_bool(value)
    }

    numbers! {
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_i128 visit_i128 i128,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_u128 visit_u128 u128,
        deserialize_f32 visit_f32 f32,
        deserialize_f64 visit_f64 f64,
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.as_text()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.strictly(|strict| strict.deserialize_bytes(visitor))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.text.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.strictly(|strict| strict.deserialize_unit(visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match name {
            RAW => self.strictly(|strict| strict.deserialize_newtype_struct(name, visitor)),
            ENTRY => visitor.visit_seq(EntryAttempts(
                Attempts::new(self.state, self.text),
                String::new(),
            )),
            BASE64 => {
                let text = self.as_text()?;
                let standard = standard_base64(&text);
                if *standard != *text {
                    self.state.tolerate(Leniency::Base64);
                }
                visitor.visit_newtype_struct(CowStrDeserializer::<Error>::new(standard.into()))
            }
            ONE_OR_MANY if self.text.is_null() => self.deserialize_seq(visitor),
            ONE_OR_MANY if self.first() == Some(b'[') => {
                visitor.visit_seq(Items::new(self.state, self.text))
            }
            ONE_OR_MANY => visitor.visit_seq(Items::one(self)),
            SCHEMA if self.is_empty_array() => {
                self.state.tolerate(Leniency::EmptyArray);
                let any = Text::checked(r#"{"type":"object"}"#);
                visitor.visit_newtype_struct(Self::new(self.state, any))
            }
            FIELD => self.field(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let text = match self.first() {
            Some(b'[') => self.text,
            _ if self.is_null() => Text::checked("[]"),
            _ => {
                self.state.tolerate(Leniency::SingleItem);
                return visitor.visit_seq(Items::one(self));
            }
        };
        visitor.visit_seq(Items::new(self.state, text))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.object(&[]) {
            Some(members) => visitor.visit_map(members),
            None => Err(Error::new("expected an object")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let (TAGGED | BLOCK, Some(tag)) = (name, fields.first()) {
            return self.tagged(name, (tag, fields.get(1).copied()), visitor);
        }
        if name == "EmptyResult" && self.first() != Some(b'{') {
            // Any value only confirms that the request was served.
            self.state.tolerate(Leniency::EmptyResult);
            return visitor.visit_map(Members::new(self.state, Text::EMPTY, &[]));
        }
        let supplied = SUPPLIED.iter().find(|(type_name, _)| *type_name == name);
        match self.object(supplied.map_or(&[], |(_, members)| members)) {
            Some(members) => visitor.visit_map(members),
            None => Err(Error::new("expected an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.first() != Some(b'"') {
            return self.strictly(|strict| strict.deserialize_enum("", variants, visitor));
        }
        let text = self.as_text()?;
        let spelling = text.trim().to_ascii_lowercase();
        let known = |name: &str| variants.iter().find(|it| it.eq_ignore_ascii_case(name));
        let meant = known(&spelling).or_else(|| {
            let (_, name) = SPELLINGS.iter().find(|(other, _)| *other == spelling)?;
            known(name)
        });
        match meant {
            Some(name) if **name != *text => {
                self.state.tolerate(Leniency::Spelling);
                visitor.visit_enum((*name).into_deserializer())
            }
            _ => visitor.visit_enum(CowStrDeserializer::new(text)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}

/// Refuses an object that has a name twice.
fn refuse_twice(object: Text<'_>, name: &str) -> Result<(), Error> {
    let mut found = object.members().filter(|(key, _)| key.is_str(name));
    match found.nth(1) {
        Some(_) => Err(Error::twice(name)),
        None => Ok(()),
    }
}

/// A name that an object has twice.
fn name_twice(object: Text<'_>) -> Option<Cow<'_, str>> {
    let mut seen = HashSet::new();
    let mut names = object.members().filter_map(|(key, _)| key.as_str());
    names.find(|name| !seen.insert(name.clone()))
}

/// The attempts at an entry, as the sequence that an entry of a [list](mod@super::list) reads, and the reason why the first one failed.
struct EntryAttempts<'s, 'de>(Attempts<'s, 'de>, String);

impl<'de> SeqAccess<'de> for EntryAttempts<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Self(attempts, reason) = self;
        let Some(entry) = attempts.next() else {
            attempts.give_up(reason);
            return Ok(None);
        };
        if entry.is_null() {
            attempts.give_up("the entry is null");
            return Ok(None);
        }
        match seed.deserialize(Lenient::new(attempts.state, entry)) {
            Ok(value) => {
                attempts.succeeded();
                Ok(Some(value))
            }
            Err(error) => {
                let why = attempts.failed(error);
                if reason.is_empty() {
                    reason.clone_from(&why);
                }
                Err(Error::new(why))
            }
        }
    }
}

/// The members of an object, without those that are left out, and with those that are supplied.
struct Members<'s, 'de> {
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
    fn new(state: &'s State, text: Text<'de>, supplied: &[&'static str]) -> Self {
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

    /// The same members, with the member `name` before all others: with the value `default` if it is absent.
    fn with_first(mut self, name: &'static str, default: Option<Text<'de>>) -> Self {
        let mut members = self.text.members();
        let found = members.find(|(key, value)| key.is_str(name) && !value.is_null());
        let is_left_out = self.state.leaves_out(&Step::Member(name.into()));
        self.first = found
            .filter(|_| !is_left_out)
            .map(|(_, value)| value)
            .or(default)
            .map(|value| (name, value));
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
        for (key, value) in self.members.by_ref() {
            let Some(name) = key.as_str() else {
                continue;
            };
            if self.first_name == Some(&*name) {
                // It came first, or is null.
                continue;
            }
            if self.state.leaves_out(&Step::Member((*name).into())) {
                // The type does not see the name, so it cannot refuse a second one.
                refuse_twice(self.text, &name)?;
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

/// The same value several times, as a sequence.
struct Repeated<'s, 'de> {
    value: Lenient<'s, 'de>,
    times: usize,
}

impl<'de> SeqAccess<'de> for Repeated<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.times == 0 {
            return Ok(None);
        }
        self.times -= 1;
        seed.deserialize(self.value).map(Some)
    }
}

/// The items of an array, without those that are left out.
struct Items<'s, 'de> {
    state: &'s State,
    items: TextItems<'de>,
    one: Option<Lenient<'s, 'de>>,
    next: usize,
}

impl<'s, 'de> Items<'s, 'de> {
    fn new(state: &'s State, text: Text<'de>) -> Self {
        Self {
            state,
            items: text.items(),
            one: None,
            next: 0,
        }
    }

    /// A single item instead of an array.
    fn one(item: Lenient<'s, 'de>) -> Self {
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
