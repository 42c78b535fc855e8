//! "Did you mean": the nearest of the names that exist.

/// Names longer than this are not compared, since comparing takes the product of the lengths.
const MAX_LENGTH: usize = 64;
/// How many names are looked at.
const MAX_NAMES: usize = 1000;

/// The name that `wrong` is most likely a misspelling of.
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

/// `maxResults`, `max_results` and `max-results` are the same mistake.
fn normalized(name: &str) -> Option<Vec<char>> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let letters = name
        .chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' '));
    Some(letters.flat_map(char::to_lowercase).collect())
}

/// How many letters have to be put in, taken out or replaced.
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
