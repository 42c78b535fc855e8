//! Secrets in messages, recognized by the names of members and by the forms of values.

use serde_json::{Deserializer, Value};

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";

/// The beginnings of tokens of well-known services.
const PREFIXES: [&str; 18] = [
    "sk-",
    "sk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "glpat-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
];
/// The beginnings of tokens that are those of common words as well: letters and digits follow.
const WORDS: [&str; 2] = ["hf_", "npm_"];
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
/// The most places of a text at which JSON is looked for in vain.
const MAX_TRIES: usize = 1000;
/// The characters that separate the words of a text.
const SEPARATORS: &str = "\"'`,;()<>=&?#";

/// Replaces the secrets in messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Redactor {
    known: Vec<String>,
}

impl Redactor {
    /// A redactor that replaces these values as well, and what follows a scheme such as `Bearer` in them.
    pub(super) fn new(known: impl IntoIterator<Item = String>) -> Self {
        let mut all = Vec::new();
        for it in known {
            let rest = it.split_once(' ').map(|(_, rest)| rest.trim().to_owned());
            all.push(it);
            all.extend(rest);
        }
        all.retain(|it| it.len() >= MIN_KNOWN);
        // The whole before its parts.
        all.sort_unstable_by_key(|it| std::cmp::Reverse(it.len()));
        Self { known: all }
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
                    found |= match is_secret_name(name) {
                        true => self.redact_secret(member),
                        false => self.redact(member),
                    };
                }
                found
            }
            _ => false,
        }
    }

    /// Replaces a value under the name of a secret. Objects describe secrets, as schemas do, and are looked into.
    fn redact_secret(&self, value: &mut Value) -> bool {
        match value {
            Value::String(_) | Value::Number(_) => {
                let found = *value != REDACTED;
                *value = REDACTED.into();
                found
            }
            Value::Array(items) => {
                let mut found = false;
                for it in items {
                    found |= self.redact_secret(it);
                }
                found
            }
            _ => self.redact(value),
        }
    }

    fn without_secrets(&self, text: &str) -> Option<String> {
        let mut redacted = text.to_owned();
        for secret in &self.known {
            if redacted.contains(secret.as_str()) {
                redacted = redacted.replace(secret.as_str(), REDACTED);
            }
        }
        if let Some(without) = self.without_json(&redacted) {
            redacted = without;
        }
        redacted = without_user(&redacted);
        let words = redacted.clone();
        let (mut after_bearer, mut named) = (false, false);
        for part in words.split_inclusive(|it: char| it.is_whitespace() || SEPARATORS.contains(it))
        {
            let word =
                part.trim_end_matches(|it: char| it.is_whitespace() || SEPARATORS.contains(it));
            let is_secret = (after_bearer && word.len() >= MIN_KNOWN)
                || (named && !word.is_empty() && !is_reference(word))
                || secret_in(word).is_some();
            if is_secret && word != REDACTED {
                redacted = match named {
                    true => redacted.replace(&format!("={word}"), &format!("={REDACTED}")),
                    false => redacted.replace(word, REDACTED),
                };
            }
            named = part.ends_with('=') && is_secret_name(word);
            after_bearer = word.eq_ignore_ascii_case("bearer");
        }
        (redacted != text).then_some(redacted)
    }

    /// Replaces the secrets in JSON within a text. `None` if there are none.
    fn without_json(&self, text: &str) -> Option<String> {
        let mut redacted = String::new();
        let (mut rest, mut tries, mut found) = (text, 0, false);
        while let Some(index) = rest.find(['{', '[']) {
            let (before, json) = rest.split_at(index);
            redacted.push_str(before);
            let mut values = Deserializer::from_str(json).into_iter::<Value>();
            let length = match values.next() {
                Some(Ok(mut value)) => {
                    let (json, _) = json.split_at(values.byte_offset());
                    if self.redact(&mut value) {
                        found = true;
                        redacted.push_str(&value.to_string());
                    } else {
                        redacted.push_str(json);
                    }
                    json.len()
                }
                _ => {
                    tries += 1;
                    redacted.push_str(json.get(..1).unwrap_or_default());
                    1
                }
            };
            rest = json.get(length..).unwrap_or_default();
            if tries > MAX_TRIES {
                break;
            }
        }
        redacted.push_str(rest);
        found.then_some(redacted)
    }
}

