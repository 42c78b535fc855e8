//! Resolution of references between schemas according to
//! [RFC 3986](https://www.rfc-editor.org/rfc/rfc3986#section-5.2). URIs are only names here: their targets are looked up,
//! and never fetched.

use std::borrow::Cow;

/// Splits a reference into the part before its fragment, and the fragment.
pub(crate) fn split_fragment(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// Resolves `reference`, which has no fragment, relative to `base`.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    let (base, reference) = (Parts::of(base), Parts::of(reference));
    let resolved = if reference.scheme.is_some() {
        reference
    } else if reference.authority.is_some() {
        Parts {
            scheme: base.scheme,
            ..reference
        }
    } else if reference.path.is_empty() {
        Parts {
            query: reference.query.or(base.query),
            ..base
        }
    } else {
        Parts {
            path: merge(&base, &reference.path),
            query: reference.query,
            ..base
        }
    };
    resolved.write()
}

struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: Cow<'a, str>,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(uri: &'a str) -> Self {
        let (rest, query) = match uri.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (uri, None),
        };
        let (scheme, rest) = match rest.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, rest),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, rest),
        };
        Self {
            scheme,
            authority,
            path: path.into(),
            query,
        }
    }

    fn write(&self) -> String {
        let mut uri = String::new();
        if let Some(scheme) = self.scheme {
            uri.push_str(scheme);
            uri.push(':');
        }
        if let Some(authority) = self.authority {
            uri.push_str("//");
            uri.push_str(authority);
        }
        uri.push_str(&self.path);
        if let Some(query) = self.query {
            uri.push('?');
            uri.push_str(query);
        }
        uri
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Merges the path of a reference with that of the base.
fn merge(base: &Parts<'_>, path: &str) -> Cow<'static, str> {
    if path.starts_with('/') {
        return without_dots(path).into();
    }
    let directory = match base.path.rsplit_once('/') {
        Some((directory, _)) => format!("{directory}/"),
        None if base.authority.is_some() => "/".to_owned(),
        None => String::new(),
    };
    without_dots(&(directory + path)).into()
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let is_absolute = path.starts_with('/');
    let segments = path.strip_prefix('/').unwrap_or(path);
    let mut ends_open = false;
    for segment in segments.split('/') {
        ends_open = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => _ = kept.pop(),
            segment => kept.push(segment),
        }
    }
    if ends_open {
        kept.push("");
    }
    let root = if is_absolute { "/" } else { "" };
    format!("{root}{}", kept.join("/"))
}

/// Decodes a fragment.
pub(crate) fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if byte == b'%' => {
                bytes.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_per_the_rfc() {
        let base = "http://a/b/c/d;p?q";
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../../g", "http://a/g"),
        ];
        for (reference, expected) in cases {
            assert_eq!(resolve(base, reference), expected, "{reference}");
        }
        assert_eq!(resolve("", "other.json"), "other.json");
        assert_eq!(resolve("urn:uuid:1", ""), "urn:uuid:1");
        assert_eq!(resolve("http://a", "b"), "http://a/b");
    }

    #[test]
    fn fragments_are_decoded() {
        assert_eq!(percent_decode("a%25b%c3%a4%zz"), "a%bä%zz");
    }
}
