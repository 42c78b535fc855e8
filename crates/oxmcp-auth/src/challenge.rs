//! Challenges: the `WWW-Authenticate` header, parsed and written.

use std::fmt;

use http::{HeaderMap, HeaderValue, header::WWW_AUTHENTICATE};

use crate::scope::ScopeSet;

/// The most bytes of one header that are read.
const MAX_HEADER: usize = 8192;
/// The most headers that are read.
const MAX_HEADERS: usize = 16;
/// The most challenges that are kept.
const MAX_CHALLENGES: usize = 32;
/// The most parameters of a challenge that are kept.
const MAX_PARAMETERS: usize = 32;

/// A challenge in the response to a refused request: a scheme such as `Bearer` or `DPoP`, and parameters.
///
/// ```
/// use oxmcp_auth::Challenge;
///
/// let mut headers = http::HeaderMap::new();
/// headers.append("WWW-Authenticate", "Basic realm=\"x\", Bearer scope=\"mcp:read mcp:write\"".parse()?);
/// let challenges = Challenge::from_headers(&headers);
/// assert_eq!(challenges[1].scheme(), "Bearer");
/// assert_eq!(challenges[1].parameter("scope"), Some("mcp:read mcp:write"));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
///
/// See [Protected Resource Metadata Discovery](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements)
/// and [RFC 9110, section 11.6.1](https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Creates a challenge of a scheme, without parameters.
    #[must_use]
    pub fn new(scheme: impl Into<String>) -> Self {
        Self {
            scheme: scheme.into(),
            parameters: Vec::new(),
        }
    }

    /// Creates the challenge `Bearer` ([RFC 6750](https://www.rfc-editor.org/rfc/rfc6750#section-3)).
    #[must_use]
    pub fn bearer() -> Self {
        Self::new("Bearer")
    }

    /// Creates the challenge `DPoP` ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449#section-7.1)).
    #[must_use]
    pub fn dpop() -> Self {
        Self::new("DPoP")
    }

    /// Adds a parameter. Characters that a header cannot hold become `?`.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// Parses the challenges of all `WWW-Authenticate` headers, in their order. A malformed header is read up to the first
    /// unreadable part, so that clients can still respond to its server.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Vec<Self> {
        let mut challenges = Vec::new();
        for value in headers.get_all(WWW_AUTHENTICATE).iter().take(MAX_HEADERS) {
            let bytes = value.as_bytes();
            Reader {
                rest: bytes.get(..MAX_HEADER).unwrap_or(bytes),
            }
            .challenges(&mut challenges);
        }
        challenges
    }

    /// Chooses the challenge to which an OAuth client responds: `DPoP` if `prefer_dpop` is set, else `Bearer`; and the other one
    /// if the preferred one is missing.
    #[must_use]
    pub fn for_oauth(challenges: &[Self], prefer_dpop: bool) -> Option<&Self> {
        let of = |scheme: &str| challenges.iter().find(|it| it.is(scheme));
        if prefer_dpop {
            of("DPoP").or_else(|| of("Bearer"))
        } else {
            of("Bearer").or_else(|| of("DPoP"))
        }
    }

    /// Returns the scheme, in its original case.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns whether the challenge has this scheme, ignoring case.
    #[must_use]
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the value of the first parameter with this name, ignoring case.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut all = self.parameters.iter();
        all.find(|(it, _)| it.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the parameter `error`, such as `invalid_token` or `insufficient_scope`.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.parameter("error")
    }

    /// Returns the URL of the resource's metadata ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728#section-5.1)).
    #[must_use]
    pub fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    /// Returns the scopes that the request needs, if the challenge names them.
    #[must_use]
    pub fn scope(&self) -> Option<ScopeSet> {
        self.parameter("scope").map(ScopeSet::parse)
    }

    /// Returns the challenge as the value of a header.
    #[must_use]
    pub fn to_header_value(&self) -> HeaderValue {
        // `Display` writes only visible ASCII and spaces.
        HeaderValue::from_str(&self.to_string())
            .unwrap_or_else(|_| HeaderValue::from_static("Bearer"))
    }
}

impl fmt::Display for Challenge {
    /// Writes the challenge as the value of a header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_token(f, &self.scheme)?;
        for (i, (name, value)) in self.parameters.iter().enumerate() {
            f.write_str(if i == 0 { " " } else { ", " })?;
            write_token(f, name)?;
            f.write_str("=\"")?;
            for c in value.chars() {
                match c {
                    '"' | '\\' => write!(f, "\\{c}")?,
                    ' '..='~' => write!(f, "{c}")?,
                    _ => f.write_str("?")?,
                }
            }
            f.write_str("\"")?;
        }
        Ok(())
    }
}

