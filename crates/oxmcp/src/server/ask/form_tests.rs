//! The types and schemas that can be forms.

use std::sync::Arc;

use oxmcp_schema::JsonSchema;
use serde_json::value::to_raw_value;

use crate::server::ask::form::Form;

#[expect(dead_code, reason = "only its schema is of interest")]
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
fn a_struct_is_a_form() {
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
          }
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
fn what_no_form_can_ask_for_is_named() {
    #[expect(dead_code, reason = "only its schema is of interest")]
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nested {
        fine: bool,
        inner: Inner,
    }
    #[expect(dead_code, reason = "only its schema is of interest")]
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Inner {
        a: i32,
    }
    #[expect(dead_code, reason = "only its schema is of interest")]
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Tags {
        tags: Vec<String>,
    }
    insta::assert_snapshot!([problem::<Nested>(), problem::<Tags>(), problem::<bool>()].join("\n"), @r#"
    no form can ask for Nested: the field "inner" is an object; fields are text, numbers, bool, enums of plain names, and lists of such enums
    no form can ask for Tags: the field "tags" is a list of something other than an enum; fields are text, numbers, bool, enums of plain names, and lists of such enums
    no form can ask for boolean: it is no struct with named fields
    "#);
}

#[test]
fn a_form_is_made_once() {
    let first = Form::of::<Booking>().unwrap();
    assert!(Arc::ptr_eq(&first, &Form::of::<Booking>().unwrap()));
}

#[test]
fn the_type_says_more_than_the_form() {
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
fn a_pattern_is_shown_to_the_user() {
    #[expect(dead_code, reason = "only its schema is of interest")]
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Flight {
        #[schemars(regex(pattern = "^[A-Z]{2}[0-9]+$"))]
        number: String,
    }
    let form = Form::of::<Flight>().unwrap();
    let text = serde_json::to_string(&form.schema).unwrap();
    assert!(text.contains(r#""pattern":"^[A-Z]{2}[0-9]+$""#), "{text}");
    let read: oxmcp_protocol::ElicitSchema = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}
