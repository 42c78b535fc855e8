//! Tests that patterns match the same texts as in other engines.

use proptest::prelude::*;
use serde_json::json;

use crate::full::pattern::{search::Pattern, syntax::parse};

fn matches(pattern: &str, text: &str) -> bool {
    let mut steps = 1_000_000;
    let pattern = Pattern::new(pattern).unwrap();
    pattern.matches(text, &mut steps).unwrap()
}

#[test]
fn pattern_syntax_is_ecmascript() {
    let cases: [(&str, &[&str], &[&str]); 35] = [
        ("", &["", "a"], &[]),
        ("a+", &["xaay"], &["", "b"]),
        ("^a*$", &["", "aa"], &["ab", "a\n"]),
        ("^(a|bc)?$", &["", "a", "bc"], &["b", "abc"]),
        ("^a{2,3}$", &["aa", "aaa"], &["a", "aaaa"]),
        ("^a{2}b{0}c{1,}?$", &["aac", "aacc"], &["aabc", "aa"]),
        ("^{a}$", &["{a}"], &["a"]),
        ("^a{,2}$", &["a{,2}"], &["aa"]),
        ("^[a-c_\\-]$", &["b", "_", "-"], &["d", "a-"]),
        ("^[^a-c]$", &["d", "\n"], &["a", ""]),
        ("^[\\w-]+$", &["a-b"], &["a b"]),
        ("^[]$", &[], &["", "a"]),
        ("^[^]$", &["a", "\n"], &["", "ab"]),
        ("^[[a]$", &["[", "a"], &["b"]),
        ("^\\d\\D\\w\\W\\s\\S$", &["1aa- a"], &["aaa- a", "١aa- a"]),
        ("^\\s$", &["\u{feff}", "\u{a0}", "\u{2003}"], &["\u{85}"]),
        ("^.$", &["a", "🐲"], &["\n", "\u{2028}", ""]),
        ("^🐲*$", &["🐲🐲"], &["🐉"]),
        (
            "^\\u{1F432}\\uD83D\\uDC32\\x41\\u0042\\cJ\\0$",
            &["🐲🐲AB\n\0"],
            &[],
        ),
        ("^\\/\\.\\@\\-$", &["/.@-"], &["//@-"]),
        ("^\\p{Letter}+$", &["Helloπ"], &["1"]),
        (
            "^\\p{Lu}\\P{Lu}\\p{gc=Nd}$",
            &["Aa1", "Ää٣"],
            &["aa1", "AA1"],
        ),
        ("^[\\p{L}\\p{M}]+$", &["e\u{301}"], &["1"]),
        ("\\bcat\\b", &["a cat.", "cat"], &["concat", "cats"]),
        ("\\Bcat", &["concat"], &["cat"]),
        ("^(?!\\.)(?!.*\\.\\.)[a-z.]+$", &["a.b"], &[".a", "a..b"]),
        (
            "^(?=.*[A-Z])(?=.*\\d).{4,}$",
            &["abC1"],
            &["abcd", "ABCD", "C1"],
        ),
        ("(?<=\\$)\\d+(?!\\d|%)", &["$10"], &["10", "$10%"]),
        ("(?<!not )ok", &["ok", "is ok"], &["not ok"]),
        ("(?<=^a{1,2}(b|cd))e", &["acde", "aabe"], &["aaabe", "e"]),
        ("^(?<year>\\d{4})-(?:\\d\\d)$", &["2026-11"], &["2026-1"]),
        ("^(?i)straße|ÄB$", &["STRAßE", "äb"], &["strasse"]),
        ("^(?i:a)b$", &["Ab", "ab"], &["AB"]),
        ("^(?s:.)(?m:^)b$", &["\nb"], &["ab"]),
        ("\\Aa\\z", &["a"], &["ab", "ba"]),
    ];
    for (pattern, right, wrong) in cases {
        for text in right {
            assert!(matches(pattern, text), "{pattern} {text:?}");
        }
        for text in wrong {
            assert!(!matches(pattern, text), "{pattern} {text:?}");
        }
    }
}

#[test]
fn unsupported_pattern_error_explains_why() {
    let cases = [
        ("(", "\")\" is missing"),
        (")", "unmatched \")\""),
        ("[a", "\"]\" is missing"),
        ("*a", "nothing for '*'"),
        ("a**", "two quantifiers"),
        ("a{3,2}", "wrong order"),
        ("[b-a]", "wrong order"),
        ("^*", "cannot be repeated"),
        ("\\", "at the end"),
        ("\\a", "unknown escape"),
        ("(a)\\1", "not supported"),
        ("\\p{Script=Greek}", "not supported"),
        ("\\u{110000}", "invalid character"),
        ("\\ud800", "surrogate"),
        ("(?>a)", "unknown kind of group"),
        ("((a{1000}){1000}){1000}", "multiply"),
        ("a{99999}", "repetitions"),
    ];
    for (pattern, reason) in cases {
        let error = Pattern::new(pattern).unwrap_err();
        assert!(error.contains(reason), "{pattern}: {error}");
    }
    assert!(Pattern::new(&"(".repeat(100_000)).is_err());
}

