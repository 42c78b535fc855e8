//! Position of the validator in a value, and the place that its failures go to.

use oxmcp_json::pointer_token;
use serde_json::Value;

use crate::full::{failure::Failure, nodes::Node};

/// How many failures are kept of one value or of one alternative.
pub(super) const MAX_FAILURES: usize = 32;
/// How many characters of a name a pointer tells. A name may be most of a value, and be told for all that is within.
const MAX_NAME: usize = 256;

/// A value, and the way to it.
#[derive(Clone, Copy)]
pub(super) struct Position<'p, 'i> {
    pub(super) value: &'i Value,
    way: Option<(&'p Self, Step<'p>)>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Member(&'p str),
    Item(usize),
}

impl<'p, 'i> Position<'p, 'i> {
    pub(super) fn root(value: &'i Value) -> Self {
        Self { value, way: None }
    }

    pub(super) fn member(&'p self, name: &'p str, value: &'i Value) -> Self {
        Self {
            value,
            way: Some((self, Step::Member(name))),
        }
    }

    pub(super) fn item(&'p self, index: usize, value: &'i Value) -> Self {
        Self {
            value,
            way: Some((self, Step::Item(index))),
        }
    }

    /// The JSON Pointer. Names that are very long are cut.
    pub(super) fn pointer(&self) -> String {
        let Some((parent, step)) = self.way else {
            return String::new();
        };
        let mut pointer = parent.pointer();
        pointer.push('/');
        match step {
            Step::Member(name) => {
                let told = match name.char_indices().nth(MAX_NAME) {
                    Some((end, _)) => name.get(..end).unwrap_or(name),
                    None => name,
                };
                pointer.push_str(&pointer_token(told));
                if told.len() < name.len() {
                    pointer.push('…');
                }
            }
            Step::Item(index) => pointer.push_str(&index.to_string()),
        }
        pointer
    }
}

/// A value, and the schema that it is held against.
#[derive(Clone, Copy)]
pub(super) struct Here<'p, 'v, 'i> {
    pub(super) node: &'v Node,
    pub(super) at: &'p Position<'p, 'i>,
}

/// What is wanted besides the verdict.
pub(super) struct Out<'o, 'v, 'i> {
    /// Where failures go. Where they are not wanted, the verdict comes as early as it can.
    pub(super) found: Option<&'o mut Vec<Failure<'v, 'i>>>,
    /// Where is noted what of the value has been evaluated.
    pub(super) evaluated: Option<&'o mut Evaluated>,
}

impl<'v, 'i> Out<'_, 'v, 'i> {
    /// Only the verdict.
    pub(super) const NOTHING: Self = Self {
        found: None,
        evaluated: None,
    };

    /// The same, for one schema of several.
    pub(super) fn again(&mut self) -> Out<'_, 'v, 'i> {
        Out {
            found: self.found.as_deref_mut(),
            evaluated: self.evaluated.as_deref_mut(),
        }
    }

    /// The same, for a value within this one, of which nothing is noted here.
    pub(super) fn within(&mut self) -> Out<'_, 'v, 'i> {
        Out {
            found: self.found.as_deref_mut(),
            evaluated: None,
        }
    }

    /// The same, with the failures of one alternative apart, if any more are kept.
    pub(super) fn apart<'n>(&'n mut self, wrong: &'n mut Vec<Failure<'v, 'i>>) -> Out<'n, 'v, 'i> {
        Out {
            found: (!self.is_enough()).then_some(wrong),
            evaluated: self.evaluated.as_deref_mut(),
        }
    }

    pub(super) fn mark(&mut self, index: usize) {
        if let Some(evaluated) = &mut self.evaluated {
            evaluated.mark(index);
        }
    }

    /// Whether nothing is gained by looking further, where something is wrong.
    pub(super) fn is_enough(&self) -> bool {
        let found = self.found.as_ref();
        found.is_none_or(|found| found.len() >= MAX_FAILURES)
    }

    /// Whether a wrong value is all that there is to know.
    pub(super) fn is_brief(&self) -> bool {
        self.found.is_none()
    }
}

/// A bit for each, by its place.
#[derive(Debug, Default)]
pub(super) struct Evaluated(Vec<bool>);

impl Evaluated {
    pub(super) fn mark(&mut self, index: usize) {
        if self.0.len() <= index {
            self.0.resize(index + 1, false);
        }
        if let Some(mark) = self.0.get_mut(index) {
            *mark = true;
        }
    }

    pub(super) fn has(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or(false)
    }

    pub(super) fn merge(&mut self, other: Self) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for index in (0..other.0.len()).filter(|index| other.has(*index)) {
            self.mark(index);
        }
    }
}
