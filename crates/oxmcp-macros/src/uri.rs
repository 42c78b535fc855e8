//! Variables of a URI template. The complete rules are in `oxmcp-protocol`, and are checked when the server is built; this
//! module has the checks at compile time.

/// A variable of a template, and the values that it takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Whether a URI may omit the variable.
    pub(crate) is_optional: bool,
    /// Whether the variable takes several values.
    pub(crate) is_list: bool,
}

/// The variables of a template, or a description of the mistake in it.
pub(crate) fn variables(template: &str) -> Result<Vec<Variable>, String> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (_, found) = rest.split_at(at);
        let expression = found.strip_prefix('{').ok_or("unmatched `}`")?;
        let (expression, after) = expression.split_once('}').ok_or("unclosed `{`")?;
        rest = after;
        let operator = expression.chars().next().filter(|c| "+#./;?&".contains(*c));
        let names = operator.map_or(expression, |_| expression.get(1..).unwrap_or_default());
        for (index, name) in names.split(',').enumerate() {
            let is_list = name.ends_with('*');
            let name = name.trim_end_matches('*');
            let name = name.split(':').next().unwrap_or(name);
            let allowed = |c: char| c.is_ascii_alphanumeric() || "_.%".contains(c);
            if name.is_empty() || !name.chars().all(allowed) {
                return Err(format!("`{{{expression}}}` has no variable name"));
            }
            if variables.iter().any(|it| it.name == name) {
                return Err(format!("duplicate variable `{name}`"));
            }
            variables.push(Variable {
                name: name.to_owned(),
                is_optional: index > 0 || operator.is_some_and(|operator| operator != '+'),
                is_list,
            });
        }
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_variables_are_found() {
        let found = |template: &str| {
            let variables = variables(template).unwrap();
            let all = variables.iter().map(|it| {
                let optional = if it.is_optional { "?" } else { "" };
                format!("{}{optional}{}", it.name, if it.is_list { "*" } else { "" })
            });
            all.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("weather://now"), "");
        assert_eq!(found("weather://{city}/{day}"), "city day");
        assert_eq!(found("a://{x,y}{?q,r*}{+path:3}"), "x y? q? r?* path");
        assert_eq!(found("a://{/segments*}{#end}"), "segments?* end?");
    }

    #[test]
    fn template_mistakes_are_reported() {
        for (template, mistake) in [
            ("a://{b", "unclosed `{`"),
            ("a://b}", "unmatched `}`"),
            ("a://{}", "no variable name"),
            ("a://{b c}", "no variable name"),
            ("a://{b}/{b}", "duplicate variable"),
        ] {
            let told = variables(template).unwrap_err();
            assert!(told.contains(mistake), "{template}: {told}");
        }
    }
}
