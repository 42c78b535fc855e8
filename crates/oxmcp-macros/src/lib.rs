//! Derive and attribute macros of the oxmcp SDK. Use them through `oxmcp` or `oxmcp-schema`, which document them.
//!
//! The crate has no dependencies, since every user of oxmcp waits for its build. It does not parse Rust: it only rearranges
//! tokens.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod feature;
mod fields;
mod function;
mod literal;
mod options;
mod schema;
mod tokens;
mod uri;

use proc_macro::TokenStream;

use crate::feature::Kind;

/// Derives the JSON Schema of a type. See `oxmcp::JsonSchema`, the trait of the same name.
#[proc_macro_derive(JsonSchema, attributes(oxmcp, schemars, serde, validate, garde))]
pub fn derive_json_schema(input: TokenStream) -> TokenStream {
    schema::derive(input, "::oxmcp")
}

/// Derives the JSON Schema of a type in a crate that depends on `oxmcp-schema` instead of `oxmcp`. See
/// `oxmcp_schema::JsonSchema`.
#[proc_macro_derive(
    StandaloneJsonSchema,
    attributes(oxmcp, schemars, serde, validate, garde)
)]
pub fn derive_standalone_json_schema(input: TokenStream) -> TokenStream {
    schema::derive(input, "::oxmcp_schema")
}

/// Turns an async function into a tool. See `oxmcp::tool`.
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    feature::expand(Kind::Tool, arguments, item)
}

/// Turns an async function into a prompt. See `oxmcp::prompt`.
#[proc_macro_attribute]
pub fn prompt(arguments: TokenStream, item: TokenStream) -> TokenStream {
    feature::expand(Kind::Prompt, arguments, item)
}

/// Turns an async function into a resource or a resource template. See `oxmcp::resource`.
#[proc_macro_attribute]
pub fn resource(arguments: TokenStream, item: TokenStream) -> TokenStream {
    feature::expand(Kind::Resource, arguments, item)
}

/// Removes its item. For derived code only.
///
/// The derive above emits a copy of its item for the derive of schemars, whose impl is for the original. This attribute removes
/// the copy.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn __erase(_arguments: TokenStream, _item: TokenStream) -> TokenStream {
    TokenStream::new()
}
