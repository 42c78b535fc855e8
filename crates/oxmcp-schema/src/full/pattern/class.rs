//! Sets of characters.

use unicode_general_category::get_general_category;

/// A set of characters, or its complement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    pub(crate) is_negated: bool,
    /// Whether upper and lower case are equal.
    pub(crate) ignores_case: bool,
    /// Sorted ranges, which neither overlap nor adjoin.
    ranges: Vec<(char, char)>,
    /// Named sets without duplicates; `true` for the complement of the set.
    named: Vec<(Set, bool)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    Range(char, char),
    /// A named set; `true` for its complement.
    Named(Set, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Set {
    Digit,
    Word,
    Space,
    LineEnd,
    Any,
    Ascii,
    Alphabetic,
    Lowercase,
    Uppercase,
    WhiteSpace,
    /// General categories whose short names begin with this text.
    Category(&'static str),
}

impl Class {
    /// The set of the characters that are in at least one of the items.
    pub(crate) fn of(items: &[Item]) -> Self {
        let mut class = Self::default();
        for item in items {
            match item {
                Item::Range(first, last) => class.ranges.push((*first, *last)),
                Item::Named(set, is_negated) => class.named.push((*set, *is_negated)),
            }
        }
        class.named.sort_unstable();
        class.named.dedup();
        class.ranges.sort_unstable();
        class.ranges.dedup_by(|(first, last), (_, before)| {
            let is_near = u32::from(*first) <= u32::from(*before) + 1;
            if is_near {
                *before = (*before).max(*last);
            }
            is_near
        });
        class
    }

    /// The number of additional steps for a lookup of a character: more than zero if there are many named
    /// sets.
    pub(crate) fn steps(&self) -> usize {
        self.named.len() / 4
    }

    pub(crate) fn contains(&self, c: char) -> bool {
        let mut is_in = self.has(c);
        if self.ignores_case && !is_in {
            is_in = single(c.to_lowercase()).is_some_and(|c| self.has(c))
                || single(c.to_uppercase()).is_some_and(|c| self.has(c));
        }
        is_in != self.is_negated
    }

    fn has(&self, c: char) -> bool {
        let behind = self.ranges.partition_point(|(first, _)| *first <= c);
        let range = behind.checked_sub(1).and_then(|at| self.ranges.get(at));
        range.is_some_and(|(_, last)| c <= *last)
            || self
                .named
                .iter()
                .any(|(set, is_negated)| set.contains(c) != *is_negated)
    }
}

fn single(mut letters: impl Iterator<Item = char>) -> Option<char> {
    letters.next().filter(|_| letters.next().is_none())
}

impl Set {
    /// The set named by `\p{…}`.
    ///
    /// # Errors
    /// If no set of this name is supported.
    pub(crate) fn property(name: &str) -> Result<Self, String> {
        let category = match name.split_once('=') {
            Some(("General_Category" | "gc", category)) => Some(category),
            Some(_) => None,
            None => Some(name),
        };
        match name {
            "Any" => return Ok(Self::Any),
            "ASCII" => return Ok(Self::Ascii),
            "Alphabetic" | "Alpha" => return Ok(Self::Alphabetic),
            "Lowercase" | "Lower" => return Ok(Self::Lowercase),
            "Uppercase" | "Upper" => return Ok(Self::Uppercase),
            "White_Space" | "space" => return Ok(Self::WhiteSpace),
            _ => {}
        }
        let category = category.map(|category| match category {
            "digit" => "Nd",
            "punct" => "P",
            "cntrl" => "Cc",
            "Combining_Mark" => "M",
            other => other,
        });
        let known = category.and_then(|category| {
            let mut all = CATEGORIES.iter();
            all.find(|(short, long)| *short == category || *long == category)
        });
        known.map(|(short, _)| Self::Category(short)).ok_or_else(|| {
            format!("the Unicode property {name:?} is not supported; use a general category, such as \\p{{L}}")
        })
    }

    pub(crate) fn contains(self, c: char) -> bool {
        match self {
            Self::Digit => c.is_ascii_digit(),
            Self::Word => c.is_ascii_alphanumeric() || c == '_',
            Self::Space => c == '\u{feff}' || c != '\u{85}' && c.is_whitespace(),
            Self::LineEnd => matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}'),
            Self::Any => true,
            Self::Ascii => c.is_ascii(),
            Self::Alphabetic => c.is_alphabetic(),
            Self::Lowercase => c.is_lowercase(),
            Self::Uppercase => c.is_uppercase(),
            Self::WhiteSpace => c.is_whitespace(),
            Self::Category("LC") => matches!(category(c), "Lu" | "Ll" | "Lt"),
            Self::Category(short) => category(c).starts_with(short),
        }
    }
}

/// The general categories, including those of a single letter and `LC`, which are unions.
const CATEGORIES: [(&str, &str); 38] = [
    ("L", "Letter"),
    ("LC", "Cased_Letter"),
    ("Lu", "Uppercase_Letter"),
    ("Ll", "Lowercase_Letter"),
    ("Lt", "Titlecase_Letter"),
    ("Lm", "Modifier_Letter"),
    ("Lo", "Other_Letter"),
    ("M", "Mark"),
    ("Mn", "Nonspacing_Mark"),
    ("Mc", "Spacing_Mark"),
    ("Me", "Enclosing_Mark"),
    ("N", "Number"),
    ("Nd", "Decimal_Number"),
    ("Nl", "Letter_Number"),
    ("No", "Other_Number"),
    ("P", "Punctuation"),
    ("Pc", "Connector_Punctuation"),
    ("Pd", "Dash_Punctuation"),
    ("Ps", "Open_Punctuation"),
    ("Pe", "Close_Punctuation"),
    ("Pi", "Initial_Punctuation"),
    ("Pf", "Final_Punctuation"),
    ("Po", "Other_Punctuation"),
    ("S", "Symbol"),
    ("Sm", "Math_Symbol"),
    ("Sc", "Currency_Symbol"),
    ("Sk", "Modifier_Symbol"),
    ("So", "Other_Symbol"),
    ("Z", "Separator"),
    ("Zs", "Space_Separator"),
    ("Zl", "Line_Separator"),
    ("Zp", "Paragraph_Separator"),
    ("C", "Other"),
    ("Cc", "Control"),
    ("Cf", "Format"),
    ("Cs", "Surrogate"),
    ("Co", "Private_Use"),
    ("Cn", "Unassigned"),
];

fn category(c: char) -> &'static str {
    get_general_category(c).abbreviation()
}