/// The text without the names and passwords of its URLs.
fn without_user(text: &str) -> String {
    const SIGN: &str = "://";
    let mut parts = text.split(SIGN);
    let mut redacted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        redacted.push_str(SIGN);
        let end = part.find(|it: char| it.is_whitespace() || "/?#\"'`<>\\".contains(it));
        let (authority, rest) = part.split_at(end.unwrap_or(part.len()));
        match authority.rsplit_once('@') {
            Some((_, host)) => redacted.push_str(&format!("{REDACTED}@{host}")),
            None => redacted.push_str(authority),
        }
        redacted.push_str(rest);
    }
    redacted
}

/// Whether a value names a variable instead of a secret.
fn is_reference(value: &str) -> bool {
    ["${", "{env:", "{file:"]
        .iter()
        .any(|it| value.starts_with(it))
}

/// The lines of a diff of a configuration file, with their secrets replaced: the values that are known, those under the names of secrets,
/// and those after options with such names.
pub(crate) fn without_secrets(diff: &str, known: &[String]) -> String {
    let redactor = Redactor::new(known.iter().cloned());
    let mut state = State::default();
    let mut redacted = String::new();
    for line in diff.split_inclusive('\n') {
        if ["@@", "---", "+++"].iter().any(|it| line.starts_with(it)) {
            state = State::default();
            redacted.push_str(line);
        } else {
            redacted.push_str(&state.line(line, &redactor, known));
        }
    }
    redacted
}

/// The meaning of the tokens so far of a configuration file for the next one. Lists can have a line for each item.
#[derive(Default)]
struct State {
    /// The last text, which is the name of a value that follows.
    last: String,
    /// Whether the value has the name of a secret.
    is_named: bool,
    /// Whether the text before was an option with the name of a secret.
    is_after_option: bool,
    /// The lists that are open in the value.
    depth: usize,
}

impl State {
    fn line(&mut self, line: &str, redactor: &Redactor, known: &[String]) -> String {
        let mut redacted = String::new();
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let length = token(rest, first);
            let (token, after) = rest.split_at(length);
            rest = after;
            let is_key = rest.trim_start().starts_with([':', '=']);
            match first {
                '"' | '\'' => redacted.push_str(&self.text(token, is_key, redactor, known)),
                _ if first.is_ascii_alphanumeric() && !is_key && self.is_named => {
                    let is_plain = matches!(token, "true" | "false" | "null");
                    redacted.push_str(if is_plain { token } else { REDACTED });
                    self.end();
                }
                _ if first.is_ascii_alphanumeric() => {
                    token.clone_into(&mut self.last);
                    redacted.push_str(token);
                }
                _ => {
                    self.sign(first);
                    redacted.push(first);
                }
            }
        }
        redacted
    }

    /// A text between quotes.
    fn text(&mut self, token: &str, is_key: bool, redactor: &Redactor, known: &[String]) -> String {
        let quote = token.get(..1).unwrap_or_default();
        let inner = token.trim_start_matches(quote).trim_end_matches(quote);
        let value = match quote {
            "\"" => serde_json::from_str(token).unwrap_or_else(|_| inner.to_owned()),
            _ => inner.to_owned(),
        };
        if is_key {
            self.last = value;
            return token.to_owned();
        }
        let is_option = value.starts_with('-');
        let is_secret = self.is_named || (self.is_after_option && !is_option);
        let is_secret = is_secret || known.contains(&value);
        self.is_after_option = is_option && is_secret_name(&value);
        if !self.is_named {
            self.last.clear();
        }
        self.end();
        if is_secret && !value.is_empty() && !is_reference(&value) {
            return format!("{quote}{REDACTED}{quote}");
        }
        match redactor.without_secrets(&value) {
            // The quotes and signs of the value are escaped again.
            Some(value) if quote == "\"" => Value::from(value).to_string(),
            Some(value) => format!("{quote}{value}{quote}"),
            None => token.to_owned(),
        }
    }

    fn sign(&mut self, sign: char) {
        match sign {
            ':' | '=' => {
                self.is_named = is_secret_name(&self.last);
                self.is_after_option = false;
                self.depth = 0;
            }
            '[' => self.depth += usize::from(self.is_named),
            ']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_after_option = false;
                self.end();
            }
            '{' | '}' => *self = Self::default(),
            _ => {}
        }
    }

    /// The end of a value: only within a list do others follow.
    fn end(&mut self) {
        if self.depth == 0 {
            self.is_named = false;
        }
    }
}

