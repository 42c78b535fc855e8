//! Random text that cannot be guessed: the tokens of pages and bridges, and the keys of views.

use std::fmt::Write;

use crate::failure::{Failure, Reason, Result};

/// The number of random bytes.
const BYTES: usize = 24;

/// Returns random text.
///
/// # Errors
/// The system has no randomness.
pub(crate) fn random() -> Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::new(
            Reason::Unreachable,
            format!("could not create a token: {error}"),
        )
    })?;
    let mut text = String::with_capacity(2 * BYTES);
    for byte in bytes {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
