//! The expansion of variables in a value: the environment, the inputs of VS Code, the folders.

use std::{
    collections::HashMap,
    path::{MAIN_SEPARATOR_STR, Path},
};

use super::input::Input;

/// The spelling of variables, which each host has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`, `${workspaceFolder}`: Claude Code, VS Code, Cursor.
    Dollar,
    /// `{env:VAR}`: OpenCode.
    Braces,
    /// No variables: Codex passes every value as it is written.
    Verbatim,
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;
type Ask<'a> = &'a dyn Fn(&Input) -> Option<String>;

/// The values of variables.
pub(super) struct Variables<'a> {
    pub(super) environment: Lookup<'a>,
    pub(super) ask: Ask<'a>,
    pub(super) workspace: &'a Path,
    /// The declared inputs, by id.
    pub(super) inputs: HashMap<String, Input>,
    /// The answers so far: each input is asked for once.
    pub(super) answers: HashMap<String, Option<String>>,
}

impl Variables<'_> {
    /// The value of an environment variable.
    pub(super) fn environment(&self, name: &str) -> Result<String, String> {
        (self.environment)(name)
            .ok_or_else(|| format!("the environment variable `{name}` is not set; set it"))
    }

    /// Replaces the variables in a value.
    ///
    /// # Errors
    /// The mistake, for the first variable that has no value.
    pub(super) fn expand(&mut self, text: &str, dialect: Dialect) -> Result<String, String> {
        let open = match dialect {
            Dialect::Verbatim => return Ok(text.to_owned()),
            Dialect::Dollar => "${",
            Dialect::Braces => "{",
        };
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(open) {
            out.push_str(before);
            rest = after;
            match (dialect, after.split_once('}')) {
                // Braces mean something else elsewhere, such as JSON in an argument.
                (Dialect::Braces, _) if !is_braces_variable(after) => out.push_str(open),
                (_, None) => return Err("a variable is not closed; add a `}`".into()),
                (Dialect::Braces, Some((variable, after))) => {
                    out.push_str(&self.braces(variable)?);
                    rest = after;
                }
                (_, Some((variable, after))) => {
                    out.push_str(&self.dollar(variable)?);
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn braces(&self, variable: &str) -> Result<String, String> {
        match variable.strip_prefix("env:") {
            Some(name) => self.environment(name),
            None => Err("`{file:…}` is not supported; use `{env:…}` for this value".into()),
        }
    }

    fn dollar(&mut self, variable: &str) -> Result<String, String> {
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        if let Some(id) = name.strip_prefix("input:") {
            return self.input(id);
        }
        let workspace = |part: Option<&Path>| {
            let part = part.map(|it| it.to_string_lossy().into_owned());
            part.ok_or_else(|| "the workspace folder has no name".to_owned())
        };
        match name {
            "workspaceFolder" => return workspace(Some(self.workspace)),
            "workspaceFolderBasename" => {
                return workspace(self.workspace.file_name().map(Path::new));
            }
            "pathSeparator" | "/" => return Ok(MAIN_SEPARATOR_STR.into()),
            "userHome" => {
                let home = (self.environment)("HOME").or_else(|| (self.environment)("USERPROFILE"));
                return home.ok_or_else(|| "the home folder is not known; set `HOME`".into());
            }
            _ => {}
        }
        let name = name.strip_prefix("env:").unwrap_or(name);
        let is_name = |text: &str| {
            let mut bytes = text.bytes();
            bytes
                .next()
                .is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
                && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
        };
        if !is_name(name) {
            return Err(format!(
                "unknown variable `${{{variable}}}`; expected `${{NAME}}`, `${{NAME:-default}}`, `${{env:NAME}}`, \
                 `${{input:id}}`, `${{workspaceFolder}}` or `${{userHome}}`"
            ));
        }
        match (self.environment(name), default) {
            // As in a shell, the default also replaces an empty value.
            (Ok(value), Some(default)) if value.is_empty() => Ok(default.into()),
            (Err(_), Some(default)) => Ok(default.into()),
            (value, _) => value,
        }
    }

    fn input(&mut self, id: &str) -> Result<String, String> {
        if let Some(answer) = self.answers.get(id) {
            return answer.clone().ok_or_else(|| no_value(id));
        }
        let input = self.inputs.get(id).ok_or_else(|| {
            format!("the input `{id}` is not declared; add it to `inputs` of the file")
        })?;
        let answer = (self.ask)(input);
        self.answers.insert(id.to_owned(), answer.clone());
        answer.ok_or_else(|| no_value(id))
    }
}

fn is_braces_variable(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:")
}

fn no_value(id: &str) -> String {
    format!("the input `{id}` has no value; give one with `ConfigReader::inputs`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, dialect: Dialect) -> Result<String, String> {
        let environment = |name: &str| match name {
            "USER" => Some("ada".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/ada".to_owned()),
            // A value with the form of a variable must not be expanded again.
            "TRICK" => Some("${USER}".to_owned()),
            _ => None,
        };
        let mut variables = Variables {
            environment: &environment,
            ask: &|_| None,
            workspace: Path::new("/work/tea"),
            inputs: HashMap::new(),
            answers: HashMap::new(),
        };
        variables.expand(text, dialect)
    }

    #[test]
    fn each_dialect_expands_its_variables() {
        for (text, dialect, expected) in [
            ("a${USER}b", Dialect::Dollar, "aadab"),
            ("${env:USER}/${USER}", Dialect::Dollar, "ada/ada"),
            ("${NONE:-x:-y}", Dialect::Dollar, "x:-y"),
            ("${EMPTY:-x}", Dialect::Dollar, "x"),
            ("[${EMPTY}]", Dialect::Dollar, "[]"),
            ("${USER:-x}", Dialect::Dollar, "ada"),
            ("${env:NONE:-}", Dialect::Dollar, ""),
            ("${TRICK}", Dialect::Dollar, "${USER}"),
            ("$USER $ {USER} $$", Dialect::Dollar, "$USER $ {USER} $$"),
            ("${workspaceFolder}", Dialect::Dollar, "/work/tea"),
            ("${workspaceFolderBasename}", Dialect::Dollar, "tea"),
            ("${userHome}", Dialect::Dollar, "/home/ada"),
            ("{env:USER}", Dialect::Braces, "ada"),
            ("{\"a\":{}} {", Dialect::Braces, "{\"a\":{}} {"),
            ("${USER}", Dialect::Braces, "${USER}"),
            ("{\"a\":{env:USER}}", Dialect::Braces, "{\"a\":ada}"),
            ("${USER}{env:USER}", Dialect::Verbatim, "${USER}{env:USER}"),
        ] {
            assert_eq!(expand(text, dialect).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn each_mistake_tells_the_variable() {
        for (text, dialect, expected) in [
            ("${NONE}", Dialect::Dollar, "`NONE` is not set"),
            ("{env:NONE}", Dialect::Braces, "`NONE` is not set"),
            ("${USER", Dialect::Dollar, "not closed"),
            (
                "${command:pick}",
                Dialect::Dollar,
                "unknown variable `${command:pick}`",
            ),
            ("${}", Dialect::Dollar, "unknown variable `${}`"),
            ("${input:key}", Dialect::Dollar, "`key` is not declared"),
            (
                "{file:./key}",
                Dialect::Braces,
                "`{file:…}` is not supported",
            ),
        ] {
            let error = expand(text, dialect).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
