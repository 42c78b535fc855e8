//! Matching a URI with a template: which values would have given it.
//!
//! The RFC does not define this, so the rules are these:
//! - `{x}` takes anything but `/`, `?` and `#`, and at least one character; in a query it does not take `&` either.
//! - `{+x}` takes those, too; but no `?` or `#` where the template has one behind it.
//! - `{/x}`, `{.x}`, `{;x}`, `{?x}`, `{&x}` and `{#x}` may be missing; named ones come in any order.
//! - What may be missing is there where it can be: of values without names, the last ones are missing.
//! - What two places could take goes to the second: the first takes as little as lets the rest match.
//!
//! Where that would leave a doubt, a template is refused.

use std::{cmp::Reverse, sync::Arc};

use super::{
    doubts::{Before, check, check_names, check_next},
    parse::{Part, UriTemplate},
    run::{Run, is_set},
};
use crate::codec::uri::normalized;

/// A longer URI matches nothing. Browsers and servers stop at such lengths, too.
pub(super) const LONGEST_URI: usize = 8 << 10;

/// A template that URIs are held against, in a time that grows with their length and no faster.
#[derive(Debug)]
pub(crate) struct Matcher {
    pieces: Vec<Piece>,
    literal_bytes: usize,
    variables: usize,
}

/// What the variables stand for in a URI, percent codes included; those without a value are missing.
pub(crate) type Captures = Vec<(Arc<str>, Captured)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Captured {
    One(Box<str>),
    /// Of an exploded variable.
    Many(Vec<Box<str>>),
}

#[derive(Debug)]
enum Piece {
    Literal(Box<[u8]>),
    Run(Run),
}

impl Matcher {
    /// Prepares a template for matching.
    ///
    /// # Errors
    /// Where a URI could be read in more than one way: what is in doubt, and what to write instead.
    pub(crate) fn new(template: &UriTemplate) -> Result<Self, String> {
        check_names(template)?;
        let mut pieces = Vec::new();
        let mut literal_bytes = 0;
        let mut before = Before::default();
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
                    Piece::Run(Run::new(expression, before.in_query, parts.clone()))
                }
            });
        }
        Ok(Self {
            pieces,
            literal_bytes,
            variables: template.variables().count(),
        })
    }

    /// Orders templates: the most literal ones first.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        (Reverse(self.literal_bytes), self.variables)
    }

    /// The values that give this URI. `None` where there are none.
    pub(crate) fn captures(&self, uri: &str) -> Option<Captures> {
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
                Piece::Run(run) => {
                    let end = run.end(uri.as_bytes(), at, rest)?;
                    run.read(uri.get(at..end)?, &mut captures)?;
                    at = end;
                }
            }
        }
        Some(captures)
    }

    /// For each piece, and behind the last: where in the URI it can begin, so that it and all behind it match. One pass
    /// over the URI for each piece, from the last to the first, so that nothing is ever tried and taken back.
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
                Piece::Run(run) => run.starts(uri, rest),
            });
        }
        rests.reverse();
        rests
    }
}
