//! Matcher of URIs: finds the values that a template would expand to a given URI.
//!
//! The RFC does not define matching, so these rules apply:
//! - `{x}` matches one or more characters other than `/`, `?` and `#`; in a query `&` is excluded, too.
//! - `{+x}` matches these characters as well, but no `?` or `#` if the template has one after it.
//! - `{/x}`, `{.x}`, `{;x}`, `{?x}`, `{&x}` and `{#x}` may be missing; named values may come in any order.
//! - Optional parts match if they can: of values without names, the last ones are missing.
//! - Text that two expressions could match goes to the second: the first matches as little as possible.
//!
//! A template that is ambiguous under these rules is refused.

use std::{cmp::Reverse, iter::Peekable, sync::Arc};

use crate::{
    uri::{decode, normalized},
    uri_template::{
        ambiguity::{Preceding, check, check_names, check_next},
        parse::{Expression, Modifier, Operator, Part, UriTemplate, Variable},
    },
};

/// The maximum length of a URI in bytes; a longer URI does not match. Browsers and servers have similar limits.
pub(crate) const LONGEST_URI: usize = 8 << 10;

/// A template that URIs are matched against, in time linear in their length.
#[derive(Debug)]
pub struct Matcher {
    pieces: Vec<Piece>,
    literal_bytes: usize,
    variables: usize,
}

/// The values of the variables in a URI, percent-encoded; variables without a value are missing.
pub type Captures = Vec<(Arc<str>, Captured)>;

/// The value of a variable in a matched URI.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the standard that it follows is final"
)]
pub enum Captured {
    /// A single text.
    One(Box<str>),
    /// The values of an exploded variable.
    Many(Vec<Box<str>>),
}

#[derive(Debug)]
enum Piece {
    Literal(Box<[u8]>),
    ExpressionMatcher(ExpressionMatcher),
}

impl Matcher {
    /// Prepares a template for matching.
    ///
    /// # Errors
    /// If a URI could match in more than one way: the ambiguity, and what to write instead.
    pub fn new(template: &UriTemplate) -> Result<Self, String> {
        check_names(template)?;
        let mut pieces = Vec::new();
        let mut literal_bytes = 0;
        let mut before = Preceding::default();
        let mut parts = template.parts.iter().peekable();
        while let Some(part) = parts.next() {
            pieces.push(match part {
                Part::Literal(literal) => {
                    before.literal(literal);
                    literal_bytes += literal.len();
                    Piece::Literal(literal.as_bytes().into())
                }
                Part::Expression(expression) => {
                    check(expression)?;
                    check_next(expression, parts.peek().copied())?;
                    before.expression(expression, parts.clone())?;
                    Piece::ExpressionMatcher(ExpressionMatcher::new(
                        expression,
                        before.in_query,
                        parts.clone(),
                    ))
                }
            });
        }
        Ok(Self {
            pieces,
            literal_bytes,
            variables: template.variables().count(),
        })
    }

    /// Returns the order in which templates are tried: those with the most literal text come first.
    #[must_use]
    pub fn rank(&self) -> impl Ord + use<> {
        (Reverse(self.literal_bytes), self.variables)
    }

    /// Returns the values of the variables in this URI. `None` if it does not match.
    #[must_use]
    pub fn captures(&self, uri: &str) -> Option<Captures> {
        if uri.len() > LONGEST_URI {
            return None;
        }
        let uri = normalized(uri);
        if let Some(Piece::Literal(literal)) = self.pieces.first()
            && !uri.as_bytes().starts_with(literal)
        {
            return None;
        }
        let rests = self.rests(uri.as_bytes());
        let mut at = 0;
        let mut captures = Vec::with_capacity(self.variables);
        rests.first()?.first().filter(|fits| **fits)?;
        for (piece, rest) in self.pieces.iter().zip(rests.iter().skip(1)) {
            match piece {
                Piece::Literal(literal) => at += literal.len(),
                Piece::ExpressionMatcher(run) => {
                    let end = run.end(uri.as_bytes(), at, rest)?;
                    run.read(uri.get(at..end)?, &mut captures)?;
                    at = end;
                }
            }
        }
        Some(captures)
    }

    /// For each piece, and for the end: the positions in the URI at which it can begin so that it and all pieces after
    /// it match. It takes one pass over the URI for each piece, from the last to the first, so there is no
    /// backtracking.
    fn rests(&self, uri: &[u8]) -> Vec<Vec<bool>> {
        let mut end = vec![false; uri.len() + 1];
        if let Some(last) = end.last_mut() {
            *last = true;
        }
        let mut rests = vec![end];
        for piece in self.pieces.iter().rev() {
            let rest = rests.last().map(Vec::as_slice).unwrap_or_default();
            rests.push(match piece {
                Piece::Literal(literal) => (0..=uri.len())
                    .map(|at| {
                        let end = at + literal.len();
                        is_set(rest, end) && uri.get(at..end) == Some(literal)
                    })
                    .collect(),
                Piece::ExpressionMatcher(run) => run.starts(uri, rest),
            });
        }
        rests.reverse();
        rests
    }
}

/// Matcher of the expansions of one expression.
#[derive(Debug)]
pub(crate) struct ExpressionMatcher {
    operator: Operator,
    variables: Vec<(Arc<str>, Modifier)>,
    /// The characters that cannot be part of the expansion.
    excluded: Set,
}

/// A set of ASCII characters.
#[derive(Clone, Copy, Debug, Default)]
struct Set(u128);

impl Set {
    fn of(characters: &str) -> Self {
        characters.chars().fold(Self::default(), Self::with)
    }

    fn with(self, character: char) -> Self {
        Self(self.0 | 1 << (u32::from(character) & 127))
    }

