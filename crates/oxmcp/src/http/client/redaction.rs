//! Names for what must not be shown.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::LazyLock,
};

/// The keys of this process. Nobody else can find out of what a fingerprint is.
static KEYS: LazyLock<[RandomState; 2]> =
    LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// A name that is another one for other parts, and says nothing of them.
pub(crate) fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hashers = KEYS.each_ref().map(BuildHasher::build_hasher);
    for part in parts {
        for hasher in &mut hashers {
            // The length keeps parts apart.
            hasher.write_usize(part.len());
            hasher.write(part);
        }
    }
    let [one, other] = hashers.map(|hasher| hasher.finish());
    format!("{one:016x}{other:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_parts_have_other_names() {
        let name = |parts: &[&str]| fingerprint(parts.iter().map(|it| it.as_bytes()));
        assert_eq!(name(&["a", "b"]), name(&["a", "b"]));
        assert_ne!(name(&["a", "b"]), name(&["ab"]));
        assert_ne!(name(&["a", "b"]), name(&["b", "a"]));
    }
}
