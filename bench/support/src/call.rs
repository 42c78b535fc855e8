//! Calls of the benchmark: requests, and checks of their results.

use std::{borrow::Cow, io::Write, str::FromStr};

use serde::Deserialize;

use crate::{Era, order};

/// The number of tools that every server of the benchmark has: `add`, `echo`, `stream` and a hundred dummies.
pub const TOOLS: usize = 103;

/// The request that a run of the benchmark repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `tools/call` of `add`, with other numbers each time.
    Add,
    /// `tools/call` of `echo`, with a text that needs some escaping, like prose.
    Echo {
        /// The text.
        text: String,
        /// The text as a JSON string, quotes included.
        json: String,
    },
    /// `tools/call` of `quote`, with the members of an order after its reference.
    Quote(String),
    /// `tools/call` of `wait`, which another task answers.
    Wait,
    /// `tools/list`, with this number of tools in the result.
    List(usize),
    /// `tools/call` of `stream`, which sends this many progress notifications before the answer.
    Progress(u64),
}

impl Call {
    /// An echo of about `bytes` bytes.
    #[must_use]
    pub fn echo(bytes: usize) -> Self {
        let text: String = PROSE.chars().cycle().take(bytes).collect();
        let json = serde_json::to_string(&text).expect("a string is always valid JSON");
        Self::Echo { text, json }
    }

    /// Appends the request with this id, and its newline.
    pub fn write(&self, out: &mut Vec<u8>, id: u64, era: Era) {
        let meta = era.meta();
        let method = self.method();
        let written = write!(
            out,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"#
        )
        .and_then(|()| match self {
            Self::Add => write!(out, r#""name":"add","arguments":{{"a":{id},"b":7}}"#),
            Self::Echo { json, .. } => write!(out, r#""name":"echo","arguments":{{"text":{json}}}"#),
            Self::Quote(order) => write!(
                out,
                r#""name":"quote","arguments":{{"reference":"order-{id}{order}"#
            ),
            Self::Wait => write!(out, r#""name":"wait","arguments":{{"a":{id},"b":7}}"#),
            Self::List(_) => Ok(()),
            Self::Progress(n) => write!(
                out,
                r#""name":"stream","arguments":{{"n":{n}}},"_meta":{{"progressToken":{id}{}{meta}}}"#,
                if meta.is_empty() { "" } else { "," }
            ),
        })
        .and_then(|()| match self {
            Self::Progress(_) => Ok(()),
            _ if meta.is_empty() => Ok(()),
            Self::List(_) => write!(out, r#""_meta":{{{meta}}}"#),
            _ => write!(out, r#","_meta":{{{meta}}}"#),
        })
        .and_then(|()| out.write_all(b"}}\n"));
        written.expect("writing to a Vec cannot fail");
    }

    /// The method of the request.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::List(_) => "tools/list",
            _ => "tools/call",
        }
    }

    /// The name of the called tool, if the request calls one.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::Add => Some("add"),
            Self::Echo { .. } => Some("echo"),
            Self::Quote(_) => Some("quote"),
            Self::Wait => Some("wait"),
            Self::List(_) => None,
            Self::Progress(_) => Some("stream"),
        }
    }

    /// Checks the `result` of the request with this id.
    ///
    /// # Errors
    /// Describes the first problem of the result.
    pub fn check(&self, id: u64, result: &str) -> Result<(), String> {
        match self {
            Self::List(tools) => return check_list(*tools, result),
            Self::Quote(_) => return order::check(id, result),
            _ => {}
        }
        let result: CallResult<'_> =
            serde_json::from_str(result).map_err(|e| format!("{e} in {result:.200}"))?;
        let [block] = result.content.as_slice() else {
            return Err(format!(
                "expected one content block, got {}",
                result.content.len()
            ));
        };
        if result.is_error {
            return Err(format!("tool error: {:.200}", block.text));
        }
        let right = match self {
            Self::Add | Self::Wait => block.text.parse() == Ok(id + 7),
            Self::Echo { text, .. } => block.text == text.as_str(),
            Self::Progress(_) => block.text == "done",
            Self::Quote(_) | Self::List(_) => true,
        };
        if right {
            Ok(())
        } else {
            Err(format!("unexpected text: {:.200}", block.text))
        }
    }
}

/// Typical prose: mostly letters, with an occasional character that needs escaping.
const PROSE: &str = "It was said that \"every tool answers\", and so it was written down.\nThen the \
     next line began, a little longer than the first one, and it told of paths like C:\\temp and of \
     caf\u{e9}s.\n";

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(default, rename = "isError")]
    is_error: bool,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ListResult<'a> {
    #[serde(borrow)]
    tools: Vec<Tool<'a>>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

fn check_list(expected: usize, result: &str) -> Result<(), String> {
    let list: ListResult<'_> =
        serde_json::from_str(result).map_err(|e| format!("{e} in {result:.200}"))?;
    if list.tools.len() != expected {
        return Err(format!(
            "expected {expected} tools, got {}",
            list.tools.len()
        ));
    }
    for name in ["add", "echo", "stream", "dummy_000", "dummy_098"] {
        if !list.tools.iter().any(|tool| tool.name == name) {
            return Err(format!("the list lacks {name}"));
        }
    }
    Ok(())
}

impl FromStr for Call {
    type Err = String;

    /// Reads `add`, `echo:BYTES`, `quote`, `wait`, `list`, `list:TOOLS` or `progress:COUNT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "call={text}: expected add, echo:BYTES, quote, wait, list, list:TOOLS or progress:COUNT"
            )
        };
        match text.split_once(':') {
            None if text == "add" => Ok(Self::Add),
            None if text == "quote" => Ok(Self::Quote(order::order())),
            None if text == "wait" => Ok(Self::Wait),
            None if text == "list" => Ok(Self::List(TOOLS)),
            Some(("list", tools)) => Ok(Self::List(tools.parse().map_err(|_| wrong())?)),
            Some(("echo", bytes)) => Ok(Self::echo(bytes.parse().map_err(|_| wrong())?)),
            Some(("progress", count)) => Ok(Self::Progress(count.parse().map_err(|_| wrong())?)),
            _ => Err(wrong()),
        }
    }
}
