//! Changes of the text of a file, which keep its comments and its formatting.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use similar::{ChangeTag, TextDiff};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};

use crate::{
    args::HostName,
    failure::{Failure, Result},
};

/// The table of the servers in Codex's file.
const CODEX: &str = "mcp_servers";

/// Adds a server to the text of a file. The text of a file that does not exist is empty.
///
/// # Errors
/// The text cannot be read, or has another server of this name.
pub(super) fn insert(
    host: HostName,
    text: &str,
    name: &str,
    server: CstInputValue,
    replaces: bool,
) -> Result<String> {
    let taken = || {
        Failure::usage(format!(
            "it has another server {name:?}; `--replace` replaces it, `--name` gives another name"
        ))
    };
    if host == HostName::Codex {
        let mut document = toml(text)?;
        let servers = document.entry(CODEX).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let servers = servers
            .as_table_like_mut()
            .ok_or_else(|| not_an_object(CODEX))?;
        let server = Item::Table(table(server));
        match servers.get(name) {
            Some(old) if same_toml(old, &server) => return Ok(text.to_owned()),
            Some(_) if !replaces => return Err(taken()),
            _ => servers.insert(name, server),
        };
        return Ok(with_line_ends(text, &document.to_string()));
    }
    let root = json(text)?;
    let servers = servers(host, &root, true)?.ok_or_else(|| not_an_object("the file"))?;
    let Some(old) = servers.get(name) else {
        servers.append(name, server);
        return Ok(with_newline(root.to_string()));
    };
    let before = old.to_serde_value();
    let written = CstRootNode::parse("{}", &ParseOptions::default()).map_err(unreadable)?;
    written.object_value_or_set().append(name, server.clone());
    let after = written
        .to_serde_value()
        .and_then(|it| it.get(name).cloned());
    if before.is_some() && before == after {
        return Ok(text.to_owned());
    }
    if !replaces {
        return Err(taken());
    }
    old.set_value(server);
    Ok(root.to_string())
}

/// Removes a server from the text of a file.
///
/// # Errors
/// The text cannot be read, or has no server of this name.
pub(super) fn remove(host: HostName, text: &str, name: &str) -> Result<String> {
    let missing = || Failure::usage(format!("it has no server {name:?}"));
    if host == HostName::Codex {
        let mut document = toml(text)?;
        let servers = document.get_mut(CODEX).and_then(Item::as_table_like_mut);
        servers.and_then(|it| it.remove(name)).ok_or_else(missing)?;
        return Ok(with_line_ends(text, &document.to_string()));
    }
    let root = json(text)?;
    let servers = servers(host, &root, false)?;
    servers
        .and_then(|it| it.get(name))
        .ok_or_else(missing)?
        .remove();
    Ok(root.to_string())
}

/// The text of a server in the text of a file.
///
/// # Errors
/// The text cannot be read.
pub(super) fn find(host: HostName, text: &str, name: &str) -> Result<Option<String>> {
    if host == HostName::Codex {
        let document = toml(text)?;
        let servers = document.get(CODEX).and_then(Item::as_table_like);
        return Ok(servers.and_then(|it| it.get(name)).map(Item::to_string));
    }
    let servers = servers(host, &json(text)?, false)?;
    Ok(servers.and_then(|it| it.get(name)).map(|it| it.to_string()))
}

fn json(text: &str) -> Result<CstRootNode> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    CstRootNode::parse(text, &ParseOptions::default()).map_err(unreadable)
}

fn toml(text: &str) -> Result<DocumentMut> {
    text.parse().map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!(
        "could not read the file, so it is not changed: {error}"
    ))
}

fn not_an_object(name: &str) -> Failure {
    Failure::usage(format!(
        "could not change the file: `{name}` is not an object"
    ))
}

