//! [`ToolIndex`], a search over tools by BM25: words that are rare among the tools count more, and long descriptions count less.
//! See [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools).

use std::{cmp::Ordering, collections::HashMap};

use serde_json::Value;

use crate::types::tools::Tool;

/// How much a repeated word counts, and how much the length of a document does: the usual values of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The number of times that a word of the name counts, compared with one of the description.
const NAME_WEIGHT: u32 = 3;

/// The maximum number of words of one tool, and of a query.
const MAX_WORDS: usize = 1000;

/// An index of tools, by their positions in a list: a search by the words of their names, titles and descriptions, and of the
/// names and descriptions of their arguments.
///
/// Words of names and titles count three times. There is no stemming, and the order is deterministic.
///
/// ```
/// use oxmcp_protocol::{Tool, ToolIndex};
/// use serde_json::json;
///
/// let tool = |name: &str, description: &str| {
///     Tool::new(name, json!({"type": "object"})).with_description(description)
/// };
/// let tools = [
///     tool("git_log", "Shows the commits of a repository"),
///     tool("create_issue", "Creates an issue in a repository"),
/// ];
/// let index = ToolIndex::new(&tools);
/// assert_eq!(index.search("the issues of a repository", 2), [0, 1]);
/// assert_eq!(index.search("create", 2), [1]);
/// ```
#[derive(Debug)]
pub struct ToolIndex {
    /// For each word, the tools that contain it, and how often.
    postings: HashMap<String, Vec<(usize, u32)>>,
    /// The number of words of each tool.
    lengths: Vec<f64>,
    average: f64,
}

impl ToolIndex {
    /// Creates an index of these tools. Of each, 1000 words are read.
    #[must_use]
    pub fn new<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Self {
        let mut postings: HashMap<String, Vec<(usize, u32)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (position, tool) in tools.into_iter().enumerate() {
            let counts = counted_words(tool);
            lengths.push(counts.values().sum::<u32>().into());
            for (word, count) in counts {
                postings.entry(word).or_default().push((position, count));
            }
        }
        let total: f64 = lengths.iter().sum();
        // A vector has far fewer entries than an `f64` has integers.
        let count = u32::try_from(lengths.len()).unwrap_or(u32::MAX);
        Self {
            postings,
            average: (total / f64::from(count.max(1))).max(1.0),
            lengths,
        }
    }

    /// Returns the positions of at most `limit` tools that fit a query, the best first. Tools with the same score are in the
    /// order of the list. Of the query, 1000 words are read.
    #[must_use]
    pub fn search(&self, query: &str, limit: usize) -> Vec<usize> {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        let count = f64::from(u32::try_from(self.lengths.len()).unwrap_or(u32::MAX));
        let mut query = words(query);
        query.truncate(MAX_WORDS);
        // The order of additions decides the last digits of a sum.
        query.sort_unstable();
        query.dedup();
        for word in &query {
            let Some(found) = self.postings.get(word) else {
                continue;
            };
            let with = f64::from(u32::try_from(found.len()).unwrap_or(u32::MAX));
            let rarity = (1.0 + (count - with + 0.5) / (with + 0.5)).ln();
            for (position, times) in found {
                let length = self.lengths.get(*position).copied().unwrap_or(1.0);
                let times = f64::from(*times);
                let damped = times + K1 * (1.0 - B + B * length / self.average);
                *scores.entry(*position).or_default() += rarity * times * (K1 + 1.0) / damped;
            }
        }
        let mut hits: Vec<(usize, f64)> = scores.into_iter().collect();
        hits.sort_unstable_by(|(left, left_score), (right, right_score)| {
            let by_score = right_score
                .partial_cmp(left_score)
                .unwrap_or(Ordering::Equal);
            by_score.then(left.cmp(right))
        });
        hits.truncate(limit);
        hits.into_iter().map(|(position, _)| position).collect()
    }
}

/// The words of a tool, and how often each counts.
fn counted_words(tool: &Tool) -> HashMap<String, u32> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    let mut left = MAX_WORDS;
    let mut add = |text: &str, weight: u32| {
        for word in words(text).into_iter().take(left) {
            left -= 1;
            *counts.entry(word).or_default() += weight;
        }
    };
    add(&tool.name, NAME_WEIGHT);
    add(tool.title.as_deref().unwrap_or_default(), NAME_WEIGHT);
    add(tool.description.as_deref().unwrap_or_default(), 1);
    let schema: Option<Value> = serde_json::to_value(&tool.input_schema).ok();
    let properties = schema
        .as_ref()
        .and_then(|it| it.get("properties")?.as_object());
    for (name, property) in properties.into_iter().flatten() {
        add(name, 1);
        let description = property.get("description").and_then(Value::as_str);
        add(description.unwrap_or_default(), 1);
    }
    counts
}

/// The words of a text in lower case. `readFile`, `read_file` and `read-file` are two words each.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for character in text.chars() {
        let begins = character.is_uppercase() && was_lower;
        if (begins || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase() || character.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<Tool> {
        let tool = |name: &str, description: &str| {
            Tool::new(name, json!({"type": "object"})).with_description(description)
        };
        vec![
            tool("git_log", "Shows the commits of a repository"),
            tool("github_create_issue", "Creates an issue in a repository"),
            tool("files_readFile", "Reads a file"),
            tool("github_list_issues", "Lists the issues of a repository"),
            tool("mail_send", "Sends a mail").with_title("Send"),
        ]
    }

    #[test]
    fn best_tools_come_first() {
        let index = ToolIndex::new(&tools());
        for (query, expected) in [
            ("create an issue", vec![1]),
            ("read file", vec![2]),
            ("READ-FILE", vec![2]),
            ("github repository", vec![1, 3, 0]),
            ("send", vec![4]),
            ("nothing fits", vec![]),
            ("", vec![]),
        ] {
            let mut found = index.search(query, 3);
            // `a` and `an` are words like others, so only the beginning is compared.
            found.truncate(expected.len());
            assert_eq!(found, expected, "{query}");
        }
        assert_eq!(index.search("repository", 2).len(), 2);
    }

    #[test]
    fn equal_scores_keep_the_order() {
        let same: Vec<Tool> = (0..20).map(|_| tools().remove(0)).collect();
        let index = ToolIndex::new(&same);
        assert_eq!(index.search("commits log", 20), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn words_are_split_as_names_are() {
        for (text, expected) in [
            ("readFile2Go", vec!["read", "file2", "go"]),
            ("HTTP_get.it", vec!["http", "get", "it"]),
            ("  Über  Öl", vec!["über", "öl"]),
            ("--", vec![]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }
}
