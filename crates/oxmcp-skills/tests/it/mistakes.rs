//! Mistakes in skills, which are reported before the server serves.

use oxmcp::Server;
use oxmcp_skills::{ServerExt, Skills};

use crate::{REPORT, skills};

fn problem(skills: Skills) -> String {
    problem_of(&Server::new("shop", "1.0.0").skills(skills))
}

fn problem_of(server: &Server) -> String {
    let error = server.check().unwrap_err().to_string();
    let prefix = "the extension io.modelcontextprotocol/skills: ";
    error.rsplit(prefix).next().unwrap().to_owned()
}

fn skill(frontmatter: &str) -> Skills {
    Skills::embedded([("a/SKILL.md", format!("---\n{frontmatter}\n---\n"))])
}

#[test]
fn frontmatter_is_checked() {
    for (frontmatter, expected) in [
        (
            "name: a",
            "a/SKILL.md: no `description` in the frontmatter; add it",
        ),
        (
            "description: b",
            "a/SKILL.md: no `name` in the frontmatter; add it",
        ),
        (
            "name: 1\ndescription: b",
            "a/SKILL.md: `name` is not a string; quote the value",
        ),
        (
            "name: A\ndescription: b",
            "a/SKILL.md: invalid name \"A\"; use 1 to 64 of a-z, 0-9 and single hyphens, not at the beginning or end",
        ),
        (
            "name: b\ndescription: b",
            "a/SKILL.md: the name \"b\" is not the directory's name, \"a\"; rename one of them",
        ),
        (
            "name: a\ndescription: ''",
            "a/SKILL.md: the description has 0 characters; use 1 to 1024",
        ),
        (
            "name: a\ndescription: b\nmetadata: {io.modelcontextprotocol/x: 1}",
            "a/SKILL.md: the key \"io.modelcontextprotocol/x\" of `metadata` is reserved by MCP; rename it",
        ),
        (
            "name: a\nname: a\ndescription: b",
            "a/SKILL.md: line 3: duplicate key \"name\"; remove one",
        ),
    ] {
        assert_eq!(problem(skill(frontmatter)), expected);
    }
    let long = format!("name: a\ndescription: {}", "é".repeat(1025));
    assert!(problem(skill(&long)).contains("1025 characters"));
    let longest = format!("name: a\ndescription: {}", "é".repeat(1024));
    assert!(
        Server::new("s", "1")
            .skills(skill(&longest))
            .check()
            .is_ok()
    );
}

#[test]
fn files_are_checked() {
    let with = |path: &str, bytes: Vec<u8>| {
        let skill = ("report/SKILL.md".to_owned(), REPORT.as_bytes().to_vec());
        problem(Skills::embedded([skill, (path.to_owned(), bytes)]))
    };
    for path in [
        "../x",
        "report//x",
        "report/./x",
        "/x",
        "report/a\\b",
        "report/a\nb",
        "",
    ] {
        assert!(with(path, vec![]).starts_with("invalid path"), "{path:?}");
    }
    assert_eq!(
        with("report/SKILL.md", vec![]),
        "duplicate file \"report/SKILL.md\"; add each file once"
    );
    assert_eq!(
        with("b/SKILL.md", vec![0xff]),
        "b/SKILL.md: not UTF-8; save it as UTF-8"
    );
    assert_eq!(
        with("b/SKILL.md", b"---\0".to_vec()),
        "b/SKILL.md: contains NUL bytes; save it as plain text"
    );
    assert_eq!(
        with("report/big", vec![0; 16 << 20]),
        format!(
            "report: {} bytes; the files of a skill can have at most 16777216",
            (16 << 20) + REPORT.len()
        )
    );
    let many = (0..512).map(|it| (format!("report/{it}"), String::new()));
    let many = many.chain([("report/SKILL.md".to_owned(), REPORT.to_owned())]);
    assert_eq!(
        problem(Skills::embedded(many)),
        "report: 513 files; a skill can have at most 512"
    );
    let none: [(&str, &str); 1] = [("report/README.md", "")];
    assert_eq!(
        problem(Skills::embedded(none)),
        "no skills found; a skill is a directory with a SKILL.md"
    );
}

#[test]
fn prefixes_are_checked() {
    for prefix in ["", "/a", "a/", "a b", "..", "a/../b", "a?b", "a:1", "é"] {
        assert!(
            problem(skills().prefix(prefix)).starts_with("invalid prefix"),
            "{prefix:?}"
        );
    }
    for prefix in ["acme", "acme/billing", "Acme.example_1"] {
        assert!(
            Server::new("s", "1")
                .skills(skills().prefix(prefix))
                .check()
                .is_ok()
        );
    }
}

#[test]
fn sources_must_not_overlap() {
    let server = Server::new("shop", "1.0.0")
        .skills(skills())
        .skills(skills());
    let problem = problem_of(&server);
    assert_eq!(
        problem,
        "two sources of skills have \"skill://refunds/SKILL.md\"; set a `prefix` for one of them"
    );
    let server = Server::new("shop", "1.0.0")
        .skills(skills())
        .skills(skills().prefix("b"));
    assert!(server.check().is_ok());
}

#[test]
fn absent_directory_is_a_mistake() {
    let problem = problem(Skills::dir("/nowhere/skills"));
    assert!(
        problem.starts_with("cannot serve the files of /nowhere/skills"),
        "{problem}"
    );
}