/// Restores the ends of the lines, of which the parser of TOML makes line feeds. New lines end as the first one does.
fn with_line_ends(before: &str, after: &str) -> String {
    const LONG: &str = "\r\n";
    if !before.contains(LONG) {
        return after.to_owned();
    }
    let (plain, after) = (before.replace(LONG, "\n"), after.replace(LONG, "\n"));
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let is_long = old.first().is_some_and(|it| it.ends_with(LONG));
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let plain: Vec<&str> = plain.split_inclusive('\n').collect();
    let mut text = String::with_capacity(before.len() + after.len());
    for change in TextDiff::from_slices(&plain, &new).iter_all_changes() {
        let kept = change.old_index().and_then(|it| old.get(it));
        match (change.tag(), kept) {
            (ChangeTag::Delete, _) => {}
            (ChangeTag::Equal, Some(line)) => text.push_str(line),
            _ if is_long => text.push_str(&change.value().replace('\n', LONG)),
            _ => text.push_str(change.value()),
        }
    }
    text
}

fn with_newline(text: String) -> String {
    if text.ends_with('\n') {
        text
    } else {
        text + "\n"
    }
}

/// The object of the servers. It is created if it is missing and `creates`.
fn servers(host: HostName, root: &CstRootNode, creates: bool) -> Result<Option<CstObject>> {
    let Some(object) = root.object_value() else {
        return Err(not_an_object("the file"));
    };
    let keys: &[&str] = match host {
        HostName::Vscode => &["servers"],
        HostName::Opencode => match object.object_value("mcp") {
            Some(mcp) if mcp.object_value("servers").is_some() => &["mcp", "servers"],
            _ => &["mcp"],
        },
        _ => &["mcpServers"],
    };
    let mut object = object;
    for key in keys {
        let is_there = object.get(key).is_some();
        object = match object.object_value(key) {
            Some(inner) => inner,
            None if is_there => return Err(not_an_object(key)),
            None if creates => object.object_value_or_set(key),
            None => return Ok(None),
        };
    }
    Ok(Some(object))
}

/// The members of a server as a table of TOML.
fn table(server: CstInputValue) -> Table {
    let mut table = Table::new();
    if let CstInputValue::Object(members) = server {
        for (name, member) in members {
            table.insert(&name, item(member));
        }
    }
    table
}

fn item(member: CstInputValue) -> Item {
    match member {
        CstInputValue::String(text) => value(text),
        CstInputValue::Bool(flag) => value(flag),
        CstInputValue::Array(items) => {
            let texts = items.into_iter().filter_map(|it| match it {
                CstInputValue::String(text) => Some(text),
                _ => None,
            });
            value(Array::from_iter(texts))
        }
        CstInputValue::Object(members) => {
            let texts = members.into_iter().filter_map(|(name, it)| match it {
                CstInputValue::String(text) => Some((name, text)),
                _ => None,
            });
            value(InlineTable::from_iter(texts))
        }
        CstInputValue::Number(_) | CstInputValue::Null => Item::None,
    }
}

