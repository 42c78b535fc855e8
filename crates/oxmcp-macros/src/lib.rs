//! Derive macros of the oxmcp SDK. Use them through `oxmcp` or `oxmcp-schema`, which document them.
//!
//! The crate has no dependencies, since every user of oxmcp waits for it to be built: it does not parse Rust, it only
//! arranges tokens.

mod fields;
mod schema;

use proc_macro::TokenStream;

/// Derives the JSON Schema of a type. See `oxmcp::JsonSchema`, the trait of the same name.
#[proc_macro_derive(JsonSchema, attributes(oxmcp, schemars, serde, validate, garde))]
pub fn derive_json_schema(input: TokenStream) -> TokenStream {
    schema::derive(input, "::oxmcp")
}

/// The same derive for crates that have `oxmcp-schema` and not `oxmcp`. See `oxmcp_schema::JsonSchema`.
#[proc_macro_derive(
    StandaloneJsonSchema,
    attributes(oxmcp, schemars, serde, validate, garde)
)]
pub fn derive_standalone_json_schema(input: TokenStream) -> TokenStream {
    schema::derive(input, "::oxmcp_schema")
}

/// Not for use by hand: removes the item it stands on.
///
/// The derive above repeats its item for another derive to see, which is to be implemented for the original.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn __erase(_arguments: TokenStream, _item: TokenStream) -> TokenStream {
    TokenStream::new()
}
