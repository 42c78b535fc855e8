//! Regular expressions as JSON Schema means them: those of ECMAScript, over code points.
//!
//! The usual crates do not fit. `regex` has no look-around, which schemas that zod writes use; `fancy-regex` has it, is
//! another language all the same, and with what it stands on costs a fifth of the build of a whole server; `regress` is
//! ECMAScript to the letter, and takes exponential time where a pattern asks for it. Patterns and texts come from peers
//! here, and only "does it match" is asked, never where. That question has a small answer: all ways through a pattern are
//! followed at once, so that the time is the product of the two lengths at most.
//!
//! | | |
//! |---|---|
//! | `syntax` | from the text of a pattern to a tree |
//! | `class` | sets of characters |
//! | `program` | from the tree to instructions |
//! | `search` | the run of a program on a text |

mod class;
mod program;
pub(super) mod search;
mod syntax;

#[cfg(test)]
mod tests;
