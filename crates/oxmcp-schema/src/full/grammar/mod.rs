//! The grammar of schemas: [`table`] defines the values of each keyword, and [`wellformed`] checks a value against it.
//!
//! The metaschemas of the dialects express the same rules as schemas. Here they exist only by name: a reference to one
//! becomes a node that checks the grammar, and so do references to its parts and schemas that extend it. A table is a
//! tenth of their size and needs no initialization, and its messages are more specific than those of a schema.

pub(crate) mod table;
mod wellformed;

#[cfg(test)]
mod tests;
