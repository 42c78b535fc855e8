//! [Elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation): questions to the user.
//!
//! | | |
//! |---|---|
//! | `params` | the request, its result, and the notification that a URL was visited |
//! | `schema` | the schema of a form |
//! | `select` | its fields with choices |
//! | `check` | answers held against a form |
//! | `expected` | fields and formats in words |

pub(crate) mod check;
pub(crate) mod expected;
pub(crate) mod params;
pub(crate) mod schema;
pub(crate) mod select;
