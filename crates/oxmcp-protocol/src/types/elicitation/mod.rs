//! [Elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation): requests for input from the user.

pub(crate) mod check;
pub(crate) mod expected;
pub(crate) mod params;
pub(crate) mod schema;
pub(crate) mod select;
