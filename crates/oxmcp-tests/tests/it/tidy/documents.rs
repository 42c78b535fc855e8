//! The documents: they name existing things, examples are short and run, and links to the specification name a revision.

use oxmcp::protocol::method;

use super::{
    none,
    source::{Source, files, library, read, root},
};

/// The files and functions that the documents name exist.
#[test]
fn documents_name_existing_items() {
    let all = files();
    let exists = |path: &str| {
        all.iter()
            .any(|it| it.path.ends_with(path) || it.path.starts_with(path))
    };
    let code: String = library().iter().map(Source::code_text).collect();
    let mut wrong = Vec::new();
    for document in all.iter().filter(|it| it.path.ends_with(".md")) {
        let directory = document
            .path
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory);
        let links = document
            .text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let link = link.split('#').next().unwrap_or(link);
            let path = joined(directory, link);
            // Images are files without text.
            if !exists(&path) && !root().join(&path).is_file() {
                wrong.push(format!("{}: there is no {link}", document.path));
            }
        }
        for word in document.text.split('`').skip(1).step_by(2) {
            let function = word.split_once("::").map(|(_, name)| name);
            let is_missing = match function {
                Some(name) if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') => {
                    !["fn ", "mod ", "pub "]
                        .iter()
                        .any(|kind| code.contains(&format!("{kind}{name}")))
                }
                _ => word.ends_with(".rs") && !word.contains(' ') && !exists(word),
            };
            if is_missing {
                wrong.push(format!("{}: there is no {word}", document.path));
            }
        }
    }
    none(&wrong);
}

/// The path of a link, resolved from a directory.
fn joined(directory: &str, link: &str) -> String {
    let mut parts: Vec<_> = directory
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn links_to_parent_directories_are_resolved() {
    assert_eq!(joined("docs", "../README.md"), "README.md");
    assert_eq!(joined("", "docs/a.md"), "docs/a.md");
    assert_eq!(joined("a/b", "./c/"), "a/b/c/");
}

#[test]
fn examples_are_short_and_registered_and_run() {
    const LONGEST: usize = 120;
    const AT_LEAST: usize = 24;
    let manifest = read("examples/Cargo.toml").text;
    let tests = ["examples.rs", "examples/over_http.rs"];
    let tests = tests.map(|it| read(&format!("crates/oxmcp-tests/tests/it/{it}")).text);
    let tests = tests.concat();
    let list = read("examples/README.md").text;
    let mut examples = 0;
    let mut wrong = Vec::new();
    for source in files() {
        let Some((folder, name)) = source
            .path
            .strip_prefix("examples/")
            .and_then(|it| it.strip_suffix(".rs"))
            .and_then(|it| it.split_once('/'))
        else {
            continue;
        };
        if folder == "support" {
            // Code that several examples share.
            continue;
        }
        examples += 1;
        let mut must = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{}: {what}", source.path));
            }
        };
        must(
            source.text.lines().count() <= LONGEST,
            "it has more than 120 lines",
        );
        must(
            source.text.starts_with("//! "),
            "it does not say what it shows",
        );
        must(
            source.text.contains(&format!("cargo run --example {name}")),
            "it does not say how it is run",
        );
        must(
            manifest.contains(&format!("path = \"{folder}/{name}.rs\"")),
            "it is not in examples/Cargo.toml",
        );
        must(
            tests.contains(&format!("(\"{name}\"")),
            "tests/it/examples.rs does not run it",
        );
        must(
            list.contains(&format!("]({folder}/{name}.rs)")),
            "examples/README.md does not list it",
        );
    }
    assert!(examples >= AT_LEAST, "there are only {examples} examples");
    none(&wrong);
}

/// The example and the README state this bound.
#[test]
fn custom_transport_example_is_under_forty_lines() {
    let source = read("examples/transports/custom_transport.rs").text;
    let transport = source
        .lines()
        .skip_while(|line| !line.starts_with("struct Channels"))
        .take_while(|line| *line != "/// Returns two transports that are connected to each other.");
    let lines = transport.count();
    assert!((20..40).contains(&lines), "it has {lines} lines");
}

