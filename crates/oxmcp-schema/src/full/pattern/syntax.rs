//! Parser of patterns, from text to a tree.
//!
//! The syntax is that of ECMAScript with the flag `u`, and as lenient as its older form if that is unambiguous: braces
//! that begin no quantifier are literal characters, and so is escaped punctuation. Two features of other languages are
//! accepted, since schemas use them as well: `\A` and `\z`, and leading flags, `(?i)`.

use std::collections::HashMap;

use crate::full::pattern::class::{Class, Item, Set};

/// The maximum nesting depth of groups, which bounds the use of the stack.
const MAX_DEPTH: usize = 100;
/// The maximum value of both bounds of a repetition.
const MAX_REPETITIONS: u32 = 10_000;

#[derive(Debug)]
pub(crate) enum Tree {
    /// A character of the class with this number.
    Class(usize),
    Sequence(Vec<Self>),
    Either(Vec<Self>),
    Repeat {
        what: Box<Self>,
        least: u32,
        /// `None` if there is no upper bound.
        most: Option<u32>,
    },
    Assert(Assertion),
    Look {
        what: Box<Self>,
        is_behind: bool,
        is_negated: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assertion {
    Start,
    End,
    LineStart,
    LineEnd,
    Boundary,
    NoBoundary,
}

/// Parses a pattern to a tree, and returns its classes by their numbers.
pub(crate) fn parse(pattern: &str) -> Result<(Tree, Vec<Class>), String> {
    let mut parser = Parser {
        rest: pattern.chars(),
        depth: 0,
        flags: Flags::default(),
        classes: HashMap::new(),
    };
    let tree = parser.alternatives()?;
    match parser.next() {
        None => Ok((tree, parser.classes())),
        Some(_) => Err("unmatched \")\"".to_owned()),
    }
}

#[derive(Clone, Copy, Default)]
struct Flags {
    ignores_case: bool,
    lines: bool,
    dot_is_all: bool,
}

pub(crate) struct Parser<'a> {
    pub(crate) rest: std::str::Chars<'a>,
    depth: usize,
    flags: Flags,
    /// The classes without duplicates, with their numbers.
    classes: HashMap<Class, usize>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        self.rest.next()
    }

