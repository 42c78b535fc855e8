/// A type that has a JSON Schema, so that it can be the input or the output of a tool.
///
/// Derive it. Doc comments become descriptions, `#[serde(..)]` attributes are followed, and what a schema can say
/// beyond that is said with [`#[schemars(..)]`](https://graham.cool/schemars/deriving/attributes/):
///
/// ```
/// /// What is to be counted.
/// #[derive(serde::Deserialize, oxmcp::JsonSchema)]
/// struct Count {
///     /// the words to look for
///     words: Vec<String>,
///     /// how many results are enough
///     #[schemars(range(min = 1, max = 100))]
///     limit: Option<u32>,
/// }
///
/// let schema = oxmcp::Schema::of::<Count>().to_value();
/// assert_eq!(schema["properties"]["limit"]["minimum"], 1);
/// assert_eq!(schema["required"], serde_json::json!(["words"]));
/// ```
///
/// The crate that derives needs no dependency but oxmcp. One that sees oxmcp under another path says so:
/// `#[oxmcp(crate = "my_facade::oxmcp")]`. Types that derive or implement `JsonSchema` of schemars 1 have this trait
/// as well.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    label = "this type needs a JSON Schema",
    note = "add `#[derive(oxmcp::JsonSchema)]` to `{Self}`, and `#[derive(serde::Deserialize)]` if it is an input",
    note = "for a type of another crate: a feature of schemars 1 may have it, or `#[schemars(with = \"String\")]` on the field says what it looks like"
)]
pub trait JsonSchema: schemars::JsonSchema {}

impl<T: schemars::JsonSchema + ?Sized> JsonSchema for T {}
