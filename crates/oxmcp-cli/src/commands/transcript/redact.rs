//! Secrets in messages, recognized by the names of members and by the forms of values.

use serde_json::Value;

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";

/// The beginnings of tokens of well-known services.
const PREFIXES: [&str; 9] = [
    "sk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "glpat-",
    "AKIA",
    "eyJ",
];
/// The ends of names of members that are secrets, in lower case without separators.
const NAMES: [&str; 11] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "cookie",
    "credentials",
];
/// The names of members that end like secrets, and are none.
const HARMLESS: [&str; 2] = ["progresstoken", "maxtoken"];
/// The shortest value that is known to be a secret and replaced wherever it is: shorter ones occur by chance.
const MIN_KNOWN: usize = 8;

/// Replaces the secrets in messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Redactor {
    known: Vec<String>,
}

impl Redactor {
    /// A redactor that replaces these values as well.
    pub(super) fn new(known: impl IntoIterator<Item = String>) -> Self {
        let known = known.into_iter().filter(|it| it.len() >= MIN_KNOWN);
        Self {
            known: known.collect(),
        }
    }

    /// Replaces the secrets in a message. Returns whether there were any.
    pub(super) fn redact(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.without_secrets(text) {
                Some(redacted) => {
                    *text = redacted;
                    true
                }
                None => false,
            },
            Value::Array(items) => {
                let mut found = false;
                for it in items {
                    found |= self.redact(it);
                }
                found
            }
            Value::Object(members) => {
                let mut found = false;
                for (name, member) in members {
                    match member {
                        Value::String(text) if is_secret_name(name) => {
                            found |= text != REDACTED;
                            REDACTED.clone_into(text);
                        }
                        _ => found |= self.redact(member),
                    }
                }
                found
            }
            _ => false,
        }
    }

    fn without_secrets(&self, text: &str) -> Option<String> {
        let mut redacted = text.to_owned();
        for secret in &self.known {
            if redacted.contains(secret.as_str()) {
                redacted = redacted.replace(secret.as_str(), REDACTED);
            }
        }
        let mut after_bearer = false;
        for word in text.split(|it: char| it.is_whitespace() || "\"'`,;()<>=&?".contains(it)) {
            if (after_bearer && word.len() >= MIN_KNOWN) || secret_in(word).is_some() {
                redacted = redacted.replace(word, REDACTED);
            }
            after_bearer = word.eq_ignore_ascii_case("bearer");
        }
        (redacted != text).then_some(redacted)
    }
}

/// A line of a configuration file or of a diff, with its secrets replaced.
pub(crate) fn without_secrets(line: &str) -> String {
    let line = Redactor::default()
        .without_secrets(line)
        .unwrap_or_else(|| line.to_owned());
    let mut redacted = line.clone();
    // The names and values of a line are between quotes, or around an equals sign.
    let mut rest = line.as_str();
    while let Some((before, after)) = rest.split_once([':', '=']) {
        let name = before.rsplit(['{', ',', '[']).next().unwrap_or_default();
        let name = name.trim_matches(|it: char| !it.is_ascii_alphanumeric());
        let value = after
            .trim_start()
            .strip_prefix('"')
            .and_then(|it| it.split('"').next());
        if let Some(value) = value.filter(|it| !it.is_empty() && is_secret_name(name)) {
            redacted = redacted.replace(&format!("\"{value}\""), &format!("\"{REDACTED}\""));
        }
        rest = after;
    }
    redacted
}

/// Whether the string under this name is a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let separators = |it: &char| !matches!(it, '_' | '-' | '.' | ' ');
    let name: String = name.chars().filter(separators).collect();
    let name = name.to_lowercase();
    NAMES.iter().any(|it| name.ends_with(it)) && !HARMLESS.contains(&name.as_str())
}

/// The beginning of a word that has the form of a secret, or of an option with one.
pub(crate) fn secret_in(word: &str) -> Option<String> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) if name.starts_with('-') => (name, value),
        _ => ("", word),
    };
    let is_reference = value.starts_with('$') || value.starts_with('{');
    let is_named = value.len() >= MIN_KNOWN && is_secret_name(name);
    let is_known = value.len() >= 16 && PREFIXES.iter().any(|it| value.starts_with(it));
    let shown: String = value.chars().take(4).collect();
    (!is_reference && (is_named || is_known)).then(|| match name {
        "" => format!("{shown}…"),
        name => format!("{name}={shown}…"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_replaced() {
        let redactor = Redactor::new(["hunter2hunter2".to_owned(), "short".to_owned()]);
        let mut message = json!({
            "params": {
                "arguments": {"api_key": "abc", "query": "see ghp_0123456789abcdefghij now"},
                "_meta": {"progressToken": "p1"},
                "note": "Authorization: Bearer abcdefghijk, then hunter2hunter2; short",
            },
            "schema": {"properties": {"token": {"type": "string"}}, "required": ["token"]},
        });
        assert!(redactor.redact(&mut message));
        assert_eq!(
            message,
            json!({
                "params": {
                    "arguments": {"api_key": "[redacted]", "query": "see [redacted] now"},
                    "_meta": {"progressToken": "p1"},
                    "note": "Authorization: Bearer [redacted], then [redacted]; short",
                },
                "schema": {"properties": {"token": {"type": "string"}}, "required": ["token"]},
            })
        );
        assert!(!redactor.redact(&mut message), "it is stable");
    }

    #[test]
    fn secrets_in_lines_are_replaced() {
        for (line, expected) in [
            (
                "+  \"env\": {\"API_KEY\": \"abc\", \"LEVEL\": \"x\"}",
                "+  \"env\": {\"API_KEY\": \"[redacted]\", \"LEVEL\": \"x\"}",
            ),
            (
                " env = { TOKEN = \"abc\" }",
                " env = { TOKEN = \"[redacted]\" }",
            ),
            (
                "   \"Authorization\": \"Bearer abcdefghijkl\"",
                "   \"Authorization\": \"[redacted]\"",
            ),
            (
                " \"url\": \"https://a/b?c=d\"",
                " \"url\": \"https://a/b?c=d\"",
            ),
        ] {
            assert_eq!(without_secrets(line), expected);
        }
    }

    #[test]
    fn secrets_in_arguments_are_recognized() {
        for word in [
            "--api-key=0123456789",
            "ghp_0123456789abcdefghij",
            "--token=abcdefgh",
        ] {
            assert!(secret_in(word).is_some(), "{word}");
        }
        for word in [
            "--api-key=${KEY}",
            "-y",
            "sk-short",
            "--max-tokens=50000000",
            "/home/token/file",
        ] {
            assert_eq!(secret_in(word), None, "{word}");
        }
    }
}
