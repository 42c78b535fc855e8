//! Parser of URI templates.

use std::fmt;

use crate::uri::{check_scheme, decode, normalized};

/// The maximum length of a template in bytes; handwritten ones are shorter.
const LONGEST: usize = 4096;
/// The maximum length of a prefix modifier (`:`), in characters.
const LONGEST_PREFIX: usize = 9999;

/// A URI template, of any level.
#[derive(Debug)]
pub struct UriTemplate {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) enum Part {
    /// Text that occurs in the URI unchanged, percent codes included.
    Literal(String),
    Expression(Expression),
}

#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) operator: Operator,
    pub(crate) variables: Vec<Variable>,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) modifier: Modifier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modifier {
    Whole,
    /// The first characters of the value, up to this number.
    Prefix(usize),
    /// Each item of a list on its own.
    Explode,
}

/// The operator of an expression, given by its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Segment,
    Parameter,
    Query,
    Continuation,
}

impl Operator {
    fn of(symbol: u8) -> Option<Self> {
        Some(match symbol {
            b'+' => Self::Reserved,
            b'#' => Self::Fragment,
            b'.' => Self::Label,
            b'/' => Self::Segment,
            b';' => Self::Parameter,
            b'?' => Self::Query,
            b'&' => Self::Continuation,
            _ => return None,
        })
    }

    /// The first character of an expansion that is not empty.
    pub(crate) fn first(self) -> Option<char> {
        Some(match self {
            Self::Simple | Self::Reserved => return None,
            Self::Fragment => '#',
            Self::Label => '.',
            Self::Segment => '/',
            Self::Parameter => ';',
            Self::Query => '?',
            Self::Continuation => '&',
        })
    }

    /// The separator between the values.
    pub(crate) fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Segment => '/',
            Self::Parameter => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Whether each value is preceded by its name.
    pub(crate) fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Whether values may contain reserved characters.
    pub(crate) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// A description of the error and its position.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("longer than {LONGEST} bytes"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let (literal, behind) = match rest.split_once('{') {
                Some((literal, behind)) => (literal, Some(behind)),
                None => (rest, None),
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(read_literal(literal)?));
            }
            let Some(behind) = behind else {
                return Ok(Self { parts });
            };
            let (inside, behind) = behind
                .split_once('}')
                .ok_or_else(|| format!("unclosed \"{{\" in \"{{{behind}\""))?;
            let expression = read_expression(inside)
                .map_err(|problem| format!("in \"{{{inside}}}\": {problem}"))?;
            parts.push(Part::Expression(expression));
            rest = behind;
        }
    }

    /// Checks that the template begins with a scheme, unless it begins with an expression.
    ///
    /// # Errors
    /// A description of the expected form.
    pub fn check_scheme(&self) -> Result<(), String> {
        match self.parts.first() {
            Some(Part::Expression(_)) => Ok(()),
            Some(Part::Literal(literal)) => check_scheme(literal),
            None => check_scheme(""),
        }
    }

    /// Returns the variables in their order, each with its name and whether it is exploded.
    pub fn variables(&self) -> impl Iterator<Item = (&str, bool)> {
        let expressions = self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Expression(expression) => Some(expression),
        });
        let variables = expressions.flat_map(|expression| &expression.variables);
        variables.map(|it| (it.name.as_str(), it.modifier == Modifier::Explode))
    }
}

impl Expression {
    /// Whether the expression can have several values.
    pub(crate) fn is_list(&self) -> bool {
        let variables = &self.variables;
        variables.len() > 1 || variables.iter().any(|it| it.modifier == Modifier::Explode)
    }
}

/// Writes the expression as in a template.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbol = match self.operator {
            Operator::Reserved => Some('+'),
            other => other.first(),
        };
        write!(f, "{{{}", symbol.map(String::from).unwrap_or_default())?;
        for (index, variable) in self.variables.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}", variable.name)?;
            match variable.modifier {
                Modifier::Whole => {}
                Modifier::Prefix(length) => write!(f, ":{length}")?,
                Modifier::Explode => f.write_str("*")?,
            }
        }
        f.write_str("}")
    }
}

fn read_literal(literal: &str) -> Result<String, String> {
    let is_wrong = |c: char| {
        c.is_control() || matches!(c, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '}')
    };
    if let Some(wrong) = literal.chars().find(|c| is_wrong(*c)) {
        return Err(format!("invalid character {wrong:?}; percent-encode it"));
    }
    if decode(literal).is_none() {
        return Err("each \"%\" must be followed by two hexadecimal digits".to_owned());
    }
    Ok(normalized(literal).into_owned())
}

