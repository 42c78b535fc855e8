//! URIs and names of skills.

/// The maximum length of a URI in bytes.
pub(crate) const MAX_URI: usize = 2048;

/// Checks a skill's name.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    let is_valid = (1..=64).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    match is_valid {
        true => Ok(()),
        false => Err(format!(
            "invalid name {name:?}; use 1 to 64 of a-z, 0-9 and single hyphens, not at the beginning or end"
        )),
    }
}

/// Splits the URI of a `SKILL.md` into the URI of its directory and the directory's name.
///
/// # Errors
/// If it is not such a URI.
#[cfg(any(feature = "host", test))]
pub(crate) fn skill_directory(uri: &str) -> Result<(&str, &str), String> {
    let wrong = || format!("the URI {uri:?} is not that of a SKILL.md");
    if uri.len() > MAX_URI {
        return Err(format!("the URI is longer than {MAX_URI} bytes"));
    }
    let directory = uri.strip_suffix("/SKILL.md").ok_or_else(wrong)?;
    let (scheme, path) = directory.split_once("://").ok_or_else(wrong)?;
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it));
    let name = path.rsplit('/').next().unwrap_or_default();
    match is_scheme && path.split('/').all(is_plain_segment) {
        true => Ok((directory, name)),
        false => Err(wrong()),
    }
}

/// Whether a URI is that of a file in a directory: `..` and its encodings do not lead out of it.
#[cfg(any(feature = "host", test))]
pub(crate) fn is_within(directory: &str, uri: &str) -> bool {
    let path = uri.strip_prefix(directory);
    let path = path.and_then(|it| it.strip_prefix('/'));
    uri.len() <= MAX_URI && path.is_some_and(|it| it.split('/').all(is_plain_segment))
}

/// Whether a segment of a path is the name of a file or directory, for every program that decodes it.
#[cfg(any(feature = "host", test))]
fn is_plain_segment(segment: &str) -> bool {
    if segment.contains(['?', '#']) {
        return false;
    }
    decode(segment).is_some_and(|name| is_file_name(&name))
}

/// Whether a decoded name is that of a file or directory on all platforms.
pub(crate) fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control)
}

/// Decodes a segment. `None` if it is malformed, or not UTF-8.
pub(crate) fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Encodes a name for a URI.
pub(crate) fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_follow_the_rules_of_agent_skills() {
        for name in ["a", "pdf-processing", "1", "a1-b2", &"a".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "-a",
            "a-",
            "a--b",
            "A",
            "a_b",
            "a b",
            "é",
            &"a".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn skill_uris_name_their_directory() {
        for (uri, directory, name) in [
            ("skill://a/SKILL.md", "skill://a", "a"),
            ("skill://x/y/a/SKILL.md", "skill://x/y/a", "a"),
            ("github://o/r/a/SKILL.md", "github://o/r/a", "a"),
        ] {
            assert_eq!(skill_directory(uri), Ok((directory, name)));
        }
        for uri in [
            "skill://a",
            "skill://SKILL.md",
            "skill:///SKILL.md",
            "skill:a/SKILL.md",
            "://a/SKILL.md",
            "a b://a/SKILL.md",
            "skill://a/skill.md",
            "skill://a//SKILL.md",
            "skill://../a/SKILL.md",
            "skill://x/%2e%2E/a/SKILL.md",
            "skill://x%2Fy/a/SKILL.md",
            "skill://a?b/SKILL.md",
            "skill://a#b/SKILL.md",
            &format!("skill://{}/SKILL.md", "a".repeat(2048)),
        ] {
            assert!(skill_directory(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn files_outside_the_directory_are_recognized() {
        for uri in [
            "skill://a/SKILL.md",
            "skill://a/b/c%20d.md",
            "skill://a/..b",
        ] {
            assert!(is_within("skill://a", uri), "{uri}");
        }
        for uri in [
            "skill://a",
            "skill://a/",
            "skill://ab/c",
            "skill://b/c",
            "other://a/b",
            "skill://a/../b/c",
            "skill://a/b/..",
            "skill://a/%2e%2e/b",
            "skill://a/.%2e/b",
            "skill://a/b%2f..%2f..%2fc",
            "skill://a/..%5cb",
            "skill://a/..\\b",
            "skill://a/b%00",
            "skill://a/b%",
            "skill://a/b%ff",
            "skill://a/b?c",
            "skill://a/b#c",
        ] {
            assert!(!is_within("skill://a", uri), "{uri}");
        }
    }

    proptest! {
        #[test]
        fn names_survive_encoding_and_decoding(name in "\\PC{0,20}") {
            let encoded = encode(&name);
            prop_assert_eq!(decode(&encoded), Some(name));
        }
    }
}
