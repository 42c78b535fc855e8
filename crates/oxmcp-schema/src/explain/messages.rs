//! Failures of the full validator as [`Violations`].

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    explain::{
        expected::{brief, either, expected, list, listed, literal, quote, quote_text, shorten},
        misfit::misfit,
        rules,
        spelling::nearest,
    },
    full::{
        compile::Validator,
        failure::{Detail, Failure},
        run::TooMuchWork,
    },
    infer::order::{self, NULLABLE},
    violations::{Violation, Violations},
};

/// How deep alternatives within alternatives are explained.
const MAX_NESTING: usize = 4;

/// What `validator` has against a value whose JSON is `length` bytes long.
pub(crate) fn explain(
    validator: &Validator,
    instance: &Value,
    length: usize,
) -> Result<(), Violations> {
    let failures = match validator.accepts(instance, length) {
        Ok(true) => return Ok(()),
        // Only now is it worth while to remember what is found on the way.
        Ok(false) => validator.failures(instance, length),
        Err(TooMuchWork) => Err(TooMuchWork),
    };
    let Ok(failures) = failures else {
        return Err(Violations::one(
            "",
            "to hold the value against the schema takes too much work: they are too deep, or too large together",
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
            message: message.unwrap_or_else(|| tell(failure)),
        };
        if !self.found.failures.contains(&failure) {
            self.found.failures.push(failure);
        }
    }
}

pub(crate) fn tell(failure: &Failure<'_, '_>) -> String {
    let instance = &*failure.instance;
    let is_scalar = !instance.is_array() && !instance.is_object();
    match (failure.keyword, &failure.detail) {
        ("dependentRequired", Detail::Missing(name)) => format!("{} is missing", quote_text(name)),
        (_, Detail::Missing(name)) => missing(failure.place, instance, name),
        (_, Detail::Unexpected(names)) => unknown(failure, names),
        (_, Detail::Misfit(what)) => misfit(*what, instance),
        ("enum" | "const", _) if is_scalar => {
            format!(
                "{} is not accepted; expected {}",
                quote(instance),
                wanted(failure.place)
            )
        }
        ("type" | "enum" | "const", _) => {
            format!(
                "expected {}, got {}",
                wanted(failure.place),
                brief(instance)
            )
        }
        (_, Detail::Alternatives(all)) => {
            format!("expected {}, got {}", forms(failure, all), brief(instance))
        }
        _ => rules::limits(failure),
    }
}

/// What the alternatives accept. What a reference stands for is known by what it has against the value.
fn forms(failure: &Failure<'_, '_>, all: &[Vec<Failure<'_, '_>>]) -> String {
    let forms = failure.place.get(failure.keyword).and_then(Value::as_array);
    let is_reference = |form: &Value| form.get("$ref").is_some();
    let forms = forms.filter(|forms| forms.iter().any(is_reference));
    let Some(forms) = forms else {
        return wanted(failure.place);
    };
    either(forms.iter().zip(all).map(|(form, branch)| {
        let here = branch.iter().find(|it| it.pointer == failure.pointer);
        match here {
            Some(here) if is_reference(form) => expected(here.place),
            _ => expected(form),
        }
    }))
}

/// The alternative that the value was meant to be: the only one that has its kind and its tag.
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

/// Whether the failures against an alternative say that something else was meant: another kind of value, another tag,
/// other members.
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
    lacks_member && has_stranger || tag_offence(branch).is_some()
}

fn is_tag(failure: &Failure<'_, '_>, name: &str) -> bool {
    let properties = failure.place.get("properties");
    let schema = properties.and_then(|properties| properties.get(name)?.as_object());
    schema
        .and_then(listed)
        .is_some_and(|values| values.len() == 1)
}

/// The failure against an alternative that says that a member is not the one value that it has to be.
fn tag_offence<'a, 'v, 'i>(
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

/// Where each alternative wants another value of the same member, that member and its values.
fn unknown_tag<'a>(all: &'a [Vec<Failure<'_, '_>>]) -> Option<(&'a str, String)> {
    let tags: Vec<_> = all
        .iter()
        .map(|branch| tag_offence(branch))
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

/// What is accepted, as it is advertised: a tolerated null is not.
fn wanted(place: &Value) -> String {
    if place.get(NULLABLE).is_none() {
        return expected(place);
    }
    let mut place = place.clone();
    if let Some(map) = place.as_object_mut() {
        crate::infer::portable::forbid_null(map);
    }
    expected(&place)
}

fn missing(place: &Value, instance: &Value, name: &str) -> String {
    let schema = place
        .get("properties")
        .and_then(|properties| properties.get(name));
    let what = match schema.map(expected) {
        Some(what) if what != "another value" => format!(" ({what})"),
        _ => String::new(),
    };
    let known = |candidate: &str| {
        place
            .get("properties")
            .is_some_and(|known| known.get(candidate).is_some())
    };
    let strangers = instance
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str());
    let hint = match nearest(name, strangers.filter(|stranger| !known(stranger))) {
        Some(stranger) => format!("; {} is not its name", quote_text(stranger)),
        None => String::new(),
    };
    format!("{} is missing{what}{hint}", quote_text(name))
}

fn unknown(failure: &Failure<'_, '_>, unexpected: &[Cow<'_, str>]) -> String {
    let (place, instance) = (failure.place, &*failure.instance);
    let names = list(unexpected.iter().map(|name| quote_text(name)));
    let is_are = if unexpected.len() == 1 { "is" } else { "are" };
    let properties = order::property_names(place);
    if properties.is_empty() {
        let patterns = place.get("patternProperties").and_then(Value::as_object);
        return match (failure.keyword, patterns) {
            (_, Some(patterns)) => {
                let patterns = list(patterns.keys().map(|pattern| shorten(pattern)));
                format!("{names} {is_are} not accepted; names have to match {patterns}")
            }
            ("additionalProperties", None) => {
                "it takes no properties; expected an empty object, {}".to_owned()
            }
            _ => format!("{names} {is_are} not accepted"),
        };
    }
    let free = properties
        .iter()
        .copied()
        .filter(|name| instance.get(name).is_none());
    let hint = match unexpected {
        [only] => nearest(only, free).map(|name| format!("; did you mean {}?", quote_text(name))),
        _ => None,
    };
    let accepted = list(properties.iter().copied().map(quote_text));
    format!(
        "{names} {is_are} not accepted{} (accepted: {accepted})",
        hint.unwrap_or_default()
    )
}
