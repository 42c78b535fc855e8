//! Tests of the types and schemas that can be forms.

#![expect(dead_code, reason = "only the schemas of the types are of interest")]

use std::sync::Arc;

use oxmcp_protocol::Revision;
use oxmcp_schema::JsonSchema;
use serde_json::value::to_raw_value;

use crate::server::ask::{Question, form::Form, question::Answered};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Booking {
    /// Who comes
    name: String,
    #[schemars(email)]
    mail: Option<String>,
    guests: u8,
    #[serde(default)]
    #[schemars(title = "Quiet, please")]
    quiet: bool,
    /// Where to sit
    place: Place,
    #[schemars(extend("default" = ["dinner"]))]
    meals: Vec<Meal>,
    /// How long
    #[schemars(range(min = 0.5, max = 2.5), extend("default" = 1.5))]
    hours: f64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    Inside,
    Outside,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Meal {
    #[schemars(title = "A late breakfast")]
    Brunch,
    #[schemars(title = "The usual")]
    Dinner,
}

#[test]
fn struct_can_be_a_form() {
    let form = Form::of::<Booking>().unwrap();
    let text = serde_json::to_string_pretty(&form.schema).unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "type": "object",
      "properties": {
        "name": {
          "type": "string",
          "description": "Who comes"
        },
        "guests": {
          "type": "integer",
          "minimum": 0,
          "maximum": 255
        },
        "place": {
          "type": "string",
          "description": "Where to sit",
          "enum": [
            "inside",
            "outside"
          ]
        },
        "meals": {
          "type": "array",
          "items": {
            "anyOf": [
              {
                "const": "brunch",
                "title": "A late breakfast"
              },
              {
                "const": "dinner",
                "title": "The usual"
              }
            ]
          },
          "default": [
            "dinner"
          ]
        },
        "hours": {
          "type": "number",
          "description": "How long",
          "minimum": 0.5,
          "maximum": 2.5,
          "default": 1.5
        },
        "mail": {
          "type": "string",
          "format": "email"
        },
        "quiet": {
          "type": "boolean",
          "title": "Quiet, please",
          "default": false
        }
      },
      "required": [
        "name",
        "guests",
        "place",
        "meals",
        "hours"
      ]
    }
    "#);
}

fn problem<T: JsonSchema + 'static>() -> String {
    Form::of::<T>().unwrap_err().message().to_owned()
}

#[test]
fn unsupported_form_field_is_named() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nested {
        fine: bool,
        inner: Inner,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Inner {
        a: i32,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Tags {
        tags: Vec<String>,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Chain {
        next: Option<Box<Self>>,
    }
    let problems = [
        problem::<Nested>(),
        problem::<Tags>(),
        problem::<bool>(),
        problem::<Chain>(),
    ];
    insta::assert_snapshot!(problems.join("\n"), @r#"
    cannot make a form for Nested: field "inner" is an object; use text, numbers, bool, enums of plain names, or lists of such enums
    cannot make a form for Tags: field "tags" is a list of something other than an enum; use text, numbers, bool, enums of plain names, or lists of such enums
    cannot make a form for boolean: not a struct with named fields; a form has a field for each
    cannot make a form for Chain: field "next" has a recursive type; use text, numbers, bool, enums of plain names, or lists of such enums
    "#);
}

#[test]
fn form_is_built_once() {
    let first = Form::of::<Booking>().unwrap();
    assert!(Arc::ptr_eq(&first, &Form::of::<Booking>().unwrap()));
}

#[test]
fn type_may_be_stricter_than_the_form() {
    let form = Form::of::<Booking>().unwrap();
    let content = |hours: f64| {
        to_raw_value(&serde_json::json!({
            "name": "n", "guests": 2, "place": "inside", "meals": ["brunch"], "hours": hours
        }))
        .unwrap()
    };
    assert!(form.check(content(1.0).get()).is_ok());
    assert!(form.check(content(3.0).get()).is_err());
}

#[test]
fn pattern_is_shown_to_the_user() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Flight {
        #[schemars(regex(pattern = "^[A-Z]{2}[0-9]+$"))]
        number: String,
        from: String,
    }
    let form = Form::of::<Flight>().unwrap();
    let text = serde_json::to_string(&form.schema).unwrap();
    assert!(text.contains(r#""pattern":"^[A-Z]{2}[0-9]+$""#), "{text}");
    let read: oxmcp_protocol::ElicitSchema = serde_json::from_str(&text).unwrap();
    // The fields keep their order.
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    assert!(text.find(r#""number""#) < text.find(r#""from""#), "{text}");
}

#[test]
fn field_descriptions_are_shown_to_the_user() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Order {
        #[schemars(length(min = 2, max = 40))]
        name: String,
        #[schemars(extend("format" = "postcode"))]
        code: String,
        #[schemars(extend("default" = "outside"))]
        place: Place,
        #[schemars(length(min = 1, max = 3))]
        extras: Vec<Extra>,
    }
    /// What else there is
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    enum Extra {
        /// Some bread
        Bread,
        #[schemars(title = "A cup of coffee")]
        Coffee,
    }
    let form = Form::of::<Order>().unwrap();
    let shown = serde_json::to_value(&form.schema).unwrap()["properties"].take();
    assert_eq!(
        shown,
        serde_json::json!({
            "name": {"type": "string", "minLength": 2, "maxLength": 40},
            // Forms do not have this format.
            "code": {"type": "string"},
            "place": {"type": "string", "enum": ["inside", "outside"], "default": "outside"},
            "extras": {
                "type": "array",
                "description": "What else there is",
                "minItems": 1,
                "maxItems": 3,
                "items": {"anyOf": [
                    {"const": "Bread", "title": "Some bread"},
                    {"const": "Coffee", "title": "A cup of coffee"},
                ]},
            },
        })
    );
}

#[test]
fn answer_is_validated_against_the_type_too() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Fives {
        #[schemars(extend("multipleOf" = 5))]
        count: u8,
    }
    for (count, fits) in [(5, true), (3, false)] {
        let question = Question::form::<Fives>("fives", "How many?");
        let answer = serde_json::json!({"action": "accept", "content": {"count": count}});
        let answered = Answered {
            key: question.put.key,
            request: question.put.request.unwrap(),
            value: to_raw_value(&answer).unwrap(),
            revision: Revision::LATEST,
        };
        assert_eq!((question.read)(&answered).is_ok(), fits, "{count}");
    }
}
