use crate::{Error, Result};

/// The longest name of a tool.
const LONGEST: usize = 128;

/// Checks a tool's name against the
/// [rules](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-names), which clients rely on.
pub(super) fn check(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > LONGEST {
        return Err(Error::misuse(format!(
            "tool name {name:?}: a name has 1 to {LONGEST} characters, this one has {}",
            name.chars().count()
        )));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name.chars().find(|c| !allowed(*c)) {
        Some(wrong) => Err(Error::misuse(format!(
            "tool name {name:?}: {wrong:?} is not allowed; a name is made of A-Z, a-z, 0-9, '_', '-' and '.'"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules() {
        for name in [
            "a",
            "getUser",
            "DATA_EXPORT_v2",
            "admin.tools.list",
            &"x".repeat(128),
        ] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "two words",
            "a,b",
            "naïve",
            "a/b",
            "a\n",
            &"x".repeat(129),
        ] {
            assert!(check(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_error_says_what_is_allowed() {
        insta::assert_snapshot!(
            check("two words").unwrap_err(),
            @r#"tool name "two words": ' ' is not allowed; a name is made of A-Z, a-z, 0-9, '_', '-' and '.'"#
        );
    }
}
