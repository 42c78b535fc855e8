//! Failures of the full validator as [`Violations`].

use serde_json::Value;

use crate::{
    explain::{
        expected::{list, listed, literal, quote, shorten},
        rules::describe,
    },
    full::{
        failure::{Detail, Failure},
        nodes::Validator,
        run::BudgetExceeded,
    },
    infer::order::NULLABLE,
    violations::{Violation, Violations},
};

/// The maximum depth up to which nested alternatives are explained.
const MAX_NESTING: usize = 4;

/// Validates a value whose JSON is `length` bytes long, and returns the violations.
pub(crate) fn explain(
    validator: &Validator,
    instance: &Value,
    length: usize,
) -> Result<(), Violations> {
    let failures = match validator.accepts(instance, length) {
        Ok(true) => return Ok(()),
        // Failures are collected only in a second run, since most values are valid.
        Ok(false) => validator.failures(instance, length),
        Err(BudgetExceeded) => Err(BudgetExceeded),
    };
    let Ok(failures) = failures else {
        return Err(Violations::one(
            "",
            "validation takes too many steps: the value or its schema is too large or nested too deeply",
        ));
    };
    let mut explainer = Explainer {
        found: Violations {
            failures: Vec::new(),
            is_cut: false,
        },
    };
    for failure in &failures {
        explainer.add(failure, 0);
    }
    Err(explainer.found)
}

/// A place in a value that the schema does not accept.
pub(crate) struct RefusedPlace<'a> {
    pub(crate) pointer: &'a str,
    /// Whether the schema accepts no string there.
    pub(crate) refuses_strings: bool,
}

/// The places that [`explain`] names, without a bound.
pub(crate) fn places<'a>(failures: &'a [Failure<'_, '_>]) -> Vec<RefusedPlace<'a>> {
    let mut places = Vec::new();
    add_places(failures, 0, &mut places);
    places
}

fn add_places<'a>(
    failures: &'a [Failure<'_, '_>],
    nesting: usize,
    places: &mut Vec<RefusedPlace<'a>>,
) {
    for failure in failures {
        if let Detail::Alternatives(all) = &failure.detail
            && let Some(meant) = meant(failure, all).filter(|_| nesting < MAX_NESTING)
        {
            add_places(meant, nesting + 1, places);
            continue;
        }
        places.push(RefusedPlace {
            pointer: &failure.pointer,
            refuses_strings: refuses_strings(failure),
        });
    }
}

/// Whether a failure shows that the schema accepts no string.
fn refuses_strings(failure: &Failure<'_, '_>) -> bool {
    if let Detail::Alternatives(all) = &failure.detail {
        let refuses = |branch: &Vec<Failure<'_, '_>>| {
            let mut here = branch.iter().filter(|it| it.pointer == failure.pointer);
            here.any(refuses_strings)
        };
        return all.iter().all(refuses);
    }
    match failure.keyword {
        "type" => true,
        "enum" | "const" => failure
            .place
            .as_object()
            .and_then(listed)
            .is_some_and(|values| !values.iter().any(Value::is_string)),
        _ => false,
    }
}

struct Explainer {
    found: Violations,
}

impl Explainer {
    fn add(&mut self, failure: &Failure<'_, '_>, nesting: usize) {
        if self.found.failures.len() >= Violations::MAX {
            self.found.is_cut = true;
            return;
        }
        let mut pointer = failure.pointer.as_str();
        let mut message = None;
        if let Detail::Alternatives(all) = &failure.detail {
            if let Some(meant) = meant(failure, all).filter(|_| nesting < MAX_NESTING) {
                for failure in meant {
                    self.add(failure, nesting + 1);
                }
                return;
            }
            if let Some(tag) = unknown_tag(all) {
                (pointer, message) = (tag.0, Some(tag.1));
            }
        }
        let failure = Violation {
            pointer: shorten(pointer),
            message: message.unwrap_or_else(|| describe(failure)),
        };
        if !self.found.failures.contains(&failure) {
            self.found.failures.push(failure);
        }
    }
}

/// The alternative that the value was most likely meant for: the only one that matches its type and its tag.
fn meant<'a, 'v, 'i>(
    failure: &Failure<'v, 'i>,
    all: &'a [Vec<Failure<'v, 'i>>],
) -> Option<&'a [Failure<'v, 'i>]> {
    if failure.place.get(NULLABLE).is_some() {
        return all.first().map(Vec::as_slice);
    }
    let here = failure.pointer.as_str();
    let mut candidates = all.iter().filter(|branch| !is_other(branch, here));
    let only = candidates.next()?;
    candidates.next().is_none().then_some(only.as_slice())
}

/// Whether the failures of an alternative show that the value was meant for another one: they concern the type of the
/// value, a tag, or the set of members.
fn is_other(branch: &[Failure<'_, '_>], here: &str) -> bool {
    let mut lacks_member = false;
    let mut has_stranger = false;
    for failure in branch.iter().filter(|it| it.pointer == here) {
        match (failure.keyword, &failure.detail) {
            ("type" | "const" | "enum", _) => return true,
            (_, Detail::Missing(name)) if is_tag(failure, name) => return true,
            (_, Detail::Missing(_)) => lacks_member = true,
            ("additionalProperties", _) => has_stranger = true,
            _ => {}
        }
    }
    lacks_member && has_stranger || tag_failure(branch).is_some()
}

fn is_tag(failure: &Failure<'_, '_>, name: &str) -> bool {
    let properties = failure.place.get("properties");
    let schema = properties.and_then(|properties| properties.get(name)?.as_object());
    schema
        .and_then(listed)
        .is_some_and(|values| values.len() == 1)
}

/// The failure of an alternative that shows that a member does not have its only allowed value.
fn tag_failure<'a, 'v, 'i>(
    branch: &'a [Failure<'v, 'i>],
) -> Option<(&'a Failure<'v, 'i>, &'v Value)> {
    branch.iter().find_map(|failure| {
        let values = match failure.keyword {
            "const" | "enum" => listed(failure.place.as_object()?)?,
            _ => return None,
        };
        match values {
            [only] => Some((failure, only)),
            _ => None,
        }
    })
}

/// If each alternative requires another value of the same member: that member and the allowed values.
fn unknown_tag<'a>(all: &'a [Vec<Failure<'_, '_>>]) -> Option<(&'a str, String)> {
    let tags: Vec<_> = all
        .iter()
        .map(|branch| tag_failure(branch))
        .collect::<Option<_>>()?;
    let (first, _) = tags.first()?;
    let place = first.pointer.as_str();
    if tags.iter().any(|(failure, _)| failure.pointer != place) {
        return None;
    }
    let accepted = list(tags.iter().map(|(_, value)| literal(value)));
    Some((
        place,
        format!(
            "{} is not accepted; expected one of {accepted}",
            quote(&first.instance)
        ),
    ))
}
