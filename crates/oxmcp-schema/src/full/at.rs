//! Position of the validator in a value, and the outputs of a validation step.

use oxmcp_json::pointer_token;
use serde_json::Value;

use crate::full::{failure::Failure, nodes::Node};

/// The maximum number of failures for one value or one alternative.
pub(crate) const MAX_FAILURES: usize = 32;
/// The maximum number of characters of a name in a pointer. A name may be most of a value, and is repeated in the
/// pointers of all values below it.
const MAX_NAME: usize = 256;

/// A value, with the path to it.
#[derive(Clone, Copy)]
pub(crate) struct Position<'p, 'i> {
    pub(crate) value: &'i Value,
    way: Option<(&'p Self, Step<'p>)>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Member(&'p str),
    Item(usize),
}

impl<'p, 'i> Position<'p, 'i> {
    pub(crate) fn root(value: &'i Value) -> Self {
        Self { value, way: None }
    }

    pub(crate) fn member(&'p self, name: &'p str, value: &'i Value) -> Self {
        Self {
            value,
            way: Some((self, Step::Member(name))),
        }
    }

    pub(crate) fn item(&'p self, index: usize, value: &'i Value) -> Self {
        Self {
            value,
            way: Some((self, Step::Item(index))),
        }
    }

    /// The JSON Pointer of the value. Very long names are shortened.
    pub(crate) fn pointer(&self) -> String {
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

/// A value, with the schema that it is checked against.
#[derive(Clone, Copy)]
pub(crate) struct Here<'p, 'v, 'i> {
    pub(crate) node: &'v Node,
    pub(crate) at: &'p Position<'p, 'i>,
}

/// The outputs of a validation step in addition to the verdict.
pub(crate) struct Out<'o, 'v, 'i> {
    /// The list for failures. If it is `None`, the step stops at the first failure.
    pub(crate) found: Option<&'o mut Vec<Failure<'v, 'i>>>,
    /// The marks of the members or items of the value that were evaluated.
    pub(crate) evaluated: Option<&'o mut Evaluated>,
}

impl<'v, 'i> Out<'_, 'v, 'i> {
    /// No outputs but the verdict.
    pub(crate) const NOTHING: Self = Self {
        found: None,
        evaluated: None,
    };

    /// The same outputs, for one schema of several.
    pub(crate) fn again(&mut self) -> Out<'_, 'v, 'i> {
        Out {
            found: self.found.as_deref_mut(),
            evaluated: self.evaluated.as_deref_mut(),
        }
    }

    /// The same outputs for a nested value, without the marks of this one.
    pub(crate) fn within(&mut self) -> Out<'_, 'v, 'i> {
        Out {
            found: self.found.as_deref_mut(),
            evaluated: None,
        }
    }

    /// The same outputs, with the failures of one alternative in a separate list, if more failures are collected.
    pub(crate) fn apart<'n>(&'n mut self, wrong: &'n mut Vec<Failure<'v, 'i>>) -> Out<'n, 'v, 'i> {
        Out {
            found: (!self.is_enough()).then_some(wrong),
            evaluated: self.evaluated.as_deref_mut(),
        }
    }

    pub(crate) fn mark(&mut self, index: usize) {
        if let Some(evaluated) = &mut self.evaluated {
            evaluated.mark(index);
        }
    }

    /// Whether validation can stop after a failure, because no more failures are collected.
    pub(crate) fn is_enough(&self) -> bool {
        let found = self.found.as_ref();
        found.is_none_or(|found| found.len() >= MAX_FAILURES)
    }

    /// Whether only the verdict matters, and no failures are collected.
    pub(crate) fn is_brief(&self) -> bool {
        self.found.is_none()
    }
}

/// One bit for each member or item, by its index.
#[derive(Debug, Default)]
pub(crate) struct Evaluated(Vec<bool>);

impl Evaluated {
    pub(crate) fn mark(&mut self, index: usize) {
        if self.0.len() <= index {
            self.0.resize(index + 1, false);
        }
        if let Some(mark) = self.0.get_mut(index) {
            *mark = true;
        }
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or(false)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for index in (0..other.0.len()).filter(|index| other.has(*index)) {
            self.mark(index);
        }
    }
}
