//! [JSON Schema](https://json-schema.org): inference from types, customization, serialization, and validation.
//!
//! ```
//! use oxmcp_schema::{JsonSchema, Schema};
//! use serde_json::{json, value::to_raw_value};
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Pair {
//!     /// the dividend
//!     a: f64,
//!     b: f64,
//! }
//!
//! let schema = Schema::of::<Pair>();
//! assert!(schema.validate(&to_raw_value(&json!({"a": 1, "b": 2}))?).is_ok());
//! let violations = schema.validate(&to_raw_value(&json!({"a": "1"}))?).unwrap_err();
//! assert_eq!(violations.iter().count(), 2);
//! # Ok::<(), serde_json::Error>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod explain;
mod fast;
mod full;
mod hosts;
mod infer;
mod into_schema;
mod limits;
mod mend;
mod options;
mod schema;
mod strings;
mod violations;

#[cfg(test)]
mod agreement_tests;
#[cfg(test)]
mod tests;

pub use error::SchemaError;
pub use infer::json_schema::JsonSchema;
pub use into_schema::IntoSchema;
pub use options::SchemaOptions;
pub use oxmcp_macros::StandaloneJsonSchema as JsonSchema;
pub use schema::Schema;
pub use violations::{Violation, Violations};

// Lets derived code find the crate from within it, too.
extern crate self as oxmcp_schema;

/// Items for derived code only: they can change with any release.
#[doc(hidden)]
pub mod __private {
    pub use oxmcp_macros::__erase;
    pub use schemars;

    pub use crate::infer::{derived::HasSchema, order::declared};
}

/// Items for the SDK only: they can change with any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::{
        explain::{
            expected::{list, quote_text},
            integers::without_fractions,
            misspelt::misspelt_property,
            refusal::refusal,
            spelling::nearest,
        },
        fast::{
            read::{Read, read_whole_numbers},
            write::Written,
        },
        hosts::rules::{SchemaFinding, check_for_hosts},
        // The trait without the derive macro of the same name.
        infer::json_schema::JsonSchema,
        mend::{Change, Mended},
        strings::{StringField, StringFields, StringObject, StringValue},
    };
}

/// The code in README.md is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
