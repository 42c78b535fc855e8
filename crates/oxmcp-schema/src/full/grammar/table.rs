//! Table of the values of each keyword, by dialect.

use crate::full::dialect::Dialect::{
    self, Draft04, Draft06, Draft07, Draft201909, Draft202012 as Newest,
};

/// The form of a keyword's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Anything,
    Text,
    /// The URI of a schema.
    Id,
    /// A name that fragments can refer to.
    Anchor,
    Flag,
    Number,
    /// A number of more than zero.
    Positive,
    /// An integer of at least zero.
    Count,
    Array,
    /// The name of a type.
    Kind,
    /// The name of a type, or several of them.
    Kinds,
    /// An array of different strings.
    Names,
    /// An object of arrays of names.
    NamedNames,
    /// An object of flags.
    NamedFlags,
    Schema,
    SchemaOrFlag,
    /// An array of at least one schema.
    Schemas,
    SchemaOrSchemas,
    NamedSchemas,
    SchemaOrNames,
    /// An object of schemas and arrays of names.
    Dependencies,
}

/// The names that `type` accepts.
pub(crate) const KINDS: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Keywords of the same form, with the first and the last dialect that has them in this form.
type Row = (Dialect, Dialect, Shape, &'static [&'static str]);

#[rustfmt::skip]
pub(crate) const GRAMMAR: [Row; 41] = [
    (Draft04, Draft04, Shape::Text, &["id"]),
    (Draft06, Draft07, Shape::Text, &["$id"]),
    (Draft201909, Newest, Shape::Id, &["$id"]),
    (Draft04, Newest, Shape::Text, &["$schema", "title", "description", "format", "pattern"]),
    (Draft06, Newest, Shape::Text, &["$ref"]),
    (Draft07, Newest, Shape::Text, &["$comment", "contentEncoding", "contentMediaType"]),
    (Draft201909, Newest, Shape::Text, &["$recursiveRef"]),
    (Newest, Newest, Shape::Text, &["$dynamicRef"]),
    (Draft201909, Newest, Shape::Anchor, &["$anchor"]),
    (Newest, Newest, Shape::Anchor, &["$dynamicAnchor", "$recursiveAnchor"]),
    (Draft201909, Draft201909, Shape::Flag, &["$recursiveAnchor"]),
    (Draft201909, Newest, Shape::NamedFlags, &["$vocabulary"]),
    (Draft04, Newest, Shape::Flag, &["uniqueItems"]),
    (Draft07, Newest, Shape::Flag, &["readOnly", "writeOnly"]),
    (Draft201909, Newest, Shape::Flag, &["deprecated"]),
    (Draft04, Newest, Shape::Number, &["minimum", "maximum"]),
    (Draft04, Draft04, Shape::Flag, &["exclusiveMinimum", "exclusiveMaximum"]),
    (Draft06, Newest, Shape::Number, &["exclusiveMinimum", "exclusiveMaximum"]),
    (Draft04, Newest, Shape::Positive, &["multipleOf"]),
    (Draft04, Newest, Shape::Count, &["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]),
    (Draft201909, Newest, Shape::Count, &["minContains", "maxContains"]),
    (Draft04, Newest, Shape::Anything, &["default"]),
    (Draft06, Newest, Shape::Anything, &["const"]),
    (Draft04, Newest, Shape::Array, &["enum"]),
    (Draft06, Newest, Shape::Array, &["examples"]),
    (Draft04, Newest, Shape::Kinds, &["type"]),
    (Draft04, Newest, Shape::Names, &["required"]),
    (Draft201909, Newest, Shape::NamedNames, &["dependentRequired"]),
    (Draft04, Newest, Shape::Dependencies, &["dependencies"]),
    (Draft04, Draft04, Shape::SchemaOrFlag, &["additionalProperties", "additionalItems"]),
    (Draft06, Newest, Shape::Schema, &["additionalProperties", "contains", "propertyNames"]),
    (Draft06, Draft201909, Shape::Schema, &["additionalItems"]),
    (Draft04, Draft201909, Shape::SchemaOrSchemas, &["items"]),
    (Newest, Newest, Shape::Schema, &["items"]),
    (Newest, Newest, Shape::Schemas, &["prefixItems"]),
    (Draft04, Newest, Shape::Schema, &["not"]),
    (Draft07, Newest, Shape::Schema, &["if", "then", "else"]),
    (Draft201909, Newest, Shape::Schema, &["unevaluatedItems", "unevaluatedProperties", "contentSchema"]),
    (Draft04, Newest, Shape::Schemas, &["allOf", "anyOf", "oneOf"]),
    (Draft04, Newest, Shape::NamedSchemas, &["properties", "patternProperties", "definitions"]),
    (Draft201909, Newest, Shape::NamedSchemas, &["$defs", "dependentSchemas"]),
];

/// The name of a keyword, and the form of its values in a dialect. `None` for names that are not keywords there: they may
/// have any value.
pub(crate) fn keyword(dialect: Dialect, name: &str) -> Option<(&'static str, Shape)> {
    GRAMMAR
        .iter()
        .filter(|(first, last, ..)| (*first..=*last).contains(&dialect))
        .find_map(|(_, _, shape, names)| {
            let keyword = names.iter().find(|keyword| **keyword == name)?;
            Some((*keyword, *shape))
        })
}

/// The form of the part of a dialect's metaschema at a JSON Pointer. Some schemas refer to such parts.
pub(crate) fn part(dialect: Dialect, pointer: &str) -> Option<Shape> {
    if pointer.is_empty() {
        return Some(Shape::Schema);
    }
    if let Some(name) = pointer.strip_prefix("/properties/") {
        return keyword(dialect, name).map(|(_, shape)| shape);
    }
    // The newer dialects have these definitions elsewhere.
    let name = pointer.strip_prefix("/definitions/");
    match name.filter(|_| dialect <= Draft07)? {
        "positiveInteger" | "positiveIntegerDefault0" if dialect == Draft04 => Some(Shape::Count),
        "nonNegativeInteger" | "nonNegativeIntegerDefault0" if dialect > Draft04 => {
            Some(Shape::Count)
        }
        "schemaArray" => Some(Shape::Schemas),
        "simpleTypes" => Some(Shape::Kind),
        "stringArray" => Some(Shape::Names),
        _ => None,
    }
}

/// Whether a text can be an anchor.
pub(crate) fn is_anchor(dialect: Dialect, text: &str) -> bool {
    let (first, rest) = match dialect {
        Newest => ("_", "-._"),
        _ => ("", "-._:"),
    };
    let begins = text.starts_with(|it: char| it.is_ascii_alphabetic() || first.contains(it));
    begins
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || rest.contains(it))
}

/// Whether a text can be the URI of a schema: it has no fragment, or an empty one.
pub(crate) fn is_id(text: &str) -> bool {
    text.split_once('#')
        .is_none_or(|(_, fragment)| fragment.is_empty())
}
