//! Suggestions ("did you mean"): the nearest of the known names.

/// The maximum length of compared names, since the comparison takes time in the product of the lengths.
const MAX_LENGTH: usize = 64;
/// The maximum number of names that are compared.
const MAX_NAMES: usize = 1000;

/// Returns the name of which `wrong` is most likely a misspelling.
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = normalized(wrong)?;
    let allowed = 1.max((wrong.len() + 1) / 3);
    names
        .take(MAX_NAMES)
        .filter_map(|name| {
            let distance = distance(&wrong, &normalized(name)?);
            (distance <= allowed).then_some((distance, name))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Whether `wrong` is surely a misspelling of `name`. The test is stricter than for [suggestions](nearest), since a
/// misspelling is refused. Both names are [`normalized`].
pub(crate) fn is_near_miss(wrong: &[char], name: &[char]) -> bool {
    let longer = wrong.len().max(name.len());
    // Short names can differ in one letter only.
    let allowed = match longer {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    longer - wrong.len().min(name.len()) <= allowed && distance(wrong, name) <= allowed
}

/// The letters of a name in lower case, without separators, so that `maxResults`, `max_results` and `max-results` are
/// equal. `None` for a name that is too long to compare.
pub(crate) fn normalized(name: &str) -> Option<Vec<char>> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let letters = name
        .chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' '));
    Some(letters.flat_map(char::to_lowercase).collect())
}

/// The edit distance: the number of letters to insert, delete or replace.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.iter().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        for (cell, candidate) in row.iter_mut().skip(1).zip(other) {
            let replaced = diagonal + usize::from(letter != candidate);
            diagonal = *cell;
            left = replaced.min(*cell + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_spelling_wins_over_other_suggestions() {
        for (wrong, name, expected) in [
            ("txt", "text", true),
            ("colour", "color", true),
            ("max-results", "maxResults", true),
            ("ID", "id", true),
            ("is", "id", false),
            ("a", "b", false),
            ("name", "date", false),
            ("limit", "list", false),
            ("offset", "limit", false),
            ("toolCallId", "tool", false),
        ] {
            let (wrong_letters, letters) = (normalized(wrong).unwrap(), normalized(name).unwrap());
            let found = is_near_miss(&wrong_letters, &letters);
            assert_eq!(found, expected, "{wrong} {name}");
        }
    }
}