/// The length of the token at the beginning of a text.
fn token(text: &str, first: char) -> usize {
    let mut is_escaped = false;
    let mut chars = text.char_indices().skip(1);
    let end = match first {
        '"' | '\'' => chars
            .find(|(_, it)| {
                let ends = *it == first && !is_escaped;
                is_escaped = *it == '\\' && first == '"' && !is_escaped;
                ends
            })
            .map(|(index, _)| index + 1),
        _ if first.is_ascii_alphanumeric() => chars
            .find(|(_, it)| !it.is_ascii_alphanumeric() && !matches!(it, '_' | '-' | '.'))
            .map(|(index, _)| index),
        _ => Some(first.len_utf8()),
    };
    end.unwrap_or(text.len())
}

/// Whether the string under this name is a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
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
    let is_plain = |it: &str| it.chars().all(|it| it.is_ascii_alphanumeric());
    let is_word = |it: &&str| value.strip_prefix(*it).is_some_and(is_plain);
    let has_prefix = PREFIXES.iter().any(|it| value.starts_with(it)) || WORDS.iter().any(is_word);
    let is_known = value.len() >= 16 && has_prefix;
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
    fn secrets_in_texts_are_replaced() {
        let redactor = Redactor::new(["Bearer hunter2hunter2".to_owned()]);
        for (text, expected) in [
            (
                r#"{"api_key": "abc", "level": 1}"#,
                r#"{"api_key":"[redacted]","level":1}"#,
            ),
            (
                r#"Result: [{"password": 1234}] {done}"#,
                r#"Result: [{"password":"[redacted]"}] {done}"#,
            ),
            (r#"{"a": [1, 2]}"#, r#"{"a": [1, 2]}"#),
            (
                "https://a.example/?api_key=abc&q=1",
                "https://a.example/?api_key=[redacted]&q=1",
            ),
            (
                "https://ann:pass@a.example/x@y",
                "https://[redacted]@a.example/x@y",
            ),
            ("the token hunter2hunter2", "the token [redacted]"),
            ("ghs_0123456789abcdefghij", "[redacted]"),
            ("hf_0123456789abcdefghij", "[redacted]"),
            ("npm_config_registry_url", "npm_config_registry_url"),
        ] {
            let mut value = Value::from(text);
            redactor.redact(&mut value);
            assert_eq!(value, expected);
            assert!(!redactor.redact(&mut value), "{text}");
        }
        let mut members = json!({"pin_token": 12, "secret": ["a", 1, {"b": "c"}], "password": {"type": "string"}});
        assert!(redactor.redact(&mut members));
        assert_eq!(
            members,
            json!({"pin_token": "[redacted]", "secret": ["[redacted]", "[redacted]", {"b": "c"}], "password": {"type": "string"}})
        );
    }

    #[test]
    fn secrets_in_diffs_are_replaced() {
        let known = ["tea".to_owned()];
        for (line, expected) in [
            (
                "+  \"env\": {\"API_KEY\": \"abc\", \"LEVEL\": \"x\"}",
                "+  \"env\": {\"API_KEY\": \"[redacted]\", \"LEVEL\": \"x\"}",
            ),
            (
                " env = { TOKEN = \"abc\", PORT = 1 }",
                " env = { TOKEN = \"[redacted]\", PORT = 1 }",
            ),
            (" TOKEN = 'a\"b'", " TOKEN = '[redacted]'"),
            (
                r#" "TOKEN": "a\"b", "C": "d""#,
                r#" "TOKEN": "[redacted]", "C": "d""#,
            ),
            (
                r#" "args": ["--api-key", "value", "--x"]"#,
                r#" "args": ["--api-key", "[redacted]", "--x"]"#,
            ),
            (
                "+    \"--api-key\",\n+    \"value\",\n+    \"x\"\n",
                "+    \"--api-key\",\n+    \"[redacted]\",\n+    \"x\"\n",
            ),
            (
                r#" "tea": {"X-Team": "tea"}"#,
                r#" "tea": {"X-Team": "[redacted]"}"#,
            ),
            (
                "   \"Authorization\": \"Bearer abcdefghijkl\"",
                "   \"Authorization\": \"[redacted]\"",
            ),
            (" \"TOKEN\": \"${TOKEN}\"", " \"TOKEN\": \"${TOKEN}\""),
            (
                " \"url\": \"https://a/b?c=d\"",
                " \"url\": \"https://a/b?c=d\"",
            ),
        ] {
            assert_eq!(without_secrets(line, &known), expected);
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
