//! Names that are made distinct by a hash of what they stand for.

use std::{collections::HashMap, fmt::Write};

use sha2::{Digest, Sha256};

/// The lengths of the hash in a name, in the order in which they are tried.
const DIGITS: [usize; 4] = [0, 8, 16, 32];

/// The longest hash: a name of the maximum length must have space for it.
pub(super) const MAX_DIGITS: usize = 32;

/// A name that may not be unique, and the key of what it stands for, which is.
pub(super) struct Candidate {
    /// ASCII only.
    pub(super) name: String,
    pub(super) key: String,
}

/// Makes names distinct, and at most `max` bytes long: all that would be the same, and those that are too long, get a hash of their
/// keys. The result of a candidate does not depend on the order of the others.
///
/// A server that chooses its names to meet the hashes of others makes all hashes longer, and meets none.
pub(super) fn distinct(candidates: &[Candidate], separator: &str, max: usize) -> Vec<String> {
    let too_long = |it: &Candidate| usize::from(it.name.len() > max);
    let mut levels: Vec<usize> = candidates.iter().map(too_long).collect();
    loop {
        let entries = candidates.iter().zip(&levels);
        let names: Vec<String> = entries
            .map(|(it, level)| at_level(it, *level, separator, max))
            .collect();
        let mut counts: HashMap<&str, usize> = HashMap::with_capacity(names.len());
        for name in &names {
            *counts.entry(name).or_default() += 1;
        }
        let mut is_changed = false;
        for (name, level) in names.iter().zip(&mut levels) {
            let is_shared = counts.get(name.as_str()).is_some_and(|count| *count > 1);
            if is_shared && *level + 1 < DIGITS.len() {
                *level += 1;
                is_changed = true;
            }
        }
        if !is_changed {
            return names;
        }
    }
}

fn at_level(candidate: &Candidate, level: usize, separator: &str, max: usize) -> String {
    let digits = DIGITS.get(level).copied().unwrap_or(MAX_DIGITS);
    if digits == 0 {
        return candidate.name.clone();
    }
    let mut hash = String::with_capacity(2 * MAX_DIGITS);
    for byte in Sha256::digest(&candidate.key) {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    let length = max.saturating_sub(digits + separator.len());
    let kept = candidate.name.get(..length).unwrap_or(&candidate.name);
    let hash = hash.get(..digits).unwrap_or(&hash);
    format!("{kept}{separator}{hash}")
}
