//! Expansion of a template with values.

use crate::{
    uri::{decode, encode, is_reserved, is_unreserved},
    uri_template::parse::{Expression, Modifier, Operator, Part, UriTemplate, Variable},
};

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the standard that it follows is final"
)]
pub enum Value {
    /// A single text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
    /// Pairs of a name and a text.
    Pairs(Vec<(String, String)>),
}

impl UriTemplate {
    /// Expands the template with these values. Variables without a value are left out.
    pub fn expand<'a>(&self, value: impl Fn(&str) -> Option<&'a Value>) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => out.push_str(literal),
                Part::Expression(expression) => expression.expand(&mut out, &value),
            }
        }
        out
    }
}

impl Expression {
    fn expand<'a>(&self, out: &mut String, value: impl Fn(&str) -> Option<&'a Value>) {
        let mut before = self.operator.first();
        for variable in &self.variables {
            let Some(value) = value(&variable.name).filter(|value| !value.is_undefined()) else {
                continue;
            };
            out.extend(before);
            before = Some(self.operator.separator());
            Writer {
                out,
                operator: self.operator,
            }
            .variable(variable, value);
        }
    }
}

impl Value {
    /// Whether the value counts as undefined: an empty list or an empty set of pairs.
    fn is_undefined(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::List(items) => items.is_empty(),
            Self::Pairs(pairs) => pairs.is_empty(),
        }
    }
}

struct Writer<'a> {
    out: &'a mut String,
    operator: Operator,
}

impl Writer<'_> {
    fn variable(&mut self, variable: &Variable, value: &Value) {
        let name = &variable.name;
        let separator = self.operator.separator();
        match (value, variable.modifier) {
            (Value::Text(text), Modifier::Prefix(length)) => {
                let cut: String = text.chars().take(length).collect();
                self.named(name, &cut);
            }
            (Value::Text(text), _) => self.named(name, text),
            (Value::List(items), Modifier::Explode) => {
                self.joined(items, separator, |writer, item| writer.named(name, item));
            }
            (Value::Pairs(pairs), Modifier::Explode) => {
                self.joined(pairs, separator, |writer, (key, item)| {
                    writer.text(key);
                    writer.out.push('=');
                    writer.text(item);
                });
            }
            (Value::List(items), _) => {
                self.name(name);
                self.joined(items, ',', |writer, item| writer.text(item));
            }
            (Value::Pairs(pairs), _) => {
                self.name(name);
                self.joined(pairs, ',', |writer, (key, item)| {
                    writer.text(key);
                    writer.out.push(',');
                    writer.text(item);
                });
            }
        }
    }

    fn joined<T>(&mut self, items: &[T], separator: char, write: impl Fn(&mut Self, &T)) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(separator);
            }
            write(self, item);
        }
    }

    /// Appends a value, with its name if the operator requires it.
    fn named(&mut self, name: &str, text: &str) {
        if self.operator == Operator::Parameter && text.is_empty() {
            return self.out.push_str(name);
        }
        self.name(name);
        self.text(text);
    }

    fn name(&mut self, name: &str) {
        if self.operator.is_named() {
            self.out.push_str(name);
            self.out.push('=');
        }
    }

    fn text(&mut self, text: &str) {
        if !self.operator.keeps_reserved() {
            return encode(self.out, text.as_bytes(), is_unreserved);
        }
        // Existing percent codes are kept; any other percent sign is encoded.
        let kept = |byte| is_unreserved(byte) || is_reserved(byte);
        let mut pieces = text.split('%');
        encode(self.out, pieces.next().unwrap_or_default().as_bytes(), kept);
        for piece in pieces {
            let is_code = piece
                .get(..2)
                .is_some_and(|digits| decode(&format!("%{digits}")).is_some());
            self.out.push_str(if is_code { "%" } else { "%25" });
            encode(self.out, piece.as_bytes(), kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<Value> {
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let strings = |items: &[&str]| items.iter().map(|&it| it.to_owned()).collect();
        let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        match name {
            "var" => text("value"),
            "hello" => text("Hello World!"),
            "half" => text("50%"),
            "path" => text("/foo/bar"),
            "x" => text("1024"),
            "y" => text("768"),
            "empty" => text(""),
            "code" => text("a%20b%zz"),
            "list" => Some(Value::List(strings(&["red", "green", "blue"]))),
            "nothing" => Some(Value::List(Vec::new())),
            "keys" => Some(Value::Pairs(
                [("semi", ";"), ("dot", "."), ("comma", ",")]
                    .map(pair)
                    .into(),
            )),
            _ => None,
        }
    }

    /// The examples of the RFC, and cases that it does not spell out.
    #[test]
    fn expansions_match_the_rfc() {
        for (template, expected) in [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{+hello}", "Hello%20World!"),
            ("{+path}/here", "/foo/bar/here"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("{x,empty,undef,y}", "1024,,768"),
            ("X{.x,y}", "X.1024.768"),
            ("{/var:1,var}", "/v/value"),
            ("{;x,y,empty,undef}", ";x=1024;y=768;empty"),
            ("{?x,y,empty,undef}", "?x=1024&y=768&empty="),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{?undef,nothing}", ""),
            ("{half}{+half}", "50%2550%25"),
            ("{+code}{code}", "a%20b%25zza%2520b%25zz"),
            ("{list}", "red,green,blue"),
            ("{list*}", "red,green,blue"),
            ("{keys}", "semi,%3B,dot,.,comma,%2C"),
            ("{+keys*}", "semi=;,dot=.,comma=,"),
            ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
            ("{;list*}", ";list=red;list=green;list=blue"),
            ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
            ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
            ("{&list}", "&list=red,green,blue"),
            ("{.keys*}", ".semi=%3B.dot=..comma=%2C"),
            ("caf\u{e9}/{x}", "caf%C3%A9/1024"),
        ] {
            let values = [
                "var", "hello", "half", "path", "x", "y", "empty", "code", "list", "nothing",
                "keys",
            ];
            let values: Vec<_> = values.map(|name| (name, value(name))).into();
            let get = |name: &str| values.iter().find(|it| it.0 == name)?.1.as_ref();
            let template = UriTemplate::parse(template).unwrap();
            assert_eq!(template.expand(get), expected);
        }
    }
}