/// The guides that the documentation includes are the files that there are, and links between them lead to one of them.
#[test]
fn guides_are_included_and_linked() {
    const PAGE: &str = "https://docs.rs/oxmcp/latest/oxmcp/guide/";
    let included = read("crates/oxmcp/guide/mod.rs").text;
    let tested = read("crates/oxmcp-tests/src/lib.rs").text;
    let mut wrong = Vec::new();
    let mut guides = Vec::new();
    for source in files() {
        let guide = source.path.strip_prefix("crates/oxmcp/guide/");
        if let Some(guide) = guide.filter(|it| it.ends_with(".md")) {
            if !included.contains(&format!("include_str!(\"{guide}\")")) {
                wrong.push(format!(
                    "crates/oxmcp/guide/mod.rs does not include {guide}"
                ));
            }
            if !tested.contains(&format!("oxmcp/guide/{guide}")) {
                wrong.push(format!(
                    "crates/oxmcp-tests/src/lib.rs does not test {guide}"
                ));
            }
            guides.push(guide.trim_end_matches(".md").replace('-', "_"));
        }
    }
    for source in files().iter().filter(|it| it.path.ends_with(".md")) {
        for rest in source.text.split(PAGE).skip(1) {
            let name = rest.split('/').next().unwrap_or_default();
            if !guides.iter().any(|guide| guide == name) {
                wrong.push(format!("{}: there is no guide {name}", source.path));
            }
        }
    }
    none(&wrong);
}

/// The guide has a row for each leniency, and for nothing else.
#[test]
fn tolerated_deviations_are_documented() {
    let guide = read("crates/oxmcp/guide/tolerated.md").text;
    let (tables, _) = guide.split_once("## What is never tolerated").unwrap();
    let rows = tables.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut rows: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
    rows.sort_unstable();
    let table = read("crates/oxmcp-protocol/src/lenient/leniency.rs").text;
    let entries = table.lines().filter_map(|line| line.split_once(" = \""));
    let mut names: Vec<_> = entries
        .filter_map(|(_, entry)| entry.split('"').next())
        .collect();
    names.sort_unstable();
    assert!(names.len() > 20, "the table of leniencies is not here");
    assert_eq!(rows, names);
}

/// A name in the list of tests that `cargo xtask test` leaves out is that of a test or a module, so that no renamed test is run there by
/// accident.
#[test]
fn skipped_tests_exist() {
    let list = read("xtask/src/test.rs").text;
    let names = list.split("LEFT_FOR_ALL: &[&str] = &[").nth(1).unwrap();
    let names = names
        .split("];")
        .next()
        .unwrap()
        .split('"')
        .skip(1)
        .step_by(2);
    let all = files();
    let tests = all.iter().filter(|it| it.path.contains("test"));
    let text: String = tests.map(|it| it.text.as_str()).collect();
    let exists = |name: &&str| match name.trim_end_matches("::").rsplit_once("::") {
        Some((_, module)) => {
            text.contains(&format!("mod {module}"))
                || text.contains(&format!("fn {module}"))
                || text.contains(&format!("(\"{module}\""))
        }
        None => text.contains(&format!("{name}(")),
    };
    let wrong: Vec<_> = names.filter(|name| !exists(name)).collect();
    assert!(wrong.is_empty(), "there are no such tests: {wrong:?}");
}

/// Coding agents find the guide for them as a skill, which is the same text with a header.
#[test]
fn skill_is_the_guide_for_coding_agents() {
    let skill = read("skills/oxmcp/SKILL.md").text;
    let guide = read("crates/oxmcp/guide/for-coding-agents.md").text;
    let (header, body) = skill.split_at(skill.len().saturating_sub(guide.len()));
    assert_eq!(body, guide);
    assert!(header.starts_with("---\nname: oxmcp\ndescription: ") && header.ends_with("\n---\n\n"));
}

