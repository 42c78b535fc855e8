//! Validation of an answer against the form that it answers.
//!
//! See [requested schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).

use std::collections::{HashMap, HashSet};

use serde_json::{
    Number, Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    types::elicitation::{
        expected::{PRIMITIVE, SHOWN, expected, got},
        schema::{ElicitSchema, NumberKind, NumberSchema, PrimitiveSchema, StringSchema},
        select::{EnumOptions, MultiSelectSchema},
    },
    values::json::JsonObject,
};

/// Checks the content that a user filled in against the form. The `pattern` of a field is not checked.
///
/// # Errors
/// If fields do not fit or are missing, with the expected value of each (of the first [`SHOWN`]).
fn check(schema: &ElicitSchema, content: &JsonObject) -> Result<(), String> {
    let fields: HashMap<&str, &PrimitiveSchema> = schema.properties.iter().collect();
    let wrong = content.iter().filter_map(|(name, value)| {
        let expected = match fields.get(&**name) {
            Some(field) if fits(field, value) => return None,
            Some(field) => expected(field),
            // Forms do not forbid additional fields.
            None if is_primitive(value) => return None,
            None => PRIMITIVE.into(),
        };
        Some(format!("{name:?}: expected {expected}, got {}", got(value)))
    });
    let required: HashSet<&str> = schema.required.iter().map(String::as_str).collect();
    let missing = required
        .into_iter()
        .filter(|name| !content.contains_key(*name));
    let missing = missing.map(|name| {
        let expected = fields
            .get(name)
            .map_or_else(|| PRIMITIVE.into(), |field| expected(field));
        format!("{name:?} is missing ({expected})")
    });
    let mut problems: Vec<String> = wrong.chain(missing).collect();
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort_unstable();
    let more = problems.len().saturating_sub(SHOWN);
    problems.truncate(SHOWN);
    if more > 0 {
        problems.push(format!("and {more} more"));
    }
    Err(problems.join("; "))
}

impl ElicitSchema {
    /// Returns the content to send: the fields that a user filled in, and the defaults of the form for fields that were left out.
    ///
    /// # Errors
    /// If fields do not fit or are missing, with the expected value of each, or if the content is not an object.
    #[expect(
        clippy::missing_panics_doc,
        reason = "it cannot happen, as the message says"
    )]
    pub fn complete(&self, content: Option<&RawValue>) -> Result<Box<RawValue>, String> {
        let text = content.map_or("{}", RawValue::get);
        // Some languages write an object without members as a list.
        let text = if text == "[]" { "{}" } else { text };
        let Ok(mut object) = serde_json::from_str::<JsonObject>(text) else {
            return Err(
                "the content of a form must be an object with a member for each field".into(),
            );
        };
        // Many types serialize a field that was left out as null.
        object.retain(|_, value| !value.is_null());
        for (name, field) in &self.properties {
            if !object.contains_key(name)
                && let Some(default) = default(field).filter(|default| fits(field, default))
            {
                object.insert(name.into(), default);
            }
        }
        if let Err(problems) = check(self, &object) {
            read_texts(self, &mut object);
            check(self, &object).map_err(|_| problems)?;
        }
        Ok(to_raw_value(&object).expect("a JSON object is always JSON"))
    }
}

/// Reads numbers, booleans and lists that a client has sent as text, as forms of web pages give them.
fn read_texts(schema: &ElicitSchema, object: &mut JsonObject) {
    for (name, field) in &schema.properties {
        let is_text = !matches!(
            field,
            PrimitiveSchema::Number(_)
                | PrimitiveSchema::Boolean(_)
                | PrimitiveSchema::MultiSelect(_)
        );
        let Some(value) = object.get_mut(name).filter(|_| !is_text) else {
            continue;
        };
        if let Some(read) = value
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok())
        {
            *value = read;
        }
    }
}