    fn has(self, byte: u8) -> bool {
        byte.is_ascii() && self.0 >> byte & 1 == 1
    }
}

pub(crate) fn is_set(row: &[bool], at: usize) -> bool {
    row.get(at).copied().unwrap_or_default()
}

impl ExpressionMatcher {
    pub(crate) fn new<'a>(
        expression: &Expression,
        in_query: bool,
        mut later: Peekable<impl Iterator<Item = &'a Part> + Clone>,
    ) -> Self {
        let operator = expression.operator;
        let mut excluded = match operator {
            Operator::Segment if expression.is_list() => Set::of("?#"),
            Operator::Simple | Operator::Label | Operator::Segment | Operator::Parameter => {
                Set::of("/?#")
            }
            Operator::Query | Operator::Continuation => Set::of("#"),
            Operator::Reserved | Operator::Fragment => Set::default(),
        };
        if in_query && operator == Operator::Simple {
            excluded = excluded.with('&');
        }
        if let Some(Part::Expression(next)) = later.peek() {
            excluded = next
                .operator
                .first()
                .map_or(excluded, |first| excluded.with(first));
        }
        if operator == Operator::Reserved {
            for boundary in ['?', '#'] {
                let mut later = later.clone();
                if later.any(|part| has(part, boundary)) {
                    excluded = excluded.with(boundary);
                }
            }
        }
        let name = |variable: &Variable| (variable.name.as_str().into(), variable.modifier);
        Self {
            operator,
            variables: expression.variables.iter().map(name).collect(),
            excluded,
        }
    }

    /// The positions at which the expansion can begin, given those at which the rest can.
    pub(crate) fn starts(&self, uri: &[u8], rest: &[bool]) -> Vec<bool> {
        let mut row = vec![false; uri.len() + 1];
        // Whether the run can continue from the next byte on until the rest matches.
        let mut continues = false;
        for at in (0..=uri.len()).rev() {
            let byte = uri.get(at).copied();
            let in_run = byte.is_some_and(|byte| !self.excluded.has(byte)) && continues;
            let begins = match self.operator.first() {
                None => in_run,
                Some(first) => is_set(rest, at) || byte.map(char::from) == Some(first) && continues,
            };
            if let Some(slot) = row.get_mut(at) {
                *slot = begins;
            }
            continues = is_set(rest, at) || in_run;
        }
        row
    }

    /// The end of the run that begins at `at`: the first position at which the rest matches.
    pub(crate) fn end(&self, uri: &[u8], at: usize, rest: &[bool]) -> Option<usize> {
        let bytes = || uri.iter().copied().enumerate().skip(at + 1);
        let first_fit = || {
            let stop = bytes().find(|(at, byte)| is_set(rest, *at) || self.excluded.has(*byte));
            let end = stop.map_or(uri.len(), |(at, _)| at);
            is_set(rest, end).then_some(end)
        };
        let byte = uri.get(at).copied();
        match self.operator.first() {
            None => byte
                .filter(|byte| !self.excluded.has(*byte))
                .and_then(|_| first_fit()),
            Some(first) => byte
                .filter(|byte| char::from(*byte) == first)
                .and_then(|_| first_fit())
                .or_else(|| is_set(rest, at).then_some(at)),
        }
    }

    /// Extracts the values from the text of the run.
    pub(crate) fn read(&self, text: &str, captures: &mut Captures) -> Option<()> {
        let values = match self.operator.first() {
            None => text,
            // An empty run means that there is no value.
            Some(_) if text.is_empty() => return Some(()),
            Some(first) => text.strip_prefix(first)?,
        };
        if self.operator.is_named() {
            return self.read_named(values, captures);
        }
        if let [(name, modifier @ (Modifier::Whole | Modifier::Prefix(_)))] = &*self.variables {
            captures.push((Arc::clone(name), one(values, *modifier)?));
            return Some(());
        }
        let mut values = values.split(self.operator.separator()).peekable();
        for (name, modifier) in &self.variables {
            if values.peek().is_none() {
                break;
            }
            let captured = match modifier {
                Modifier::Explode => Captured::Many(values.by_ref().map(Into::into).collect()),
                modifier => one(values.next()?, *modifier)?,
            };
            captures.push((Arc::clone(name), captured));
        }
        let is_all = values.next().is_none();
        is_all.then_some(())
    }

    fn read_named(&self, values: &str, captures: &mut Captures) -> Option<()> {
        let from = captures.len();
        for pair in values.split(self.operator.separator()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, modifier) = self.variables.iter().find(|it| *it.0 == *name)?;
            let mut known = captures.iter_mut().skip(from);
            let known = known.find(|it| it.0 == *name).map(|it| &mut it.1);
            match (known, modifier) {
                (Some(Captured::Many(items)), _) => items.push(value.into()),
                (Some(Captured::One(_)), _) => return None,
                (None, Modifier::Explode) => {
                    captures.push((Arc::clone(name), Captured::Many(vec![value.into()])));
                }
                (None, modifier) => captures.push((Arc::clone(name), one(value, *modifier)?)),
            }
        }
        Some(())
    }
}

/// A single value, if it is not longer than its variable allows.
fn one(value: &str, modifier: Modifier) -> Option<Captured> {
    if let Modifier::Prefix(length) = modifier {
        let decoded = String::from_utf8(decode(value)?).ok()?;
        if decoded.chars().count() > length {
            return None;
        }
    }
    Some(Captured::One(value.into()))
}

/// Whether a part adds this character, which a `{+x}` before it must not match.
fn has(part: &Part, character: char) -> bool {
    match part {
        Part::Literal(literal) => literal.contains(character),
        Part::Expression(expression) => expression.operator.first() == Some(character),
    }
}
