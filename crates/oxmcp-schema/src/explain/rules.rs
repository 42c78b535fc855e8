//! Messages for failures of single keywords.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    explain::{
        expected::{brief, either, expected, list, quote, quote_text, shorten},
        misfit::misfit,
        spelling::nearest,
    },
    full::failure::{Detail, Failure},
    infer::order::{self, NULLABLE},
};

/// The message for a failure.
pub(crate) fn describe(failure: &Failure<'_, '_>) -> String {
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
                expected_or_null(failure.place)
            )
        }
        ("type" | "enum" | "const", _) => {
            format!(
                "expected {}, got {}",
                expected_or_null(failure.place),
                brief(instance)
            )
        }
        (_, Detail::Alternatives(all)) => {
            format!("expected {}, got {}", forms(failure, all), brief(instance))
        }
        _ => limits(failure),
    }
}

/// Describes the values that the alternatives accept. The target of a reference is taken from its failures.
fn forms(failure: &Failure<'_, '_>, all: &[Vec<Failure<'_, '_>>]) -> String {
    let forms = failure.place.get(failure.keyword).and_then(Value::as_array);
    let is_reference = |form: &Value| form.get("$ref").is_some();
    let forms = forms.filter(|forms| forms.iter().any(is_reference));
    let Some(forms) = forms else {
        return expected_or_null(failure.place);
    };
    either(forms.iter().zip(all).map(|(form, branch)| {
        let here = branch.iter().find(|it| it.pointer == failure.pointer);
        match here {
            Some(here) if is_reference(form) => expected(here.place),
            _ => expected(form),
        }
    }))
}

/// Describes the accepted values as the schema is advertised: without a tolerated null.
fn expected_or_null(place: &Value) -> String {
    if place.get(NULLABLE).is_none() {
        return expected(place);
    }
    let mut place = place.clone();
    if let Some(map) = place.as_object_mut() {
        crate::infer::portable::forbid_null(map);
    }
    expected(&place)
}

/// The values that a schema accepts, in parentheses; empty if there is nothing to say about them.
fn in_parentheses(schema: Option<&Value>) -> String {
    match schema.map(expected) {
        Some(what) if what != "another value" => format!(" ({what})"),
        _ => String::new(),
    }
}

fn missing(place: &Value, instance: &Value, name: &str) -> String {
    let schema = place
        .get("properties")
        .and_then(|properties| properties.get(name));
    let what = in_parentheses(schema);
    let known = |candidate: &str| {
        place
            .get("properties")
            .is_some_and(|known| known.get(candidate).is_some())
    };
    let unknown = instance
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str());
    let hint = match nearest(name, unknown.filter(|name| !known(name))) {
        Some(stranger) => format!("; found {} instead", quote_text(stranger)),
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
                format!("{names} {is_are} not accepted; names must match {patterns}")
            }
            ("additionalProperties", None) => {
                "no properties are accepted; expected an empty object, {}".to_owned()
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

/// The messages for keywords with a number or a pattern.
pub(crate) fn limits(failure: &Failure<'_, '_>) -> String {
    let instance = &*failure.instance;
    let place = failure.place;
    let got = || quote(instance);
    let limit = || quote(place.get(failure.keyword).unwrap_or(&Value::Null));
    let length = || instance.as_str().map_or(0, |text| text.chars().count());
    let count = || match instance {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    // In draft-04, a second keyword excludes the limit itself.
    let excludes = |keyword: &str| place.get(keyword) == Some(&Value::Bool(true));
    match failure.keyword {
        "minimum" if !excludes("exclusiveMinimum") => {
            format!("{} is too small; expected at least {}", got(), limit())
        }
        "maximum" if !excludes("exclusiveMaximum") => {
            format!("{} is too large; expected at most {}", got(), limit())
        }
        "minimum" | "exclusiveMinimum" => {
            format!("{} is too small; expected more than {}", got(), limit())
        }
        "maximum" | "exclusiveMaximum" => {
            format!("{} is too large; expected less than {}", got(), limit())
        }
        "multipleOf" => format!("{} is not a multiple of {}", got(), limit()),
        "minLength" => format!(
            "{} is too short (length {}); expected at least {}",
            got(),
            length(),
            limit()
        ),
        "maxLength" => format!(
            "{} is too long (length {}); expected at most {}",
            got(),
            length(),
            limit()
        ),
        "pattern" => {
            let pattern = place.get("pattern").and_then(Value::as_str);
            let pattern = shorten(pattern.unwrap_or_default());
            format!("{} does not match the pattern {pattern}", got())
        }
        "minItems" => format!("too few items ({}); expected at least {}", count(), limit()),
        "maxItems" => format!("too many items ({}); expected at most {}", count(), limit()),
        "additionalItems" => {
            let most = place
                .get("items")
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            format!("too many items ({}); expected at most {most}", count())
        }
        "minProperties" => format!(
            "too few properties ({}); expected at least {}",
            count(),
            limit()
        ),
        "maxProperties" => format!(
            "too many properties ({}); expected at most {}",
            count(),
            limit()
        ),
        "uniqueItems" => "the items are not unique".to_owned(),
        _ => rules(failure),
    }
}

/// The messages for keywords with other schemas.
fn rules(failure: &Failure<'_, '_>) -> String {
    let instance = &*failure.instance;
    let number = |keyword: &str| failure.place.get(keyword).map(quote);
    let wanted = in_parentheses(failure.place.get("contains"));
    match (failure.keyword, &failure.detail) {
        ("contains", _) => match number("minContains") {
            Some(least) => {
                format!("too few items match \"contains\"{wanted}; expected at least {least}")
            }
            None => format!("no item matches \"contains\"{wanted}"),
        },
        ("maxContains", _) => format!(
            "too many items match \"contains\"{wanted}; expected at most {}",
            number("maxContains").unwrap_or_default()
        ),
        ("not", _) => {
            let refused = failure.place.get("not").unwrap_or(&Value::Null);
            format!(
                "{} is not accepted; expected anything but {}",
                brief(instance),
                expected(refused)
            )
        }
        ("oneOf", Detail::Several) => {
            "more than one alternative matches; expected exactly one".to_owned()
        }
        (_, Detail::Name(failure)) => format!("the name {}", describe(failure)),
        _ => format!("no value is accepted here, got {}", brief(instance)),
    }
}