/// Patterns that take other engines practically forever.
#[test]
fn matching_time_is_bounded() {
    let text = "a".repeat(10_000) + "!";
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^(?=(a+)+$)"] {
        assert!(!matches(pattern, &text), "{pattern}");
    }
    let mut steps = 1_000_000;
    let quadratic = Pattern::new("(?=.*b)b").unwrap();
    assert_eq!(quadratic.matches(&text, &mut steps), None);
}

/// Only with ASCII: the definitions of word characters differ beyond it.
fn pattern() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "a", "b", "-", ".", "[ab]", "[^a]", "\\w", "\\b", "^", "$", "", "\\n",
    ]);
    atom.prop_map(str::to_owned)
        .prop_recursive(4, 24, 3, |inner| {
            let quantifier =
                prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "*?", "{2,}"]);
            let look = prop::sample::select(vec!["(?=", "(?!", "(?<=", "(?<!"]);
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(one, other)| one + &other),
                (inner.clone(), inner.clone())
                    .prop_map(|(one, other)| format!("(?:{one}|{other})")),
                (inner.clone(), quantifier)
                    .prop_map(|(one, quantifier)| format!("(?:{one}){quantifier}")),
                (look, inner).prop_map(|(look, one)| format!("{look}{one})")),
            ]
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pattern_engine_agrees_with_another_engine(pattern in pattern(), text in "[ab\\-\\n]{0,6}") {
        let ours = Pattern::new(&pattern);
        let Ok(other) = jsonschema::validator_for(&json!({"pattern": pattern})) else { return Ok(()) };
        prop_assert!(ours.is_ok(), "{ours:?}");
        let matches = ours.unwrap().matches(&text, &mut 1_000_000);
        prop_assert_eq!(matches, Some(other.is_valid(&json!(text))), "{} {:?}", pattern, text);
    }
}

/// Work that is repeated for each of many parts would be noticeably slow.
#[test]
fn long_pattern_is_parsed_once() {
    assert!(
        Pattern::new(&"a".repeat(20_000))
            .unwrap_err()
            .contains("longer")
    );
    // A brace that is never closed, or only at the very end.
    for end in ["", "}"] {
        let braces = "{".repeat(1_000) + end;
        assert!(matches(&braces, &braces));
        assert!(parse(&("{".repeat(1 << 21) + end)).is_ok());
    }
    let all: String = ('\u{4e00}'..).take(5_000).collect();
    let pattern = Pattern::new(&format!("^{all}$")).unwrap();
    assert_eq!(pattern.matches(&all, &mut 1_000_000), Some(true));
    // Empty parts produce no instruction, but count as emitted.
    let empty = format!("(a{}){{9999}}", "()".repeat(8_000));
    assert!(Pattern::new(&empty).unwrap_err().contains("multiply"));
}

#[test]
fn class_contains_exactly_its_items() {
    // Ranges that are nested, adjacent, and apart.
    let class = "^[c-fa-bx\\d0-4e-gm-m\\w\\p{Lu}\\P{L}\\w]$";
    for c in ["a", "b", "g", "m", "x", "3", "_", "Ä", "!"] {
        assert!(matches(class, c), "{c}");
    }
    assert!(!matches(class, "ä") && !matches("^[c-fa-bx]$", "g"));
    // A class of thousands of ranges takes no more time for each character than another.
    let ranges: String = ('\u{4e00}'..).step_by(2).take(5_000).collect();
    let class = Pattern::new(&format!("^[{ranges}]*$")).unwrap();
    let last = ranges.chars().last().unwrap().to_string();
    let text = last.repeat(300_000) + "!";
    assert_eq!(class.matches(&text, &mut 3_000_000), Some(false));
}

#[test]
fn many_named_sets_cost_more_steps() {
    let sets =
        "\\p{Sm}\\p{Sc}\\p{Sk}\\p{So}\\p{Zs}\\p{Zl}\\p{Zp}\\p{Cc}\\p{Cf}\\p{Co}\\p{Pc}\\p{Pd}";
    let text = "a".repeat(1000);
    let spent = |pattern: &str| {
        let mut steps = 1_000_000;
        let pattern = Pattern::new(pattern).unwrap();
        assert_eq!(pattern.matches(&text, &mut steps), Some(true));
        1_000_000 - steps
    };
    assert!(spent(&format!("^[a{sets}]*$")) > spent("^[a]*$") + 2_000);
}
