//! From the findings of the full validator to [`Violations`].

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind as Kind};
use serde_json::Value;

use super::{
    expected::{brief, expected, list, listed, literal, quote, quote_text, shorten},
    order::{self, NULLABLE},
    spelling::nearest,
    violations::{Violation, Violations},
};

/// How long the JSON of a value may be for all that is wrong with it to be collected, in bytes. The validator keeps
/// a finding for each bad item, so that megabytes of them would take gigabytes.
const MAX_SEARCHED: usize = 64 << 10;
/// How deep alternatives within alternatives are explained.
const MAX_NESTING: usize = 4;

/// What `validator`, which was made from `schema`, has against a value whose JSON is `length` bytes long.
pub(super) fn explain(
    validator: &Validator,
    schema: &Value,
    instance: &Value,
    length: usize,
) -> Result<(), Violations> {
    if length > MAX_SEARCHED {
        return explain_large(validator, schema, instance);
    }
    let mut explainer = Explainer {
        schema,
        found: Violations {
            offences: Vec::new(),
            is_cut: false,
        },
    };
    for error in validator.iter_errors(instance) {
        explainer.add(&error, 0);
    }
    explainer.finish()
}

/// Says what is wrong first, if that can be had without collecting the rest.
fn explain_large(
    validator: &Validator,
    schema: &Value,
    instance: &Value,
) -> Result<(), Violations> {
    if validator.is_valid(instance) {
        return Ok(());
    }
    let mut explainer = Explainer {
        schema,
        found: Violations {
            offences: Vec::new(),
            is_cut: false,
        },
    };
    if has_alternatives(schema) {
        explainer.found = Violations::one(
            "",
            "the value does not match the schema, and is too large to say where",
        );
    } else if let Err(error) = validator.validate(instance) {
        explainer.add(&error, 0);
    }
    explainer.finish()
}

fn has_alternatives(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.contains_key("anyOf")
                || map.contains_key("oneOf")
                || map.values().any(has_alternatives)
        }
        Value::Array(items) => items.iter().any(has_alternatives),
        _ => false,
    }
}

struct Explainer<'a> {
    schema: &'a Value,
    found: Violations,
}

impl<'a> Explainer<'a> {
    fn finish(self) -> Result<(), Violations> {
        if self.found.offences.is_empty() {
            Ok(())
        } else {
            Err(self.found)
        }
    }

    fn add(&mut self, error: &ValidationError<'_>, nesting: usize) {
        if self.found.offences.len() >= Violations::MAX {
            self.found.is_cut = true;
            return;
        }
        let mut pointer = error.instance_path().as_str();
        let mut message = None;
        if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind() {
            if let Some(branch) = self.meant(error, context).filter(|_| nesting < MAX_NESTING) {
                for error in branch {
                    self.add(error, nesting + 1);
                }
                return;
            }
            if let Some(tag) = unknown_tag(context) {
                (pointer, message) = (tag.0, Some(tag.1));
            }
        }
        let offence = Violation {
            pointer: shorten(pointer),
            message: message.unwrap_or_else(|| self.message(error)),
        };
        if !self.found.offences.contains(&offence) {
            self.found.offences.push(offence);
        }
    }

    /// The schema that the failed keyword stands in.
    fn place(&self, error: &ValidationError<'_>) -> &'a Value {
        let location = error.schema_path().as_str();
        let parent = location.rsplit_once('/').map_or("", |(parent, _)| parent);
        self.schema.pointer(parent).unwrap_or(&Value::Null)
    }

    fn message(&self, error: &ValidationError<'_>) -> String {
        let place = self.place(error);
        let instance = error.instance().as_ref();
        match error.kind() {
            Kind::Required { property } => missing(place, instance, property),
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => unknown(place, instance, unexpected),
            Kind::Enum { .. } | Kind::Constant { .. }
                if !instance.is_array() && !instance.is_object() =>
            {
                format!(
                    "{} is not accepted; expected {}",
                    quote(instance),
                    wanted(place)
                )
            }
            Kind::Type { .. }
            | Kind::Enum { .. }
            | Kind::Constant { .. }
            | Kind::AnyOf { .. }
            | Kind::OneOfNotValid { .. } => {
                format!("expected {}, got {}", wanted(place), brief(instance))
            }
            _ => limits(error, instance),
        }
    }

    /// The alternative that the value was meant to be: the only one that has its kind and its tag.
    fn meant<'e>(
        &self,
        error: &ValidationError<'_>,
        context: &'e [Vec<ValidationError<'static>>],
    ) -> Option<&'e [ValidationError<'static>]> {
        if self.place(error).get(NULLABLE).is_some() {
            return context.first().map(Vec::as_slice);
        }
        let here = error.instance_path().as_str();
        let mut candidates = context.iter().filter(|branch| !self.is_other(branch, here));
        let only = candidates.next()?;
        candidates.next().is_none().then_some(only.as_slice())
    }

    /// Whether the errors of an alternative say that something else was meant: another kind of value, another tag,
    /// other members.
    fn is_other(&self, branch: &[ValidationError<'_>], here: &str) -> bool {
        let at_here = |error: &&ValidationError<'_>| error.instance_path().as_str() == here;
        let mut lacks_member = false;
        for error in branch.iter().filter(at_here) {
            match error.kind() {
                Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. } => return true,
                Kind::Required { property } if self.is_tag(error, property) => return true,
                Kind::Required { .. } => lacks_member = true,
                _ => {}
            }
        }
        let has_stranger =
            |error: &ValidationError<'_>| matches!(error.kind(), Kind::AdditionalProperties { .. });
        let is_other_shape = lacks_member && branch.iter().filter(at_here).any(has_stranger);
        is_other_shape || tag_error(branch).is_some()
    }

    fn is_tag(&self, error: &ValidationError<'_>, property: &Value) -> bool {
        let properties = self.place(error).get("properties");
        let schema = property
            .as_str()
            .and_then(|name| properties?.get(name)?.as_object());
        schema
            .and_then(listed)
            .is_some_and(|values| values.len() == 1)
    }
}

