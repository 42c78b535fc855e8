//! [Elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation): requests for input from the user.
//!
//! | | |
//! |---|---|
//! | `params` | the request, its result, and the notification that an elicitation by URL is complete |
//! | `schema` | the schema of a form |
//! | `select` | the fields of a form with choices |
//! | `check` | validation of an answer against its form |
//! | `expected` | descriptions of fields and formats in words |

pub(crate) mod check;
pub(crate) mod expected;
pub(crate) mod params;
pub(crate) mod schema;
pub(crate) mod select;
