//! Sets of scopes: parsed, joined and written in the order in which they were named.

use std::fmt;

use crate::error::{AuthError, Result};

/// The most scopes that are kept from one peer.
const MAX_SCOPES: usize = 256;
/// The most bytes of one scope.
const MAX_SCOPE: usize = 512;

/// A set of scopes, in the order in which they first occurred
/// ([RFC 6749, section 3.3](https://www.rfc-editor.org/rfc/rfc6749#section-3.3)).
///
/// Invalid scopes are left out: those that are longer than 512 bytes, or have characters that no scope may have. If a set is
/// parsed or collected, the scopes after the first 256 are left out, too.
///
/// ```
/// use oxmcp_auth::ScopeSet;
///
/// let scopes = ScopeSet::parse("mcp:read mcp:write").union(&ScopeSet::parse("mcp:read admin"));
/// assert_eq!(scopes.to_string(), "mcp:read mcp:write admin");
/// assert!(scopes.contains("admin"));
/// ```
#[derive(Clone, Debug, Default, Eq)]
pub struct ScopeSet(Vec<String>);

impl ScopeSet {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses scopes that are separated by spaces.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.split(' ').collect()
    }

    /// Parses scopes like [`parse`](Self::parse), but fails if one would be left out. Use it for the configuration of a program.
    ///
    /// # Errors
    ///
    /// If a scope would be left out.
    pub fn parse_all(text: &str) -> Result<Self> {
        let set = Self::parse(text);
        let mut words = text.split(' ').filter(|word| !word.is_empty());
        let Some(lost) = words.find(|word| !set.contains(word)) else {
            return Ok(set);
        };
        if is_scope(lost) {
            return Err(AuthError::configuration(format!(
                "too many scopes: {lost:?} exceeds the limit of {MAX_SCOPES}"
            )));
        }
        Err(AuthError::configuration(format!(
            "invalid scope {lost:?}; use 1 to {MAX_SCOPE} visible ASCII characters, without quotes and backslashes"
        )))
    }

    /// Adds a scope, if it is valid and not in the set yet, and the set has fewer than 256.
    pub fn insert(&mut self, scope: &str) {
        if is_scope(scope) && self.0.len() < MAX_SCOPES && !self.contains(scope) {
            self.0.push(scope.to_owned());
        }
    }

    /// Returns the scopes of this set, followed by those of the other set that are not in this one. None is left out, even
    /// beyond 256: a union of the scopes that operations need must have them all.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let new = other.0.iter().filter(|it| !self.contains(it));
        Self(self.0.iter().chain(new).cloned().collect())
    }

    /// Returns whether the set has exactly this scope.
    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.iter().any(|it| it == scope)
    }

    /// Returns whether this set has all scopes of the other.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        other.iter().all(|scope| self.contains(scope))
    }

    /// Returns the scopes in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether the set has no scopes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn is_scope(text: &str) -> bool {
    let is_of_it = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    (1..=MAX_SCOPE).contains(&text.len()) && text.bytes().all(is_of_it)
}

/// Sets with the same scopes are equal, in any order.
impl PartialEq for ScopeSet {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.includes(other)
    }
}

impl<T: AsRef<str>> FromIterator<T> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = T>>(scopes: I) -> Self {
        let mut set = Self::new();
        for scope in scopes {
            set.insert(scope.as_ref());
        }
        set
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_a_set_with_an_order() {
        let scopes = ScopeSet::parse("  b a b  c\" \u{fc} ");
        assert_eq!(scopes.to_string(), "b a");
        assert_eq!(scopes, ScopeSet::parse("a b"));
        assert_ne!(scopes, ScopeSet::parse("a"));
        assert_ne!(scopes, ScopeSet::parse("a c"));
        assert!(scopes.includes(&ScopeSet::new()));
        assert!(!scopes.includes(&ScopeSet::parse("a d")));
    }

    #[test]
    fn number_and_length_of_scopes_are_bounded() {
        let many: ScopeSet = (0..1000).map(|i| i.to_string()).collect();
        assert_eq!(many.iter().count(), MAX_SCOPES);
        assert!(ScopeSet::parse(&"x".repeat(MAX_SCOPE + 1)).is_empty());
        let more = many.union(&ScopeSet::parse("0 more"));
        assert_eq!(more.iter().count(), MAX_SCOPES + 1);
        assert!(!many.includes(&more));
    }

    #[test]
    fn configured_scopes_are_never_silently_dropped() {
        let some = ScopeSet::parse_all(" a  b a").unwrap();
        assert_eq!(some.to_string(), "a b");
        let numbered = |count: usize| {
            let all: Vec<_> = (0..count).map(|i| format!("s{i}")).collect();
            ScopeSet::parse_all(&all.join(" "))
        };
        assert_eq!(numbered(MAX_SCOPES).unwrap().iter().count(), MAX_SCOPES);
        let error = numbered(MAX_SCOPES + 1).unwrap_err().to_string();
        assert_eq!(error, "too many scopes: \"s256\" exceeds the limit of 256");
        for wrong in [
            "a \u{fc}",
            "a b\tc",
            "a\nb",
            "a\\b",
            &"x".repeat(MAX_SCOPE + 1),
        ] {
            let error = ScopeSet::parse_all(wrong).unwrap_err().to_string();
            assert!(error.contains("invalid scope"), "{error}");
        }
    }
}
