//! Frontmatter of all kinds, and what it means in JSON.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    compare::first_difference,
    read::{MAX_BYTES, read},
    scalar::plain,
};

fn file(yaml: &str) -> String {
    format!("---\n{yaml}\n---\n# Body\n")
}

fn json_of(yaml: &str) -> Value {
    Value::Object(read(&file(yaml)).unwrap_or_else(|problem| panic!("{yaml}: {problem}")))
}

fn problem(yaml: &str) -> String {
    read(&file(yaml)).unwrap_err()
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    for (yaml, expected) in [
        ("2026-01-31", json!("2026-01-31")),
        ("2026-01-31T12:00:00Z", json!("2026-01-31T12:00:00Z")),
        ("12:30:45", json!("12:30:45")),
        ("yes", json!("yes")),
        ("No", json!("No")),
        ("on", json!("on")),
        ("y", json!("y")),
        ("true", json!(true)),
        ("FALSE", json!(false)),
        ("tRue", json!("tRue")),
        ("~", json!(null)),
        ("Null", json!(null)),
        ("nULL", json!("nULL")),
        ("1", json!(1)),
        ("-1", json!(-1)),
        ("+1", json!(1)),
        ("012", json!(12)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("-0x1F", json!("-0x1F")),
        ("0b11", json!("0b11")),
        ("1_000", json!("1_000")),
        ("1.0", json!(1.0)),
        ("1.", json!(1.0)),
        (".5", json!(0.5)),
        ("-.5e+1", json!(-5.0)),
        ("1e3", json!(1000.0)),
        (".", json!(".")),
        ("-", json!("-")),
        ("e1", json!("e1")),
        (".e1", json!(".e1")),
        ("1e", json!("1e")),
        ("1.2.3", json!("1.2.3")),
        ("v1", json!("v1")),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ("infinity", json!("infinity")),
        ("NaN", json!("NaN")),
        ("<<", json!("<<")),
    ] {
        assert_eq!(plain(yaml), Ok(expected), "{yaml}");
    }
    for yaml in [
        ".inf",
        "-.INF",
        "+.Inf",
        ".nan",
        "1e999",
        "0xfffffffffffffffff",
    ] {
        assert!(plain(yaml).is_err(), "{yaml}");
    }
}

#[test]
fn quoted_scalars_are_strings() {
    let read = json_of(
        "a: '1'\nb: \"true\"\nc: |\n  1\nd: >-\n  two\n  lines\ne:\nf: [1, {g: x}]\n# comment",
    );
    let expected = json!({
        "a": "1", "b": "true", "c": "1\n", "d": "two lines", "e": null, "f": [1, {"g": "x"}],
    });
    assert_eq!(read, expected);
}

#[test]
fn line_breaks_and_marks_do_not_matter() {
    let plain = json!({"name": "a", "description": "b"});
    for text in [
        "---\nname: a\ndescription: b\n---\n",
        "---\nname: a\ndescription: b\n---",
        "---\r\nname: a\r\ndescription: b\r\n---\r\n\r\n# Body",
        "\u{feff}---\nname: a\ndescription: b\n--- \t\n---\nx: y\n---\n",
    ] {
        assert_eq!(read(text).map(Value::Object), Ok(plain.clone()), "{text:?}");
    }
    for text in [
        "",
        "# Body",
        " ---\nname: a\n---\n",
        "--- \nname: a\n---\n",
        "---\nname: a\n",
        "---\nname: a\n----\n",
        "---",
    ] {
        assert!(
            read(text).unwrap_err().starts_with("no frontmatter"),
            "{text:?}"
        );
    }
}

#[test]
fn constructs_that_hosts_read_differently_are_refused() {
    for (yaml, expected) in [
        ("a: 1\na: 2", "line 3: duplicate key \"a\"; remove one"),
        ("a: {b: 1, b: 1}", "line 2: duplicate key \"b\"; remove one"),
        (
            "a: &x 1\nb: *x",
            "line 2: anchors are not supported; repeat the value",
        ),
        (
            "a: !!str 1",
            "line 2: tags are not supported; remove the tag, or quote the value",
        ),
        (
            "a: !x {}",
            "line 2: tags are not supported; remove the tag, or quote the value",
        ),
        (
            "<<: {a: 1}",
            "line 2: merge keys are not supported; repeat the members",
        ),
        ("1: a", "line 2: the key 1 is not a string; quote it"),
        ("true: a", "line 2: the key true is not a string; quote it"),
        ("~: a", "line 2: the key null is not a string; quote it"),
        ("[a]: b", "line 2: keys must be strings"),
        (
            "a: .nan",
            "line 2: .nan is not a number in JSON; quote the value",
        ),
        (
            "- a",
            "the frontmatter must be a mapping, as in `name: refunds`",
        ),
        (
            "a",
            "the frontmatter must be a mapping, as in `name: refunds`",
        ),
        ("", "the frontmatter is empty; add `name` and `description`"),
    ] {
        assert_eq!(problem(yaml), expected, "{yaml}");
    }
    assert!(problem("a: *x").starts_with("line 2: "));
    assert!(problem("a: [").contains("invalid YAML"));
    assert!(problem("a: 1\n...\nb: 2").starts_with("line "));
}

#[test]
fn size_and_depth_are_bounded() {
    let deep = |levels: usize| format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(read(&file(&deep(15))).is_ok());
    assert!(problem(&deep(16)).ends_with("more than 16 levels deep; flatten it"));
    // The parser looks ahead, and has a limit as well.
    assert!(problem(&deep(20_000)).starts_with("line 2: "));
    let long = format!("a: {}", "x".repeat(MAX_BYTES));
    assert!(problem(&long).contains("longer than 65536 bytes"));
}

#[test]
fn first_difference_is_named() {
    let of = |value: Value| value.as_object().unwrap().clone();
    let file = of(json!({"name": "a", "version": 1.0, "metadata": {"x": [1, "2"]}}));
    let same = of(json!({"version": 1, "metadata": {"x": [1.0, "2"]}, "name": "a"}));
    assert_eq!(first_difference(&file, &same), None);
    for (entry, field) in [
        (
            json!({"name": "b", "version": 1, "metadata": {"x": [1, "2"]}}),
            "name",
        ),
        (
            json!({"name": "a", "version": 1, "metadata": {"x": [1, 2]}}),
            "metadata",
        ),
        (
            json!({"name": "a", "version": 1, "metadata": {"x": [1, "2"], "y": 1}}),
            "metadata",
        ),
        (json!({"name": "a", "metadata": {"x": [1, "2"]}}), "version"),
        (
            json!({"name": "a", "version": 1, "metadata": {"x": [1, "2"]}, "z": null}),
            "z",
        ),
    ] {
        let entry = of(entry);
        assert_eq!(first_difference(&file, &entry), Some(field), "{entry:?}");
        assert_eq!(first_difference(&entry, &file), Some(field), "{entry:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(yaml in "[-a-z0-9:?!&*<>|\\[\\]{},#'\"\\\\ \n\r\t~.%@`]{0,80}") {
        let _ = read(&file(&yaml));
    }

    #[test]
    fn quoted_strings_survive(text in "[^\u{0}-\u{1f}\u{7f}-\u{9f}\u{feff}\u{fffe}\u{ffff}]{0,40}") {
        let written = serde_json::to_string(&text).unwrap();
        let read = json_of(&format!("a: {written}"));
        prop_assert_eq!(read, json!({"a": text}));
    }
}