/// One file per page of the specification, each with a link to its page.
#[test]
fn protocol_modules_link_their_specification_page() {
    const NO_PAGE: &[&str] = &[
        "base",
        "blob",
        "json",
        "mod",
        "open_enum",
        "ordered_map",
        "payload",
        "method",
        "scan",
        "tagged",
        "wire",
    ];
    let pages: Vec<_> = library()
        .into_iter()
        .filter(|source| source.path.starts_with("crates/oxmcp-protocol/src/types/"))
        .collect();
    assert!(pages.len() > 20, "the types of the protocol are not here");
    let mut wrong = Vec::new();
    for source in pages {
        let name = source.path.rsplit('/').next().unwrap_or_default();
        let has_page = !NO_PAGE.iter().any(|page| name == format!("{page}.rs"));
        if has_page
            && !source
                .text
                .contains("https://modelcontextprotocol.io/specification/")
        {
            wrong.push(format!(
                "{}: it does not link to its page of the specification",
                source.path
            ));
        }
    }
    none(&wrong);
}

#[test]
fn links_to_the_specification_name_a_revision() {
    let mut wrong = Vec::new();
    for source in files() {
        for rest in source
            .text
            .split("modelcontextprotocol.io/specification/")
            .skip(1)
        {
            let revision = rest.get(..10).unwrap_or(rest);
            if !rest.starts_with('"') && revision.parse::<oxmcp::Revision>().is_err() {
                wrong.push(format!("{}: there is no revision {revision}", source.path));
            }
        }
    }
    none(&wrong);
}

/// The front page of the documentation lists the names that programs use. Traits that they need not name are in `oxmcp::traits`.
#[test]
fn front_page_lists_the_names_programs_use() {
    const NAMED: [&str; 2] = ["JsonSchema", "OrToolError"];
    let code: String = library().iter().map(Source::code_text).collect();
    let mut traits: Vec<_> = code
        .split("pub trait ")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next())
        .collect();
    traits.retain(|name| !NAMED.contains(name));
    let page = read("crates/oxmcp/src/lib.rs").code_text();
    let exports = page.split("\npub use ").skip(1);
    let names = exports
        .filter_map(|rest| rest.split(';').next())
        .flat_map(|names| names.split(|c: char| !c.is_alphanumeric()));
    let wrong: Vec<_> = names
        .filter(|name| traits.contains(name))
        .map(|name| format!("the trait {name} belongs into `oxmcp::traits`"))
        .collect();
    none(&wrong);
}

/// A search for a method of the protocol finds the item that sends or answers it.
#[test]
fn each_method_is_documented_under_its_name() {
    // The contents of these notifications reach programs as the result of another item.
    const UNSEEN: [&str; 2] = [
        "notifications/subscriptions/acknowledged",
        "notifications/tasks/status",
    ];
    let code: String = library().iter().map(Source::code_text).collect();
    let is_found = |name: &str| {
        let aliases = code.split("doc(alias").skip(1);
        let mut aliases = aliases.filter_map(|rest| rest.split(']').next());
        aliases.any(|alias| alias.contains(&format!("\"{name}\"")))
            || code.contains(&format!("pub async fn {name}("))
    };
    let tables = [
        method::REQUESTS_TO_SERVER,
        method::REQUESTS_TO_CLIENT,
        method::NOTIFICATIONS_TO_SERVER,
        method::NOTIFICATIONS_TO_CLIENT,
    ];
    let wrong: Vec<_> = tables
        .into_iter()
        .flatten()
        .map(|row| row.name)
        .filter(|name| !UNSEEN.contains(name) && !is_found(name))
        .map(|name| format!("nothing has `#[doc(alias = {name:?})]`"))
        .collect();
    none(&wrong);
}
