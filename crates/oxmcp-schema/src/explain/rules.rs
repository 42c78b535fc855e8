//! Failures of single keywords, in words.

use serde_json::Value;

use crate::{
    explain::{
        expected::{brief, expected, quote, shorten},
        messages::tell,
    },
    full::failure::{Detail, Failure},
};

/// The messages of what is told by a number or a pattern.
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
    // The oldest dialect says by a second keyword that the limit itself is too much.
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
            "{} is too short ({} characters); expected at least {}",
            got(),
            length(),
            limit()
        ),
        "maxLength" => format!(
            "{} is too long ({} characters); expected at most {}",
            got(),
            length(),
            limit()
        ),
        "pattern" => {
            let pattern = place.get("pattern").and_then(Value::as_str);
            let pattern = shorten(pattern.unwrap_or_default());
            format!("{} does not match the pattern {pattern}", got())
        }
        "minItems" => format!(
            "{} items are too few; expected at least {}",
            count(),
            limit()
        ),
        "maxItems" => format!(
            "{} items are too many; expected at most {}",
            count(),
            limit()
        ),
        "additionalItems" => {
            let most = place
                .get("items")
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            format!("{} items are too many; expected at most {most}", count())
        }
        "minProperties" => format!(
            "{} members are too few; expected at least {}",
            count(),
            limit()
        ),
        "maxProperties" => format!(
            "{} members are too many; expected at most {}",
            count(),
            limit()
        ),
        "uniqueItems" => "the items are not all different".to_owned(),
        _ => rules(failure),
    }
}

/// The messages of what is told by other schemas.
fn rules(failure: &Failure<'_, '_>) -> String {
    let instance = &*failure.instance;
    let number = |keyword: &str| failure.place.get(keyword).map(quote);
    match (failure.keyword, &failure.detail) {
        ("contains", _) => match number("minContains") {
            Some(least) => format!("fewer than {least} items are what the array has to contain"),
            None => "no item is what one has to be".to_owned(),
        },
        ("maxContains", _) => format!(
            "more than {} items are what the array may contain of that kind",
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
            "this matches several of the forms that exclude each other".to_owned()
        }
        (_, Detail::Name(failure)) => format!("the name {}", tell(failure)),
        _ => format!("nothing is accepted here, got {}", brief(instance)),
    }
}
