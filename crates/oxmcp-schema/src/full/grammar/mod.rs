//! The grammar of schemas: what each keyword holds is a [`table`], and [`wellformed`] holds a value against it.
//!
//! The metaschemas of the dialects say the same as schemas. They are names here: a reference to one becomes a node that
//! asks for the grammar, and so do references to its parts, and schemas that extend it. A table is a tenth of their size
//! and needs no start, and its messages say more than those of a schema could.

pub(crate) mod table;
mod wellformed;

#[cfg(test)]
mod tests;