    pub(crate) fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.as_str().strip_prefix(text);
        if let Some(rest) = rest {
            self.rest = rest.chars();
        }
        rest.is_some()
    }

    /// Takes the text before `end`, and skips `end`.
    pub(crate) fn until(&mut self, end: char) -> Result<String, String> {
        let (text, rest) = self
            .rest
            .as_str()
            .split_once(end)
            .ok_or_else(|| format!("a {end:?} is missing"))?;
        self.rest = rest.chars();
        Ok(text.to_owned())
    }

    fn alternatives(&mut self) -> Result<Tree, String> {
        // Flags that are set within a group end with it.
        let flags = self.flags;
        let mut all = vec![self.sequence()?];
        while self.take("|") {
            all.push(self.sequence()?);
        }
        self.flags = flags;
        Ok(match <[Tree; 1]>::try_from(all) {
            Ok([only]) => only,
            Err(all) => Tree::Either(all),
        })
    }

    fn sequence(&mut self) -> Result<Tree, String> {
        let mut terms = Vec::new();
        while self.peek().is_some_and(|c| c != '|' && c != ')') {
            if let Some(term) = self.term()? {
                terms.push(self.repeated(term)?);
            }
        }
        Ok(Tree::Sequence(terms))
    }

    fn term(&mut self) -> Result<Option<Tree>, String> {
        let Some(c) = self.next() else {
            return Ok(None);
        };
        Ok(Some(match c {
            '^' if self.flags.lines => Tree::Assert(Assertion::LineStart),
            '^' => Tree::Assert(Assertion::Start),
            '$' if self.flags.lines => Tree::Assert(Assertion::LineEnd),
            '$' => Tree::Assert(Assertion::End),
            '.' if self.flags.dot_is_all => self.set(Class::of(&[Item::Named(Set::Any, false)])),
            '.' => self.set(Class::of(&[Item::Named(Set::LineEnd, true)])),
            '(' => return self.group(),
            '[' => {
                let class = self.class()?;
                self.set(class)
            }
            '*' | '+' | '?' => return Err(format!("nothing for {c:?} to repeat")),
            '\\' => match self.escape(false)? {
                Escape::Char(c) => self.character(c),
                Escape::Set(item) => self.set(self.cased(Class::of(&[item]))),
                Escape::Assert(assertion) => Tree::Assert(assertion),
            },
            c => self.character(c),
        }))
    }

    fn character(&mut self, c: char) -> Tree {
        self.set(self.cased(Class::of(&[Item::Range(c, c)])))
    }

    fn set(&mut self, class: Class) -> Tree {
        let next = self.classes.len();
        Tree::Class(*self.classes.entry(class).or_insert(next))
    }

    fn classes(self) -> Vec<Class> {
        let mut classes: Vec<_> = self.classes.into_iter().collect();
        classes.sort_unstable_by_key(|(_, number)| *number);
        classes.into_iter().map(|(class, _)| class).collect()
    }

    fn cased(&self, mut class: Class) -> Class {
        class.ignores_case = self.flags.ignores_case;
        class
    }

    fn repeated(&mut self, term: Tree) -> Result<Tree, String> {
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.bounds()? {
                Some(bounds) => bounds,
                None => return Ok(term),
            },
            _ => return Ok(term),
        };
        self.next();
        // Lazy quantifiers match the same texts as greedy ones.
        self.take("?");
        if matches!(self.peek(), Some('*' | '+')) {
            return Err("two quantifiers in a row".to_owned());
        }
        if matches!(
            term,
            Tree::Assert(_)
                | Tree::Look {
                    is_behind: true,
                    ..
                }
        ) {
            return Err("an assertion cannot be repeated".to_owned());
        }
        Ok(Tree::Repeat {
            what: Box::new(term),
            least,
            most,
        })
    }

    /// The bounds of `{2}`, `{2,}` and `{2,3}`, read through the closing brace. `None` if the brace begins no
    /// quantifier.
    fn bounds(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let Some(rest) = self.rest.as_str().strip_prefix('{') else {
            return Ok(None);
        };
        // Only digits and commas are searched, so that patterns with many braces take no quadratic time.
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',');
        let Some((inner, true)) = end.and_then(|end| {
            let (inner, rest) = rest.split_at_checked(end)?;
            Some((inner, rest.starts_with('}')))
        }) else {
            return Ok(None);
        };
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if least.is_empty() || !is_number(least) || !is_number(most) {
            return Ok(None);
        }
        let parse = |text: &str| {
            let count = text.parse().ok().filter(|count| *count <= MAX_REPETITIONS);
            count
                .ok_or_else(|| format!("{text} exceeds the limit of {MAX_REPETITIONS} repetitions"))
        };
        let bounds = (
            parse(least)?,
            if most.is_empty() {
                None
            } else {
                Some(parse(most)?)
            },
        );
        if bounds.1.is_some_and(|most| most < bounds.0) {
            return Err(format!("the bounds {{{inner}}} are in the wrong order"));
        }
        while self.peek() != Some('}') {
            self.next();
        }
        Ok(Some(bounds))
    }

    fn group(&mut self) -> Result<Option<Tree>, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!(
                "groups are nested more than {MAX_DEPTH} levels deep"
            ));
        }
        let flags = self.flags;
        let look = [
            ("?<=", (true, false)),
            ("?<!", (true, true)),
            ("?=", (false, false)),
            ("?!", (false, true)),
        ];
        let look = look
            .into_iter()
            .find_map(|(start, kind)| self.take(start).then_some(kind));
        if look.is_none() && (self.take("?<") || self.take("?P<")) {
            self.until('>')?;
        } else if look.is_none() && self.take("?") && self.group_flags()? {
            self.depth -= 1;
            return Ok(None);
        }
        let what = self.alternatives()?;
        if !self.take(")") {
            return Err("a \")\" is missing".to_owned());
        }
        self.flags = flags;
        self.depth -= 1;
        Ok(Some(match look {
            None => what,
            Some((is_behind, is_negated)) => Tree::Look {
                what: Box::new(what),
                is_behind,
                is_negated,
            },
        }))
    }

    /// Reads the flags of `(?i:…)` and `(?i)`, if there are any. Returns `true` if the parenthesis closes after them.
    fn group_flags(&mut self) -> Result<bool, String> {
        let mut value = true;
        loop {
            match self.next() {
                Some(':') => return Ok(false),
                Some(')') => return Ok(true),
                Some('-') => value = false,
                Some('i') => self.flags.ignores_case = value,
                Some('m') => self.flags.lines = value,
                Some('s') => self.flags.dot_is_all = value,
                Some('u') if value => {}
                _ => return Err("unknown kind of group".to_owned()),
            }
        }
    }

    /// Reads a class in brackets, after the opening bracket.
    fn class(&mut self) -> Result<Class, String> {
        let is_negated = self.take("^");
        let mut items = Vec::new();
        while !self.take("]") {
            let first = self.class_atom()?;
            let has_range =
                self.rest.as_str().starts_with('-') && !self.rest.as_str().starts_with("-]");
            let item = match first {
                Item::Range(first, _) if has_range => {
                    self.take("-");
                    match self.class_atom()? {
                        Item::Range(last, _) if first <= last => Item::Range(first, last),
                        Item::Range(..) => {
                            return Err(format!("the range from {first:?} is in the wrong order"));
                        }
                        // A hyphen before a set is a literal character.
                        set @ Item::Named(..) => {
                            items.extend([Item::Range('-', '-'), set]);
                            Item::Range(first, first)
                        }
                    }
                }
                item => item,
            };
            items.push(item);
        }
        let mut class = self.cased(Class::of(&items));
        class.is_negated = is_negated;
        Ok(class)
    }

    /// Reads a character, as a range of one, or a set.
    fn class_atom(&mut self) -> Result<Item, String> {
        match self.next() {
            None => Err("a \"]\" is missing".to_owned()),
            Some('\\') => match self.escape(true)? {
                Escape::Char(c) => Ok(Item::Range(c, c)),
                Escape::Set(item) => Ok(item),
                Escape::Assert(_) => Err("an assertion cannot be in brackets".to_owned()),
            },
            Some(c) => Ok(Item::Range(c, c)),
        }
    }
}