/// The error of an alternative that says that a member is not the one value that it has to be.
fn tag_error<'a, 'e>(
    branch: &'a [ValidationError<'e>],
) -> Option<(&'a ValidationError<'e>, &'a Value)> {
    branch.iter().find_map(|error| match error.kind() {
        Kind::Constant { expected_value } => Some((error, expected_value.as_ref())),
        Kind::Enum { options } => match options.as_array()?.as_slice() {
            [only] => Some((error, only)),
            _ => None,
        },
        _ => None,
    })
}

/// Where each alternative wants another value of the same member, that member and its values.
fn unknown_tag<'a>(context: &'a [Vec<ValidationError<'static>>]) -> Option<(&'a str, String)> {
    let tags: Vec<_> = context
        .iter()
        .map(|branch| tag_error(branch))
        .collect::<Option<_>>()?;
    let (first, _) = tags.first()?;
    let place = first.instance_path().as_str();
    if tags
        .iter()
        .any(|(error, _)| error.instance_path().as_str() != place)
    {
        return None;
    }
    let accepted = list(tags.iter().map(|(_, value)| literal(value)));
    Some((
        place,
        format!(
            "{} is not accepted; expected one of {accepted}",
            quote(first.instance())
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
        super::portable::forbid_null(map);
    }
    expected(&place)
}

fn missing(place: &Value, instance: &Value, property: &Value) -> String {
    let name = property.as_str().unwrap_or_default();
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
    format!("{} is missing{what}{hint}", quote(property))
}

fn unknown(place: &Value, instance: &Value, unexpected: &[String]) -> String {
    let names = list(unexpected.iter().map(|name| quote_text(name)));
    let is_are = if unexpected.len() == 1 { "is" } else { "are" };
    let properties = order::property_names(place);
    if properties.is_empty() {
        return format!("{names} {is_are} not accepted; no members are accepted");
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

/// The messages of what is told by a number or a pattern.
fn limits(error: &ValidationError<'_>, instance: &Value) -> String {
    let got = || quote(instance);
    let length = || instance.as_str().map_or(0, |text| text.chars().count());
    let count = || match instance {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    match error.kind() {
        Kind::Minimum { limit } => format!("{} is too small; expected at least {limit}", got()),
        Kind::Maximum { limit } => format!("{} is too large; expected at most {limit}", got()),
        Kind::ExclusiveMinimum { limit } => {
            format!("{} is too small; expected more than {limit}", got())
        }
        Kind::ExclusiveMaximum { limit } => {
            format!("{} is too large; expected less than {limit}", got())
        }
        Kind::MultipleOf { multiple_of } => format!("{} is not a multiple of {multiple_of}", got()),
        Kind::MinLength { limit } => {
            format!(
                "{} is too short ({} characters); expected at least {limit}",
                got(),
                length()
            )
        }
        Kind::MaxLength { limit } => {
            format!(
                "{} is too long ({} characters); expected at most {limit}",
                got(),
                length()
            )
        }
        Kind::Pattern { pattern } => {
            format!("{} does not match the pattern {}", got(), shorten(pattern))
        }
        Kind::MinItems { limit } => {
            format!("{} items are too few; expected at least {limit}", count())
        }
        Kind::MaxItems { limit } => {
            format!("{} items are too many; expected at most {limit}", count())
        }
        Kind::AdditionalItems { limit } => {
            format!("{} items are too many; expected at most {limit}", count())
        }
        Kind::MinProperties { limit } => {
            format!("{} members are too few; expected at least {limit}", count())
        }
        Kind::MaxProperties { limit } => {
            format!("{} members are too many; expected at most {limit}", count())
        }
        Kind::UniqueItems => "the items are not all different".to_owned(),
        Kind::Contains => "no item is what one has to be".to_owned(),
        // An object that has no properties at all: the error is about the first member and does not name it.
        Kind::FalseSchema
            if error
                .schema_path()
                .as_str()
                .ends_with("/additionalProperties") =>
        {
            "it takes no properties; expected an empty object, {}".into()
        }
        Kind::FalseSchema => format!("nothing is accepted here, got {}", brief(instance)),
        Kind::Not { schema } => format!(
            "{} is not accepted; expected anything but {}",
            brief(instance),
            expected(schema)
        ),
        Kind::OneOfMultipleValid { .. } => {
            "this matches several of the forms that exclude each other".to_owned()
        }
        Kind::PropertyNames { error } => format!("the name {}", limits(error, error.instance())),
        _ => shorten(&error.masked().to_string()),
    }
}
