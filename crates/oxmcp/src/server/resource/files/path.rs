//! Paths of files in URIs.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use oxmcp_protocol::internal::uri::{decode, encode, is_reserved, is_unreserved};

/// The maximum number of names in a path.
const MAX_NAMES: usize = 256;

/// The bytes of a name. On platforms other than Unix, names that are not text cannot be represented exactly.
#[cfg(unix)]
fn bytes(name: &OsStr) -> std::borrow::Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt;
    name.as_bytes().into()
}

#[cfg(not(unix))]
fn bytes(name: &OsStr) -> std::borrow::Cow<'_, [u8]> {
    name.to_string_lossy().into_owned().into_bytes().into()
}

#[cfg(unix)]
fn name(bytes: Vec<u8>) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn name(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(Into::into)
}

/// A name, encoded for a URI.
pub(crate) fn encoded(name: &OsStr) -> String {
    let mut out = String::new();
    // Other programs do not encode these bytes in paths, and clients build such URIs themselves.
    let is_plain = |byte: u8| is_reserved(byte) && !b"/?#[]".contains(&byte);
    encode(&mut out, &bytes(name), |byte| {
        is_unreserved(byte) || is_plain(byte)
    });
    out
}

/// The URI of a directory: the prefix of the URIs of all its files.
pub(crate) fn file_uri(directory: &Path) -> String {
    let mut uri = "file://".to_owned();
    for component in directory.components() {
        match component {
            std::path::Component::Normal(name) => {
                uri.push('/');
                uri.push_str(&encoded(name));
            }
            std::path::Component::Prefix(prefix) => {
                let prefix = prefix.as_os_str().to_string_lossy();
                uri.push('/');
                uri.push_str(prefix.trim_start_matches(r"\\?\"));
            }
            _ => {}
        }
    }
    uri.push('/');
    uri
}

/// The names in a path of a URI. `None` if the path could leave its directory (a name is empty, `.` or `..`, or contains a
/// separator), or has too many names.
pub(crate) fn names(path: &str) -> Option<Vec<OsString>> {
    let parts = path.split('/');
    if parts.clone().count() > MAX_NAMES {
        return None;
    }
    parts.map(|part| single(decode(part)?)).collect()
}

fn single(bytes: Vec<u8>) -> Option<OsString> {
    if bytes.contains(&b'/') || bytes.contains(&0) {
        return None;
    }
    let name = name(bytes)?;
    let mut components = Path::new(&name).components();
    let only = components.next();
    let is_single = matches!(only, Some(std::path::Component::Normal(it)) if it == name);
    (is_single && components.next().is_none()).then_some(name)
}

/// Whether a path is hidden: any of its names begins with a dot.
pub(crate) fn is_hidden(names: &[OsString]) -> bool {
    names.iter().any(|name| bytes(name).first() == Some(&b'.'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn path_stays_below_its_directory() {
        for path in ["a", "a/b.txt", "%61", "...", "a..b", "a%3Fb"] {
            assert!(names(path).is_some(), "{path}");
        }
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "%2e%2e/a",
            ".%2E",
            "a/%2e",
            "%2Fetc",
            "a%2f..%2fb",
            "a%00b",
            "a%",
        ] {
            assert_eq!(names(path), None, "{path}");
        }
        assert_eq!(names(&"a/".repeat(10_000)), None);
    }

    proptest! {
        #[test]
        fn names_survive_encoding_and_decoding(parts in prop::collection::vec("[^/\\x00]{1,10}", 1..5)) {
            prop_assume!(parts.iter().all(|part| part != "." && part != ".."));
            let path: Vec<_> = parts.iter().map(|part| encoded(OsStr::new(part))).collect();
            let expected: Vec<_> = parts.iter().map(OsString::from).collect();
            prop_assert_eq!(names(&path.join("/")), Some(expected));
        }

        #[test]
        fn any_path_stays_below_its_directory(path: String) {
            for name in names(&path).into_iter().flatten() {
                prop_assert!(name != ".." && name != "." && !name.to_string_lossy().contains('/'));
            }
        }
    }
}