/// Whether two tables have the same members, whatever their form.
fn same_toml(a: &Item, b: &Item) -> bool {
    match (a.as_table_like(), b.as_table_like()) {
        (Some(a), Some(b)) => {
            let is_in = |other: &dyn TableLike, (name, item): (&str, &Item)| {
                other.get(name).is_some_and(|it| same_toml(it, item))
            };
            a.len() == b.len() && a.iter().all(|it| is_in(b, it))
        }
        (None, None) => a.to_string().trim() == b.to_string().trim(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> CstInputValue {
        let text = |it: &str| CstInputValue::String(it.to_owned());
        CstInputValue::Object(vec![
            ("command".to_owned(), text("npx")),
            (
                "args".to_owned(),
                CstInputValue::Array(vec![text("-y"), text("some\"server")]),
            ),
            (
                "env".to_owned(),
                CstInputValue::Object(vec![("A".to_owned(), text("1"))]),
            ),
        ])
    }

    #[test]
    fn comments_and_formatting_stay() {
        let before = "\u{7b}\r\n    // mine\r\n    \"theme\": \"dark\", /* why */\r\n    \"mcpServers\": {\r\n        \"a\": {\"command\": \"a\"}, // first\r\n    },\r\n}\r\n";
        let after = insert(HostName::Cursor, before, "tea", server(), false).unwrap();
        insta::assert_snapshot!(after.replace('\r', "␍"), @r#"
        {␍
            // mine␍
            "theme": "dark", /* why */␍
            "mcpServers": {␍
                "a": {"command": "a"}, // first␍
                "tea": {␍
                    "command": "npx",␍
                    "args": ["-y", "some\"server"],␍
                    "env": {␍
                        "A": "1",␍
                    },␍
                },␍
            },␍
        }␍
        "#);
        let again = insert(HostName::Cursor, &after, "tea", server(), false).unwrap();
        assert_eq!(again, after);
        let removed = remove(HostName::Cursor, &after, "tea").unwrap();
        assert_eq!(removed, before);
    }

    #[test]
    fn toml_keeps_its_comments() {
        let before = "# mine\nmodel = \"x\" # why\n\n[mcp_servers.a]\ncommand = \"a\" # first\n";
        let after = insert(HostName::Codex, before, "tea", server(), false).unwrap();
        insta::assert_snapshot!(after, @r#"
        # mine
        model = "x" # why

        [mcp_servers.a]
        command = "a" # first

        [mcp_servers.tea]
        command = "npx"
        args = ["-y", 'some"server']
        env = { A = "1" }
        "#);
        assert_eq!(
            insert(HostName::Codex, &after, "tea", server(), false).unwrap(),
            after
        );
        assert_eq!(remove(HostName::Codex, &after, "tea").unwrap(), before);
    }

    #[test]
    fn toml_keeps_its_line_ends() {
        let before = "# mine\r\nmodel = \"x\"\r\n\r\n[mcp_servers.a]\r\ncommand = \"a\"\n";
        let after = insert(HostName::Codex, before, "tea", server(), false).unwrap();
        insta::assert_snapshot!(after.replace('\r', "␍"), @r#"
        # mine␍
        model = "x"␍
        ␍
        [mcp_servers.a]␍
        command = "a"
        ␍
        [mcp_servers.tea]␍
        command = "npx"␍
        args = ["-y", 'some"server']␍
        env = { A = "1" }␍
        "#);
        assert_eq!(remove(HostName::Codex, &after, "tea").unwrap(), before);
    }

    #[test]
    fn another_server_of_the_name_stays() {
        for (host, before) in [
            (
                HostName::Gemini,
                r#"{"mcpServers": {"tea": {"command": "other"}}}"#,
            ),
            (HostName::Codex, "[mcp_servers.tea]\ncommand = \"other\"\n"),
        ] {
            let failed = insert(host, before, "tea", server(), false).unwrap_err();
            assert!(failed.to_string().contains("--replace"), "{failed}");
            let replaced = insert(host, before, "tea", server(), true).unwrap();
            assert!(
                replaced.contains("npx") && !replaced.contains("other"),
                "{replaced}"
            );
        }
        let broken = insert(
            HostName::Gemini,
            "{\"mcpServers\": [",
            "tea",
            server(),
            true,
        );
        assert!(broken.unwrap_err().to_string().contains("not changed"));
        let other = insert(
            HostName::Gemini,
            "{\"mcpServers\": []}",
            "tea",
            server(),
            true,
        );
        assert!(
            other
                .unwrap_err()
                .to_string()
                .contains("`mcpServers` is not an object")
        );
    }

    #[test]
    fn new_files_have_only_the_server() {
        for host in [
            HostName::Vscode,
            HostName::Opencode,
            HostName::ClaudeCode,
            HostName::Codex,
        ] {
            let text = insert(host, "", "tea", server(), false).unwrap();
            let removed = remove(host, &text, "tea").unwrap();
            assert!(!removed.contains("npx"), "{removed}");
        }
        let text = insert(HostName::Vscode, "", "tea", server(), false).unwrap();
        insta::assert_snapshot!(text, @r#"
        {
          "servers": {
            "tea": {
              "command": "npx",
              "args": ["-y", "some\"server"],
              "env": {
                "A": "1"
              }
            }
          }
        }
        "#);
    }
}