fn default(field: &PrimitiveSchema) -> Option<Value> {
    match field {
        PrimitiveSchema::String(field) => field.default.clone().map(Value::from),
        PrimitiveSchema::Number(field) => number(field.default?).map(Value::Number),
        PrimitiveSchema::Boolean(field) => field.default.map(Value::from),
        PrimitiveSchema::SingleSelect(field) => field.default.clone().map(Value::from),
        PrimitiveSchema::MultiSelect(field) => field.default.clone().map(Value::from),
        PrimitiveSchema::Unknown(field) => field.get("default").cloned(),
    }
}

/// Converts a number to JSON. A whole number is written without a fraction.
fn number(number: f64) -> Option<Number> {
    let text = number.to_string();
    serde_json::from_str(&text)
        .ok()
        .or_else(|| Number::from_f64(number))
}

fn fits(field: &PrimitiveSchema, value: &Value) -> bool {
    match field {
        PrimitiveSchema::String(field) => value.as_str().is_some_and(|text| fits_text(field, text)),
        PrimitiveSchema::Number(field) => fits_number(field, value),
        PrimitiveSchema::Boolean(_) => value.is_boolean(),
        PrimitiveSchema::SingleSelect(field) => is_option(&field.options, value),
        PrimitiveSchema::MultiSelect(field) => fits_choices(field, value),
        PrimitiveSchema::Unknown(_) => is_primitive(value),
    }
}

fn fits_text(field: &StringSchema, text: &str) -> bool {
    let length = text.chars().count() as u64;
    within(
        &length,
        field.min_length.as_ref(),
        field.max_length.as_ref(),
    ) && field.format.as_ref().is_none_or(|format| format.fits(text))
}

fn fits_number(field: &NumberSchema, value: &Value) -> bool {
    let Some(number) = value.as_f64() else {
        return false;
    };
    let is_of_kind = match field.kind {
        NumberKind::Number => true,
        NumberKind::Integer => number.fract() == 0.0,
    };
    is_of_kind && within(&number, field.minimum.as_ref(), field.maximum.as_ref())
}

fn fits_choices(field: &MultiSelectSchema, value: &Value) -> bool {
    value.as_array().is_some_and(|values| {
        let count = values.len() as u64;
        // A set, because a peer can make both lists long.
        let options: HashSet<&str> = field.options.values().collect();
        let is_option = |value: &Value| value.as_str().is_some_and(|it| options.contains(it));
        within(&count, field.min_items.as_ref(), field.max_items.as_ref())
            && values.iter().all(is_option)
    })
}

fn is_option(options: &EnumOptions, value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| options.values().any(|option| option == text))
}

fn within<T: PartialOrd>(value: &T, least: Option<&T>, most: Option<&T>) -> bool {
    least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most)
}

