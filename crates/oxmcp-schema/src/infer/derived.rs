//! Trait that derived code names.

use crate::infer::json_schema::JsonSchema;

/// Another name of a type, if it has a schema. Derived code leaves `How` to the compiler.
///
/// The compiler looks at the bounds of an implementation only to choose between several. So the second one, which applies to no
/// type, makes this trait missing where the schema is missing: that is the only error then, and it is in the words above the trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    label = "this type needs a JSON Schema",
    note = "add `#[derive(oxmcp::JsonSchema)]` to `{Self}`, and `#[derive(serde::Deserialize)]` if it is an input",
    note = "for state that handlers share, write `#[state]` before the parameter",
    note = "for a type from another crate, enable the Cargo feature of oxmcp with the name of that crate, such as `chrono` or `uuid`, or give the field a schema with `#[schemars(with = \"String\")]`"
)]
pub trait HasSchema<How> {
    /// The type itself.
    type Type: schemars::JsonSchema;
}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> HasSchema<()> for T {
    type Type = T;
}

trait AppliesToNoType {}

#[diagnostic::do_not_recommend]
impl<T: AppliesToNoType> HasSchema<((),)> for T {
    type Type = ();
}