/// The meaning of an escape.
pub(crate) enum Escape {
    Char(char),
    Set(Item),
    Assert(Assertion),
}

impl Parser<'_> {
    /// Reads an escape, after the backslash.
    pub(crate) fn escape(&mut self, in_class: bool) -> Result<Escape, String> {
        let c = self.next().ok_or("a backslash at the end")?;
        Ok(match c {
            'd' | 'D' => Escape::Set(Item::Named(Set::Digit, c == 'D')),
            'w' | 'W' => Escape::Set(Item::Named(Set::Word, c == 'W')),
            's' | 'S' => Escape::Set(Item::Named(Set::Space, c == 'S')),
            'p' | 'P' => Escape::Set(Item::Named(self.property()?, c == 'P')),
            'b' if in_class => Escape::Char('\u{8}'),
            'b' => Escape::Assert(Assertion::Boundary),
            'B' if !in_class => Escape::Assert(Assertion::NoBoundary),
            'A' if !in_class => Escape::Assert(Assertion::Start),
            'z' if !in_class => Escape::Assert(Assertion::End),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            'v' => Escape::Char('\u{b}'),
            'f' => Escape::Char('\u{c}'),
            '0' => Escape::Char('\0'),
            'c' => Escape::Char(self.control()?),
            'x' => Escape::Char(self.code(2)?),
            'u' => Escape::Char(self.unicode()?),
            '1'..='9' | 'k' => {
                return Err(
                    "backreferences are not supported: they cannot be matched in bounded time"
                        .to_owned(),
                );
            }
            c if c.is_alphanumeric() => return Err(format!("unknown escape \"\\{c}\"")),
            c => Escape::Char(c),
        })
    }

    fn property(&mut self) -> Result<Set, String> {
        if self.take("{") {
            let name = self.until('}')?;
            return Set::property(&name);
        }
        // Other languages have the short form, and ECMAScript gives it no other meaning.
        let name = self.next().ok_or("a property is missing after \"\\p\"")?;
        Set::property(&name.to_string())
    }

    fn control(&mut self) -> Result<char, String> {
        let letter = self.next().filter(char::is_ascii_alphabetic);
        let code = u32::from(letter.ok_or("a letter is missing after \"\\c\"")?) % 32;
        char::from_u32(code).ok_or_else(|| "unknown control character".to_owned())
    }

    fn code(&mut self, digits: usize) -> Result<char, String> {
        let code = self.hexadecimal(digits)?;
        char::from_u32(code).ok_or_else(|| format!("invalid character {code:#x}"))
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, String> {
        let text: String = self.rest.clone().take(digits).collect();
        let is_code = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(&text, 16).ok().filter(|_| is_code);
        self.rest.nth(digits.saturating_sub(1));
        code.ok_or_else(|| format!("{digits} hexadecimal digits are missing"))
    }

    /// Reads `\u0041`, `\u{1F600}`, or a surrogate pair.
    fn unicode(&mut self) -> Result<char, String> {
        if self.take("{") {
            let text = self.until('}')?;
            let code = u32::from_str_radix(&text, 16).ok().and_then(char::from_u32);
            return code.ok_or_else(|| format!("invalid character {text:?}"));
        }
        let first = self.hexadecimal(4)?;
        if !(0xd800..0xdc00).contains(&first) || !self.take("\\u") {
            return char::from_u32(first).ok_or_else(|| "unpaired surrogate".to_owned());
        }
        let second = self.hexadecimal(4)?;
        let pair = [first, second].map(|half| u16::try_from(half).unwrap_or_default());
        match char::decode_utf16(pair).next() {
            Some(Ok(c)) => Ok(c),
            _ => Err("unpaired surrogate".to_owned()),
        }
    }
}