fn is_primitive(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(values) => values.iter().all(Value::is_string),
        Value::Null | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection, option, prelude::*, sample};
    use serde_json::json;

    use super::*;
    use crate::types::elicitation::{
        schema::{BooleanSchema, StringFormat},
        select::SingleSelectSchema,
    };

    fn form() -> ElicitSchema {
        let sizes = EnumOptions::titled([("s", "Small"), ("l", "Large")]);
        ElicitSchema::new()
            .required(
                "name",
                StringSchema::default()
                    .with_min_length(2_u64)
                    .with_max_length(5_u64),
            )
            .required("age", NumberSchema::integer().with_minimum(18))
            .optional(
                "email",
                StringSchema::default().with_format(StringFormat::Email),
            )
            .optional("agree", BooleanSchema::default().with_default(true))
            .optional(
                "size",
                SingleSelectSchema::new(sizes.clone()).with_default("s"),
            )
            .optional(
                "sizes",
                MultiSelectSchema::new(sizes)
                    .with_min_items(1_u64)
                    .with_max_items(2_u64),
            )
    }

    fn checked(content: Value) -> Result<(), String> {
        let Value::Object(content) = content else {
            panic!("not an object");
        };
        check(&form(), &content)
    }

    /// With a search through all options for each choice this test would take minutes.
    #[test]
    fn long_list_is_checked_in_linear_time() {
        let all: Vec<String> = (0..200_000).map(|it| format!("option-{it}")).collect();
        let field = MultiSelectSchema::new(EnumOptions::Untitled(all.clone()));
        let choices = Value::from(all);
        assert!(fits_choices(&field, &choices));
        let form = ElicitSchema::new().optional("list", field);
        let wrong = json!({"list": ["option-1", "none"]});
        assert!(check(&form, wrong.as_object().unwrap()).is_err());
    }

    #[test]
    fn valid_content_is_accepted() {
        for more in [
            json!({}),
            json!({"email": "a@b.example"}),
            json!({"agree": false, "size": "l", "sizes": ["s", "l"]}),
            json!({"age": 18.0}),
            json!({"extra": "field", "others": ["a"]}),
        ] {
            let mut content = json!({"name": "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", "age": 40});
            for (name, value) in more.as_object().unwrap() {
                content[name] = value.clone();
            }
            assert_eq!(checked(content), Ok(()), "{more}");
        }
    }

    #[test]
    fn invalid_content_error_names_the_expected_value() {
        let told = |name: &str, value: Value| {
            let mut content = json!({"name": "Ann", "age": 40});
            content[name] = value;
            checked(content).unwrap_err()
        };
        insta::assert_snapshot!(
            [
                told("name", json!("A")),
                told("name", json!(7)),
                told("age", json!(17)),
                told("age", json!(18.5)),
                told("age", json!("18")),
                told("email", json!("me")),
                told("agree", json!("yes")),
                told("size", json!("m")),
                told("sizes", json!([])),
                told("sizes", json!(["s", "m"])),
                told("more", json!({"a": 1})),
                checked(json!({"age": null})).unwrap_err(),
            ]
            .join("\n"),
            @r#"
        "name": expected a string of 2 to 5 characters, got the string "A"
        "name": expected a string of 2 to 5 characters, got the number 7
        "age": expected an integer of at least 18, got the number 17
        "age": expected an integer of at least 18, got the number 18.5
        "age": expected an integer of at least 18, got the string "18"
        "email": expected an email address, such as name@example.com, got the string "me"
        "agree": expected true or false, got the string "yes"
        "size": expected one of "s", "l", got the string "m"
        "sizes": expected an array of 1 to 2 entries, each one of "s", "l", got the array []
        "sizes": expected an array of 1 to 2 entries, each one of "s", "l", got the array ["s","m"]
        "more": expected a string, a number, true or false, or an array of strings, got an object
        "age": expected an integer of at least 18, got null; "name" is missing (a string of 2 to 5 characters)
        "#
        );
    }

    #[test]
    fn long_errors_are_cut() {
        let many: JsonObject = (0..1000).map(|n| (n.to_string(), json!({}))).collect();
        let error = check(&ElicitSchema::new(), &many).unwrap_err();
        assert!(error.ends_with("; and 990 more"), "{error}");
        let long = "x".repeat(1000);
        let error = checked(json!({"name": long, "age": 40})).unwrap_err();
        assert!(error.len() < 200, "{error}");
    }

    fn completed(content: Option<Value>) -> Result<Value, String> {
        let raw = content.map(|content| to_raw_value(&content).unwrap());
        let completed = form().complete(raw.as_deref())?;
        Ok(serde_json::from_str(completed.get()).unwrap())
    }

    #[test]
    fn omitted_fields_get_their_default() {
        let filled = completed(Some(
            json!({"name": "Ann", "age": 40, "email": null, "size": "l"}),
        ));
        let expected = json!({"name": "Ann", "age": 40, "agree": true, "size": "l"});
        assert_eq!(filled, Ok(expected));
        assert!(completed(None).unwrap_err().contains("\"name\" is missing"));
        assert!(
            completed(Some(json!([1])))
                .unwrap_err()
                .contains("must be an object")
        );
        // A default that the form itself does not allow is not filled in.
        let odd = ElicitSchema::new()
            .optional("n", NumberSchema::integer().with_default(2))
            .optional("x", NumberSchema::integer().with_default(0.5));
        assert_eq!(odd.complete(None).unwrap().get(), r#"{"n":2}"#);
    }

    #[test]
    fn text_is_parsed_as_the_expected_type() {
        let sent = json!({"name": "1234", "age": "40", "agree": "false", "sizes": "[\"s\"]"});
        let read = json!({"name": "1234", "age": 40, "agree": false, "sizes": ["s"], "size": "s"});
        assert_eq!(completed(Some(sent)), Ok(read));
        // The errors are those of the content that was sent.
        let error = completed(Some(json!({"name": "Ann", "age": "17"}))).unwrap_err();
        assert!(error.contains("got the string \"17\""), "{error}");
        let error = completed(Some(json!([]))).unwrap_err();
        assert!(error.contains("\"name\" is missing"), "{error}");
    }

    fn fields() -> impl Strategy<Value = PrimitiveSchema> {
        let small = || option::of(0..4_u64);
        let options = || {
            let values = sample::subsequence(vec!["a", "b", "c"], 1..=3);
            values.prop_map(EnumOptions::untitled)
        };
        prop_oneof![
            (small(), small()).prop_map(|(min_length, max_length)| {
                StringSchema {
                    min_length,
                    max_length,
                    ..StringSchema::default()
                }
                .into()
            }),
            (any::<bool>(), option::of(-3..3), option::of(-3..3)).prop_map(|(whole, min, max)| {
                let kind = if whole {
                    NumberKind::Integer
                } else {
                    NumberKind::Number
                };
                let (minimum, maximum) = (min.map(f64::from), max.map(f64::from));
                NumberSchema {
                    kind,
                    minimum,
                    maximum,
                    ..NumberSchema::default()
                }
                .into()
            }),
            Just(BooleanSchema::default().into()),
            options().prop_map(|options| SingleSelectSchema::new(options).into()),
            (options(), small(), small()).prop_map(|(options, min_items, max_items)| {
                MultiSelectSchema {
                    min_items,
                    max_items,
                    ..MultiSelectSchema::new(options)
                }
                .into()
            }),
        ]
    }

    fn values() -> impl Strategy<Value = Value> {
        let choice = || sample::select(vec!["a", "b", "c", "d", "\u{1f600}\u{1f600}"]);
        prop_oneof![
            choice().prop_map(Value::from),
            "[a-z]{0,5}".prop_map(Value::from),
            (-4..4).prop_map(Value::from),
            (-4..4).prop_map(|n| Value::from(f64::from(n) / 2.0)),
            any::<bool>().prop_map(Value::from),
            collection::vec(choice(), 0..4).prop_map(Value::from),
        ]
    }

    proptest! {
        /// A form is a JSON Schema: it accepts exactly the content that the schema accepts.
        #[test]
        fn form_accepts_the_same_content_as_its_schema(
            fields in collection::vec((fields(), any::<bool>()), 0..4),
            content in collection::btree_map(0..4_usize, values(), 0..4),
        ) {
            let form = fields.into_iter().enumerate().fold(
                ElicitSchema::new(),
                |form, (name, (field, required))| match required {
                    true => form.required(name.to_string(), field),
                    false => form.optional(name.to_string(), field),
                },
            );
            let content: JsonObject =
                content.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
            let schema = serde_json::from_str(&serde_json::to_string(&form).unwrap()).unwrap();
            let expected = jsonschema::is_valid(&schema, &Value::Object(content.clone()));
            let checked = check(&form, &content);
            prop_assert_eq!(checked.is_ok(), expected, "{:?}", checked);
        }
    }
}