fn write_token(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars()
        .filter(|c| u8::try_from(*c).is_ok_and(is_token))
        .try_for_each(|c| write!(f, "{c}"))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A parser of one header, which holds the rest that is still to be read.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn challenges(mut self, into: &mut Vec<Challenge>) {
        // Parameters belong to the challenge before them in the same header.
        let mut current: Option<Challenge> = None;
        while into.len() < MAX_CHALLENGES {
            // Some servers separate parameters with semicolons, as in other headers.
            self.take_while(|byte| matches!(byte, b' ' | b'\t' | b',' | b';'));
            let word = self.take_while(is_token);
            if word.is_empty() {
                break;
            }
            let word = String::from_utf8_lossy(word).into_owned();
            if let Some(value) = self.value(&word) {
                let Some(value) = value else {
                    break;
                };
                if let Some(challenge) = &mut current
                    && challenge.parameters.len() < MAX_PARAMETERS
                {
                    challenge.parameters.push((word, value));
                }
            } else {
                into.extend(current.replace(Challenge::new(word)));
                self.skip_token68();
            }
        }
        if into.len() < MAX_CHALLENGES {
            into.extend(current);
        }
    }

    /// The value of a parameter, if `=` comes next; `Some(None)` if the value cannot be read.
    fn value(&mut self, name: &str) -> Option<Option<String>> {
        let before = self.rest;
        self.spaces();
        let Some(rest) = self.rest.strip_prefix(b"=") else {
            self.rest = before;
            return None;
        };
        self.rest = rest;
        self.spaces();
        if let Some(rest) = self.rest.strip_prefix(b"\"") {
            self.rest = rest;
            return Some(self.quoted());
        }
        if let Some(value) = self.single_quoted() {
            return Some(Some(value));
        }
        // Unquoted URLs are not tokens, but some servers send them.
        let mut value = self.unquoted();
        while name.eq_ignore_ascii_case("scope") && !value.is_empty() {
            // The next word is another scope, unless it is the name of a parameter.
            let before = self.rest;
            self.spaces();
            let scope = self.unquoted();
            let is_end = scope.is_empty() || scope.contains('=');
            self.spaces();
            if is_end || self.rest.first() == Some(&b'=') {
                self.rest = before;
                break;
            }
            value = format!("{value} {scope}");
        }
        Some((!value.is_empty()).then_some(value))
    }

    fn unquoted(&mut self) -> String {
        let is_value = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'"');
        let value = String::from_utf8_lossy(self.take_while(is_value));
        value.trim_end_matches(';').to_owned()
    }

    /// A value in the wrong quotes, if it ends where a value may end.
    fn single_quoted(&mut self) -> Option<String> {
        let quoted = self.rest.strip_prefix(b"'")?;
        let end = quoted.iter().position(|byte| *byte == b'\'')?;
        let (value, rest) = quoted.split_at(end);
        let rest = rest.get(1..)?;
        if !matches!(rest.first(), None | Some(b' ' | b'\t' | b',' | b';')) {
            return None;
        }
        self.rest = rest;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    fn quoted(&mut self) -> Option<String> {
        let mut value = Vec::new();
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'"' => return Some(String::from_utf8_lossy(&value).into_owned()),
                b'\\' => {
                    let (byte, rest) = self.rest.split_first()?;
                    self.rest = rest;
                    value.push(*byte);
                }
                byte => value.push(*byte),
            }
        }
    }

    /// Skips the `token68` that schemes such as `Negotiate` have instead of parameters.
    fn skip_token68(&mut self) {
        let before = self.rest;
        self.spaces();
        self.take_while(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
        self.take_while(|byte| byte == b'=');
        self.spaces();
        if !matches!(self.rest.first(), None | Some(b',')) {
            self.rest = before;
        }
    }

    fn spaces(&mut self) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t'));
    }

    fn take_while(&mut self, is_in: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| !is_in(*byte));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(values: &[&[u8]]) -> Vec<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_bytes(value).unwrap());
        }
        Challenge::from_headers(&headers)
    }

    fn written(value: &str) -> Vec<String> {
        let challenges = parse(&[value.as_bytes()]);
        challenges.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn challenges_are_parsed_in_servers_spellings() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("Bearer", &["Bearer"]),
            ("bearer realm=x", &["bearer realm=\"x\""]),
            ("DPoP, Bearer a=\"b\"", &["DPoP", "Bearer a=\"b\""]),
            (
                "Bearer a=\"1\" , b = 2,, DPoP algs=\"ES256 EdDSA\"",
                &["Bearer a=\"1\", b=\"2\"", "DPoP algs=\"ES256 EdDSA\""],
            ),
            (
                "Negotiate YWJj==, Bearer a=\"1\"",
                &["Negotiate", "Bearer a=\"1\""],
            ),
            ("Negotiate a", &["Negotiate"]),
            (
                r#"Bearer error_description="he said \"no\", DPoP x=\\y""#,
                &[r#"Bearer error_description="he said \"no\", DPoP x=\\y""#],
            ),
            (
                "Bearer resource_metadata=https://h/.well-known/oauth-protected-resource?a=b, scope=x",
                &[
                    "Bearer resource_metadata=\"https://h/.well-known/oauth-protected-resource?a=b\", scope=\"x\"",
                ],
            ),
            ("Bearer a=\"1\" b=\"2\"", &["Bearer a=\"1\", b=\"2\""]),
            (
                "Bearer resource_metadata='https://h/x', scope='a b'; error='e'",
                &["Bearer resource_metadata=\"https://h/x\", scope=\"a b\", error=\"e\""],
            ),
            ("Bearer a='b'c, d=1", &["Bearer a=\"'b'c\", d=\"1\""]),
            ("Bearer a='b, d=1", &["Bearer a=\"'b\", d=\"1\""]),
            (
                "Bearer scope=mcp:read mcp:write, error=e",
                &["Bearer scope=\"mcp:read mcp:write\", error=\"e\""],
            ),
            (
                "Bearer scope=a b error=e, DPoP scope=c",
                &["Bearer scope=\"a b\", error=\"e\"", "DPoP scope=\"c\""],
            ),
            (
                "Bearer scope=a error = e",
                &["Bearer scope=\"a\", error=\"e\""],
            ),
            ("Bearer a=1; b=2;", &["Bearer a=\"1\", b=\"2\""]),
            ("Bearer, a=1", &["Bearer a=\"1\""]),
            // An unreadable part ends the header, and the parts before it are kept.
            ("Bearer a=\"1\", b=\"2", &["Bearer a=\"1\""]),
            ("Bearer a=\"1\", b=", &["Bearer a=\"1\""]),
            ("Bearer a=\"1\", {json}", &["Bearer a=\"1\""]),
            ("a=\"1\", Bearer b=2", &["Bearer b=\"2\""]),
            ("\"", &[]),
        ];
        for (value, expected) in table {
            assert_eq!(written(value), *expected, "{value}");
        }
    }

    #[test]
    fn several_headers_form_one_list_without_sharing_parameters() {
        let challenges = parse(&[b"Basic", b"scope=x", b"Bearer scope=\"a b\""]);
        assert_eq!(challenges.len(), 2);
        assert_eq!(challenges[0].parameter("scope"), None);
        assert_eq!(challenges[1].scope(), Some(ScopeSet::parse("a b")));
        assert!(
            Challenge::for_oauth(&challenges, true)
                .unwrap()
                .is("bearer")
        );
    }

    #[test]
    fn first_of_duplicate_parameters_wins() {
        let challenges = parse(&[b"Bearer scope=a, SCOPE=b"]);
        assert_eq!(challenges[0].parameter("Scope"), Some("a"));
    }

    #[test]
    fn parsed_challenges_are_bounded() {
        let many = "Bearer a=1,".repeat(700);
        assert_eq!(parse(&[many.as_bytes()]).len(), MAX_CHALLENGES);
        let many = format!("Bearer {}", "a=1,".repeat(700));
        let challenges = parse(&[many.as_bytes()]);
        assert_eq!(challenges[0].parameters.len(), MAX_PARAMETERS);
        let long = format!("Bearer a=\"{}\"", "x".repeat(MAX_HEADER));
        assert_eq!(parse(&[long.as_bytes()])[0].parameters, []);
        assert_eq!(parse(&[b"Bearer".as_slice(); 40]).len(), MAX_HEADERS);
    }

    #[test]
    fn written_challenge_cannot_break_out_of_header() {
        let challenge = Challenge::new("Bearer\r\nX: y").with("er ror", "a\"b\\c\r\nSet-Cookie: ü");
        assert_eq!(
            challenge.to_header_value(),
            r#"BearerXy error="a\"b\\c??Set-Cookie: ?""#
        );
    }

    proptest! {
        #[test]
        fn parser_accepts_any_header(bytes in proptest::collection::vec(0x20_u8..=0xff, 0..200)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, value)]);
                let _ = Challenge::from_headers(&headers);
            }
        }

        #[test]
        fn written_challenge_parses_back(name in "[a-z_]{1,9}", value in "[ -~]{0,40}") {
            let challenge = Challenge::dpop().with(name, value).with("b", "c");
            prop_assert_eq!(parse(&[challenge.to_header_value().as_bytes()]), [challenge]);
        }
    }
}
