//! Tests of templates: the examples of the RFC, and round trips from values to a URI and back.

use proptest::prelude::*;

use crate::uri_template::{
    expand::Value,
    matcher::{Captured, LONGEST_URI, Matcher},
    parse::UriTemplate,
};

fn matcher(template: &str) -> Result<Matcher, String> {
    Matcher::new(&UriTemplate::parse(template)?)
}

/// The captures as one text.
fn matched(template: &str, uri: &str) -> Option<String> {
    let captures = matcher(template).unwrap().captures(uri)?;
    let shown = captures.iter().map(|(name, captured)| match captured {
        Captured::One(value) => format!("{name}={value}"),
        Captured::Many(values) => format!("{name}=[{}]", values.join(" ")),
    });
    Some(shown.collect::<Vec<_>>().join(" "))
}

#[test]
fn variables_match_their_allowed_characters() {
    for (template, uri, expected) in [
        ("db://{table}/{id}", "db://users/7", "table=users id=7"),
        (
            "a://{x}",
            "a://caf\u{e9} au lait",
            "x=caf%C3%A9%20au%20lait",
        ),
        ("a://{x}", "a://u@h:1,2", "x=u@h:1,2"),
        ("a://{x}.json", "a://b.json.json", "x=b.json"),
        ("a://{x}-{y}", "a://1-2-3", "x=1 y=2-3"),
        ("a://{+x}/{y}", "a://1/2/3", "x=1/2 y=3"),
        ("a://{+x}-{y}", "a://1-2/3-4", "x=1-2/3 y=4"),
        ("f:///{+path}", "f:///a/b?c#d", "path=a/b?c#d"),
        ("f:///{+path}{?v}", "f:///a/b?v=1", "path=a/b v=1"),
        ("f:///{+path}{?v}", "f:///a/b", "path=a/b"),
        ("a://{x,y}", "a://1,2", "x=1 y=2"),
        ("a://{x,y}", "a://1", "x=1"),
        ("a://{x*}", "a://1,2,3", "x=[1 2 3]"),
        ("a://h{/x,y}", "a://h/1", "x=1"),
        ("a://h{/x,y}", "a://h", ""),
        ("a://h{/x*}", "a://h/1/2", "x=[1 2]"),
        ("a://h{/x*}/end", "a://h/1/2/end", "x=[1 2]"),
        ("a://{x}{.y}", "a://1.2.3", "x=1 y=2.3"),
        (
            "a://{x:3}/{y}",
            "a://%C3%A9%C3%A9%C3%A9/2",
            "x=%C3%A9%C3%A9%C3%A9 y=2",
        ),
        ("a://h{;x,y*}", "a://h;y=1;x;y=2", "y=[1 2] x="),
        (
            "a://h{?q,p*}{#f}",
            "a://h?p=1&q=a/b&p=2#x",
            "p=[1 2] q=a/b f=x",
        ),
        ("a://h{?q,p}", "a://h", ""),
        ("a://h?k=1{&q}", "a://h?k=1&q=", "q="),
        ("a://h?q={q}&p={p}", "a://h?q=a=b&p=2", "q=a=b p=2"),
        ("a://h{#x}", "a://h#/a?b", "x=/a?b"),
        ("caf\u{e9}:{x}", "caf%C3%A9:1", "x=1"),
        ("{+all}", "x:y", "all=x:y"),
    ] {
        assert_eq!(
            matched(template, uri).as_deref(),
            Some(expected),
            "{template} {uri}"
        );
    }
}