fn read_expression(inside: &str) -> Result<Expression, String> {
    let symbol = inside.bytes().next();
    let operator = symbol.and_then(Operator::of);
    if operator.is_none()
        && let Some(symbol) = symbol.filter(|symbol| b"=,!@|".contains(symbol))
    {
        let symbol = char::from(symbol);
        return Err(format!(
            "invalid operator {symbol:?}; expected one of `+ # . / ; ? &`"
        ));
    }
    let names = inside.get(usize::from(operator.is_some())..);
    let variables = names.unwrap_or_default().split(',').map(read_variable);
    Ok(Expression {
        operator: operator.unwrap_or(Operator::Simple),
        variables: variables.collect::<Result<_, _>>()?,
    })
}

fn read_variable(text: &str) -> Result<Variable, String> {
    let (name, modifier) = if let Some(name) = text.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, length)) = text.split_once(':') {
        (name, Modifier::Prefix(read_length(length)?))
    } else {
        (text, Modifier::Whole)
    };
    let is_name = |part: &str| {
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%');
        !part.is_empty() && part.chars().all(is_name_char)
    };
    if !name.split('.').all(is_name) || decode(name).is_none() {
        return Err(format!(
            "invalid variable name {name:?}; use only A-Z, a-z, 0-9 and \"_\""
        ));
    }
    let name = name.to_owned();
    Ok(Variable { name, modifier })
}

fn read_length(text: &str) -> Result<usize, String> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let length = text.parse().ok().filter(|_| is_digits);
    length
        .filter(|length| *length <= LONGEST_PREFIX)
        .ok_or_else(|| format!("invalid prefix length \":{text}\"; expected 1 to {LONGEST_PREFIX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_of_all_levels_are_parsed() {
        for text in [
            "",
            "plain",
            "{var}",
            "{+path}/here{#x,hello}",
            "{.list*}{/list,path:4}{;x,y}{?x,y,list*}{&z}",
            "{a.b_c.%41}",
            "é{x}",
        ] {
            assert!(UriTemplate::parse(text).is_ok(), "{text}");
        }
        let template = UriTemplate::parse("a://{x}{?y,z*}").unwrap();
        let variables: Vec<_> = template.variables().collect();
        assert_eq!(variables, [("x", false), ("y", false), ("z", true)]);
    }

    #[test]
    fn invalid_template_error_explains_the_problem() {
        let wrong: Vec<_> = [
            "a://{x",
            "a://x}",
            "a://{}",
            "a://{x,}",
            "a://{=x}",
            "a://{x y}",
            "a://{x:}",
            "a://{x:0}",
            "a://{x:10000}",
            "a://{x..y}",
            "a://{x%4}",
            "a b",
            "a%4",
            "a://{+}",
            "a://{x{y}}",
        ]
        .into_iter()
        .map(|text| format!("{text} => {}", UriTemplate::parse(text).unwrap_err()))
        .collect();
        insta::assert_snapshot!(wrong.join("\n"), @r#"
        a://{x => unclosed "{" in "{x"
        a://x} => invalid character '}'; percent-encode it
        a://{} => in "{}": invalid variable name ""; use only A-Z, a-z, 0-9 and "_"
        a://{x,} => in "{x,}": invalid variable name ""; use only A-Z, a-z, 0-9 and "_"
        a://{=x} => in "{=x}": invalid operator '='; expected one of `+ # . / ; ? &`
        a://{x y} => in "{x y}": invalid variable name "x y"; use only A-Z, a-z, 0-9 and "_"
        a://{x:} => in "{x:}": invalid prefix length ":"; expected 1 to 9999
        a://{x:0} => in "{x:0}": invalid prefix length ":0"; expected 1 to 9999
        a://{x:10000} => in "{x:10000}": invalid prefix length ":10000"; expected 1 to 9999
        a://{x..y} => in "{x..y}": invalid variable name "x..y"; use only A-Z, a-z, 0-9 and "_"
        a://{x%4} => in "{x%4}": invalid variable name "x%4"; use only A-Z, a-z, 0-9 and "_"
        a b => invalid character ' '; percent-encode it
        a%4 => each "%" must be followed by two hexadecimal digits
        a://{+} => in "{+}": invalid variable name ""; use only A-Z, a-z, 0-9 and "_"
        a://{x{y}} => in "{x{y}": invalid variable name "x{y"; use only A-Z, a-z, 0-9 and "_"
        "#);
        assert!(UriTemplate::parse(&"x".repeat(LONGEST + 1)).is_err());
    }
}
