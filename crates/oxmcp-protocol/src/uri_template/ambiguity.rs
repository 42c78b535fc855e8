//! Ambiguity checks: templates that could match a URI in more than one way are refused.

use std::collections::HashSet;

use crate::uri_template::parse::{Expression, Modifier, Operator, Part, UriTemplate, Variable};

/// The maximum number of variables; with more, it is hard to see which variable matches which part.
const MOST_VARIABLES: usize = 32;

/// The state of the check before an expression.
#[derive(Debug, Default)]
pub(crate) struct Preceding {
    pub(crate) in_query: bool,
    /// The last `{+x}`, if no `?` or `#` has ended it yet.
    open: Option<String>,
}

impl Preceding {
    pub(crate) fn literal(&mut self, literal: &str) {
        if literal.contains(['?', '#']) {
            self.open = None;
        }
        self.in_query |= literal.contains('?');
    }

    pub(crate) fn expression<'a>(
        &mut self,
        expression: &Expression,
        mut later: impl Iterator<Item = &'a Part>,
    ) -> Result<(), String> {
        match expression.operator {
            Operator::Query if self.in_query => Err(format!(
                "the query starts before {expression}; write \"&\" instead of \"?\" in it"
            )),
            Operator::Query | Operator::Continuation | Operator::Fragment => {
                let ends = match expression.operator {
                    Operator::Fragment => later.next().is_none(),
                    _ => later.next().is_none_or(starts_fragment),
                };
                if ends {
                    return Ok(());
                }
                Err(format!(
                    "{expression} must come last, since it matches the rest of the URI; put all such variables into one expression"
                ))
            }
            Operator::Reserved => match self.open.replace(expression.to_string()) {
                None => Ok(()),
                Some(open) => Err(format!(
                    "ambiguous template: {open} and {expression} both match slashes; remove the \"+\" from one of them"
                )),
            },
            _ => Ok(()),
        }
    }
}

fn starts_fragment(part: &Part) -> bool {
    match part {
        Part::Literal(literal) => literal.starts_with('#'),
        Part::Expression(expression) => expression.operator == Operator::Fragment,
    }
}

/// Checks that no variable occurs twice, and that there are not too many.
pub(crate) fn check_names(template: &UriTemplate) -> Result<(), String> {
    let mut seen = HashSet::new();
    for (name, _) in template.variables() {
        if !seen.insert(name) {
            return Err(format!(
                "duplicate variable {name:?}; use a different name in each place"
            ));
        }
    }
    if seen.len() > MOST_VARIABLES {
        return Err(format!("more than {MOST_VARIABLES} variables"));
    }
    Ok(())
}

/// Checks that the values of an expression can be told apart.
pub(crate) fn check(expression: &Expression) -> Result<(), String> {
    let explodes = |variable: &Variable| variable.modifier == Modifier::Explode;
    match expression.operator {
        Operator::Reserved | Operator::Fragment | Operator::Label if expression.is_list() => {
            Err(format!(
                "{expression} cannot be matched, since a value may contain {:?}; use one variable without \"*\", and split its value",
                expression.operator.separator()
            ))
        }
        Operator::Simple | Operator::Segment
            if expression.variables.iter().rev().skip(1).any(explodes) =>
        {
            Err(format!(
                "ambiguous template: in {expression}, the variable with \"*\" matches any number of values; put it last"
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that an expression can be told apart from the part that follows directly.
pub(crate) fn check_next(expression: &Expression, next: Option<&Part>) -> Result<(), String> {
    let own = expression.operator;
    match next {
        Some(Part::Literal(literal)) => {
            if own == Operator::Parameter && literal.starts_with(';') {
                return Err(format!(
                    "ambiguous template: {expression} also matches the \";\" after it; put all such variables into one expression"
                ));
            }
            Ok(())
        }
        Some(Part::Expression(next)) => {
            let first = next.operator.first();
            if own.is_named() && first == Some(own.separator()) {
                return Err(format!(
                    "ambiguous template: {expression} also matches the values of {next}; put all variables into one expression"
                ));
            }
            let is_doubtful = match first {
                None => true,
                Some('/') => {
                    own == Operator::Reserved || own == Operator::Segment && expression.is_list()
                }
                Some(first) => own == Operator::Reserved && first == '.',
            };
            if is_doubtful {
                return Err(format!(
                    "ambiguous template: nothing separates {expression} and {next}; put \"/\" or \"-\" between them"
                ));
            }
            Ok(())
        }
        None => Ok(()),
    }
}