#[test]
fn variables_reject_other_characters() {
    for (template, uri) in [
        ("db://{table}/{id}", "db://users"),
        ("db://{table}/{id}", "db://users/"),
        ("db://{table}/{id}", "db:///7"),
        ("db://{table}/{id}", "db://users/7/8"),
        ("db://{table}/{id}", "db://users/7?x"),
        ("db://{table}/{id}", "DB://users/7"),
        ("a://{x,y}", "a://1,2,3"),
        ("a://{x:2}", "a://123"),
        ("a://{x:2}", "a://%FF"),
        ("a://h{/x,y}", "a://h/1/2/3"),
        ("a://h{?q}", "a://h?q=1&q=2"),
        ("a://h{?q}", "a://h?r=1"),
        ("a://h{?q}", "a://h?"),
        ("a://h{?q}", "a://h&q=1"),
        ("f:///{+path}{?v}", "f:///a?w=1"),
        ("a://h?q={q}", "a://h?q=1&p=2"),
        ("a://plain", "a://plainer"),
    ] {
        assert_eq!(matched(template, uri), None, "{template} {uri}");
    }
}

#[test]
fn ambiguous_templates_are_refused() {
    let refused: Vec<_> = [
        "a:{x}{y}",
        "a:{+x}{/y}",
        "a:{+x}{y}",
        "a:{+x,y}",
        "a:{.x*}",
        "a:{#x,y}",
        "a:{x*,y}",
        "a:{/x*}{/y}",
        "a:{?x}{&y}",
        "a:{?x}/{y}",
        "a:?k=1{?x}",
        "a:{x}/{x}",
        "a:{+x}/{+y}",
        "a:{;x};y",
        "a:{#x}/y",
    ]
    .into_iter()
    .map(|text| format!("{text} => {}", matcher(text).unwrap_err()))
    .collect();
    insta::assert_snapshot!(refused.join("\n"), @r#"
    a:{x}{y} => ambiguous template: nothing separates {x} and {y}; put "/" or "-" between them
    a:{+x}{/y} => ambiguous template: nothing separates {+x} and {/y}; put "/" or "-" between them
    a:{+x}{y} => ambiguous template: nothing separates {+x} and {y}; put "/" or "-" between them
    a:{+x,y} => {+x,y} cannot be matched, since a value may contain ','; use one variable without "*", and split its value
    a:{.x*} => {.x*} cannot be matched, since a value may contain '.'; use one variable without "*", and split its value
    a:{#x,y} => {#x,y} cannot be matched, since a value may contain ','; use one variable without "*", and split its value
    a:{x*,y} => ambiguous template: in {x*,y}, the variable with "*" matches any number of values; put it last
    a:{/x*}{/y} => ambiguous template: nothing separates {/x*} and {/y}; put "/" or "-" between them
    a:{?x}{&y} => ambiguous template: {?x} also matches the values of {&y}; put all variables into one expression
    a:{?x}/{y} => {?x} must come last, since it matches the rest of the URI; put all such variables into one expression
    a:?k=1{?x} => the query starts before {?x}; write "&" instead of "?" in it
    a:{x}/{x} => duplicate variable "x"; use a different name in each place
    a:{+x}/{+y} => ambiguous template: {+x} and {+y} both match slashes; remove the "+" from one of them
    a:{;x};y => ambiguous template: {;x} also matches the ";" after it; put all such variables into one expression
    a:{#x}/y => {#x} must come last, since it matches the rest of the URI; put all such variables into one expression
    "#);
    let many: Vec<_> = (0..33).map(|n| format!("{{x{n}}}")).collect();
    assert!(matcher(&many.join("/")).is_err());
    assert!(matcher("a:{+x}?y={+y}").is_ok());
}

#[test]
fn most_literal_template_comes_first() {
    let mut templates = ["a://{x}/{y}", "a://{+x}", "a://b/{y}", "a://{x}/c"];
    templates.sort_by_key(|text| matcher(text).unwrap().rank());
    assert_eq!(
        templates,
        ["a://b/{y}", "a://{x}/c", "a://{x}/{y}", "a://{+x}"]
    );
}

/// A URI for which backtracking matchers would take practically forever.
#[test]
fn hostile_uris_match_in_linear_time() {
    let places: Vec<_> = (0..31).map(|n| format!("{{x{n}}}a")).collect();
    let template = format!("s:{}b{{+rest}}c", places.concat());
    let matcher = matcher(&template).unwrap();
    let many = "a".repeat(LONGEST_URI - 10);
    assert_eq!(matcher.captures(&format!("s:{many}")), None);
    assert_eq!(matcher.captures(&format!("s:{many}b")), None);
    assert!(matcher.captures(&format!("s:{many}b1c")).is_some());
    assert_eq!(
        matcher.captures(&format!("s:{}", "a".repeat(LONGEST_URI))),
        None
    );
    let list = matcher_of_list().captures(&format!("s:{}", ",".repeat(LONGEST_URI - 2)));
    assert_eq!(list.map(|it| it.len()), Some(1));
}

fn matcher_of_list() -> Matcher {
    matcher("s:{x*}").unwrap()
}

/// A part of a template with a clear beginning and end, and its effect on values.
fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "/{}",
        ":{}",
        "@{}",
        "/{/}",
        "/x{;}",
        "/{}!",
        "/{}(",
        "{/}",
        "{;}",
        "/{}.{}".get(..3).unwrap_or_default(),
    ])
}

