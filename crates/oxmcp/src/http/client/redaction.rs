//! Redaction of secrets, in names and in texts for people.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::LazyLock,
};

use url::Url;

/// The keys of this process, without which the parts of a fingerprint cannot be guessed.
static KEYS: LazyLock<[RandomState; 2]> =
    LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// A name that differs for different parts, and reveals nothing of them.
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

/// A URL for people to read, without the parts that may be secret.
pub(crate) fn redacted_url(url: &Url) -> String {
    let mut url = url.clone();
    // Neither call fails for a URL with a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// The URL whose server has answered with an error, for people to read.
#[derive(Clone, Debug)]
pub(crate) struct Answering(pub(crate) String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_differ_for_other_parts() {
        let name = |parts: &[&str]| fingerprint(parts.iter().map(|it| it.as_bytes()));
        assert_eq!(name(&["a", "b"]), name(&["a", "b"]));
        assert_ne!(name(&["a", "b"]), name(&["ab"]));
        assert_ne!(name(&["a", "b"]), name(&["b", "a"]));
    }

    // Attack: leaks of secrets.
    #[test]
    fn urls_are_shown_without_secrets() {
        let url = Url::parse("https://me:secret@a/mcp?key=secret#secret").unwrap();
        assert_eq!(redacted_url(&url), "https://a/mcp");
    }
}
