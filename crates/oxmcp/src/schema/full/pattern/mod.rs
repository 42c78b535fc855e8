//! Regular expressions as JSON Schema means them: those of ECMAScript, over code points.
//!
//! The usual crates do not fit. `regex` has no look-around, which schemas that zod writes use; `fancy-regex` has it, is
//! another language all the same, and with what it stands on costs a fifth of the build of a whole server; `regress` is
//! ECMAScript to the letter, and takes exponential time where a pattern asks for it. Patterns and texts come from peers
//! here, and only "does it match" is asked, never where. That question has a small answer: all ways through a pattern are
//! followed at once, so that the time is the product of the two lengths at most.

mod class;
mod program;
mod search;
mod syntax;

use self::program::Program;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern(Program);

impl Pattern {
    /// # Errors
    /// Why the pattern cannot be used.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let tree = syntax::parse(pattern)?;
        program::compile(&tree).map(Self)
    }

    /// Whether the pattern matches anywhere in the text. None where that takes more steps than there are; those that it
    /// takes are taken away.
    pub(super) fn matches(&self, text: &str, steps: &mut usize) -> Option<bool> {
        search::search(&self.0, text, steps)
    }
}

#[cfg(test)]
mod tests;