proptest! {
    /// A template matches its own expansions, and expands to the URIs that it matches.
    #[test]
    fn expanded_uris_match_back(
        parts in prop::collection::vec(part(), 0..6),
        reserved: bool,
        query in 0..4usize,
        values in prop::collection::vec("\\PC{1,8}", 12),
        list in prop::collection::vec("\\PC{0,4}", 1..4),
        mask: u16,
    ) {
        let mut text = "s:/".to_owned();
        let mut count = 0;
        for part in parts {
            count += 1;
            text.push_str(&part.replace('}', &format!("v{count}}}")));
        }
        if reserved && !text.ends_with(['v', '}']) {
            text.push_str("/{+v10}");
        }
        text.push_str(["", "{?v11}", "{?v11,v12*}", "{?v12*}"][query]);
        let Ok(matcher) = matcher(&text) else { return Ok(()) };
        let template = UriTemplate::parse(&text).unwrap();
        let value = |name: &str| {
            let index: usize = name.trim_start_matches('v').parse().unwrap();
            let has = |symbol: char| text.contains(&format!("{{{symbol}{name}}}"));
            // Of values without names, the last ones are missing.
            let is_missing = has('/') && index > usize::from(mask % 8)
                || (has(';') || index > 10) && mask >> index & 1 == 1;
            if is_missing {
                return None;
            }
            if index == 12 {
                return Some(Value::List(list.clone()));
            }
            let value = &values[index - 1];
            // Without the characters that end a `{+x}`, and without percent codes.
            let value = if index == 10 { format!("r{}", value.replace(['?', '#', '%'], "")) } else { value.clone() };
            Some(Value::Text(value))
        };
        let values: Vec<_> = template.variables().map(|(name, _)| (name, value(name))).collect();
        let get = |name: &str| values.iter().find(|it| it.0 == name)?.1.as_ref();
        let uri = template.expand(get);
        let captures = matcher.captures(&uri);
        let captures = captures.unwrap_or_else(|| panic!("{text} does not match {uri}"));
        let text_of = |raw: &str| {
            String::from_utf8(crate::uri::decode(raw).unwrap()).unwrap()
        };
        let found: Vec<_> = captures.iter().map(|(name, captured)| (&**name, match captured {
            Captured::One(value) => Value::Text(text_of(value)),
            Captured::Many(values) => Value::List(values.iter().map(|it| text_of(it)).collect()),
        })).collect();
        let get = |name: &str| found.iter().find(|it| it.0 == name).map(|it| &it.1);
        for (name, value) in &values {
            prop_assert_eq!(get(name), value.as_ref(), "{} {}", text, uri);
        }
        prop_assert_eq!(template.expand(get), uri);
    }

    #[test]
    fn parser_never_panics(template: String, uri: String, braces in "[a{}+?&/;.#*:,x1%]{0,12}") {
        for text in [template, braces] {
            if let Ok(matcher) = matcher(&text) {
                let _ = matcher.captures(&uri);
                let _ = matcher.captures(&text);
            }
        }
    }
}
