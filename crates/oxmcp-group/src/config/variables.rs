//! The expansion of variables in a value: the environment, the inputs of VS Code, the folders.

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{MAIN_SEPARATOR_STR, Path},
};

use super::input::Input;

/// The spelling of variables, which each host has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    /// `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`, `${workspaceFolder}`.
    dollar: bool,
    /// `$VAR`.
    bare: bool,
    /// `{env:VAR}`, `{file:path}`.
    braces: bool,
}

impl Dialect {
    /// Claude Code, VS Code, Cursor.
    pub(super) const DOLLAR: Self = Self::new(true, false, false);
    /// Gemini CLI.
    pub(super) const GEMINI: Self = Self::new(true, true, false);
    /// OpenCode.
    pub(super) const BRACES: Self = Self::new(false, false, true);
    /// A key that VS Code and OpenCode share.
    pub(super) const DOLLAR_OR_BRACES: Self = Self::new(true, false, true);
    /// Codex passes every value as it is written.
    pub(super) const VERBATIM: Self = Self::new(false, false, false);

    const fn new(dollar: bool, bare: bool, braces: bool) -> Self {
        Self {
            dollar,
            bare,
            braces,
        }
    }
}

/// Whether a text may have variables, in any dialect.
pub(super) fn may_have_variable(text: &str) -> bool {
    ["$", "{env:", "{file:"].iter().any(|it| text.contains(it))
}

/// The maximum size of a file whose contents are a value.
const MAX_FILE_BYTES: u64 = 1 << 20;

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;
type Ask<'a> = &'a dyn Fn(&Input) -> Option<String>;

/// The values of variables.
pub(super) struct Variables<'a> {
    pub(super) environment: Lookup<'a>,
    pub(super) ask: Ask<'a>,
    pub(super) workspace: &'a Path,
    /// The folder of the configuration file.
    pub(super) folder: &'a Path,
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
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            let (before, variable) = rest.split_at(at);
            out.push_str(before);
            rest = match self.variable(variable, dialect)? {
                Some((value, after)) => {
                    out.push_str(&value);
                    after
                }
                None => {
                    // The character is ASCII.
                    let (first, after) = variable.split_at(1);
                    out.push_str(first);
                    after
                }
            };
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The value of the variable with which a text begins, and the text behind it.
    fn variable<'t>(
        &mut self,
        text: &'t str,
        dialect: Dialect,
    ) -> Result<Option<(String, &'t str)>, String> {
        let closed = |text: &'t str| {
            let closed = text.split_once('}');
            closed.ok_or_else(|| "a variable is not closed; add a `}`".to_owned())
        };
        if let (true, Some(text)) = (dialect.dollar, text.strip_prefix("${")) {
            let (variable, after) = closed(text)?;
            return Ok(Some((self.dollar(variable)?, after)));
        }
        // Other braces mean something else, such as JSON in an argument.
        if let (true, Some(text)) = (dialect.braces, text.strip_prefix('{')) {
            if !text.starts_with("env:") && !text.starts_with("file:") {
                return Ok(None);
            }
            let (variable, after) = closed(text)?;
            return Ok(Some((self.braces(variable)?, after)));
        }
        if let (true, Some(text)) = (dialect.bare, text.strip_prefix('$')) {
            let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
            let end = text.find(|it| !is_of_name(it)).unwrap_or(text.len());
            let (name, after) = text.split_at(end);
            if is_name(name) {
                return Ok(Some((self.environment(name)?, after)));
            }
        }
        Ok(None)
    }

    fn braces(&self, variable: &str) -> Result<String, String> {
        match variable.split_once(':') {
            Some(("file", path)) => self.file(path),
            Some((_, name)) => self.environment(name),
            None => Err(format!("unknown variable `{{{variable}}}`")),
        }
    }

    /// The contents of a file, without the white space around them.
    fn file(&self, path: &str) -> Result<String, String> {
        let path = match path.strip_prefix("~/") {
            Some(path) => Path::new(&self.home()?).join(path),
            None => self.folder.join(path),
        };
        let failed =
            |reason: &dyn std::fmt::Display| format!("could not read {}: {reason}", path.display());
        let mut text = String::new();
        let file = File::open(&path).map_err(|error| failed(&error))?;
        let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
        read.map_err(|error| failed(&error))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(failed(&format!("it has more than {MAX_FILE_BYTES} bytes")));
        }
        Ok(text.trim().to_owned())
    }

    fn home(&self) -> Result<String, String> {
        let home = (self.environment)("HOME").or_else(|| (self.environment)("USERPROFILE"));
        home.ok_or_else(|| "the home folder is not known; set `HOME`".into())
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
            "userHome" => return self.home(),
            _ => {}
        }
        let name = name.strip_prefix("env:").unwrap_or(name);
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

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
        && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
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
            folder: Path::new("/none"),
            inputs: HashMap::new(),
            answers: HashMap::new(),
        };
        variables.expand(text, dialect)
    }

    #[test]
    fn each_dialect_expands_its_variables() {
        for (text, dialect, expected) in [
            ("a${USER}b", Dialect::DOLLAR, "aadab"),
            ("${env:USER}/${USER}", Dialect::DOLLAR, "ada/ada"),
            ("${NONE:-x:-y}", Dialect::DOLLAR, "x:-y"),
            ("${EMPTY:-x}", Dialect::DOLLAR, "x"),
            ("[${EMPTY}]", Dialect::DOLLAR, "[]"),
            ("${USER:-x}", Dialect::DOLLAR, "ada"),
            ("${env:NONE:-}", Dialect::DOLLAR, ""),
            ("${TRICK}", Dialect::DOLLAR, "${USER}"),
            ("$USER $ {USER} $$", Dialect::DOLLAR, "$USER $ {USER} $$"),
            ("${workspaceFolder}", Dialect::DOLLAR, "/work/tea"),
            ("${workspaceFolderBasename}", Dialect::DOLLAR, "tea"),
            ("${userHome}", Dialect::DOLLAR, "/home/ada"),
            ("{env:USER}", Dialect::BRACES, "ada"),
            ("{\"a\":{}} {", Dialect::BRACES, "{\"a\":{}} {"),
            ("${USER}", Dialect::BRACES, "${USER}"),
            ("{\"a\":{env:USER}}", Dialect::BRACES, "{\"a\":ada}"),
            ("${USER}{env:USER}", Dialect::VERBATIM, "${USER}{env:USER}"),
            ("${USER}{env:USER}", Dialect::DOLLAR_OR_BRACES, "adaada"),
            ("$USER/${USER}$ $5 $$", Dialect::GEMINI, "ada/ada$ $5 $$"),
            ("{env:USER}$USER-x", Dialect::GEMINI, "{env:USER}ada-x"),
        ] {
            assert_eq!(expand(text, dialect).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn each_mistake_tells_the_variable() {
        for (text, dialect, expected) in [
            ("${NONE}", Dialect::DOLLAR, "`NONE` is not set"),
            ("{env:NONE}", Dialect::BRACES, "`NONE` is not set"),
            ("${USER", Dialect::DOLLAR, "not closed"),
            (
                "${command:pick}",
                Dialect::DOLLAR,
                "unknown variable `${command:pick}`",
            ),
            ("${}", Dialect::DOLLAR, "unknown variable `${}`"),
            ("${input:key}", Dialect::DOLLAR, "`key` is not declared"),
            ("$NONE", Dialect::GEMINI, "`NONE` is not set"),
            (
                "{file:./key}",
                Dialect::BRACES,
                "could not read /none/./key: ",
            ),
        ] {
            let error = expand(text, dialect).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
