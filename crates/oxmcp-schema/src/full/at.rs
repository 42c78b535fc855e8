//! Position of the validator in a value, and the place that its failures go to.

use oxmcp_json::pointer_token;
use serde_json::Value;

use crate::full::{
    compile::Node,
    failure::Failure,
    run::{MAX_OFFENCES, Marks},
};

/// How many characters of a name a pointer tells. A name may be most of a value, and be told for all that is within.
const MAX_NAME: usize = 256;

/// A value, and the way to it.
#[derive(Clone, Copy)]
pub(super) struct At<'p, 'i> {
    pub(super) value: &'i Value,
    way: Option<(&'p Self, Step<'p>)>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Member(&'p str),
    Item(usize),
}

impl<'p, 'i> At<'p, 'i> {
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
    pub(super) at: &'p At<'p, 'i>,
}

/// What is wanted besides the verdict.
pub(super) struct Out<'o, 'v, 'i> {
    /// Where failures go. Where they are not wanted, the verdict comes as early as it can.
    pub(super) found: Option<&'o mut Vec<Failure<'v, 'i>>>,
    /// Where is noted what of the value has been evaluated.
    pub(super) marks: Option<&'o mut Marks>,
}

impl<'v, 'i> Out<'_, 'v, 'i> {
    /// Only the verdict.
    pub(super) const NOTHING: Self = Self {
        found: None,
        marks: None,
    };

    /// The same, for one schema of several.
    pub(super) fn again(&mut self) -> Out<'_, 'v, 'i> {
        Out {
            found: self.found.as_deref_mut(),
            marks: self.marks.as_deref_mut(),
        }
    }

    /// The same, for a value within this one, of which nothing is noted here.
    pub(super) fn within(&mut self) -> Out<'_, 'v, 'i> {
        Out {
            found: self.found.as_deref_mut(),
            marks: None,
        }
    }

    /// The same, with the failures of one alternative apart, if any more are kept.
    pub(super) fn apart<'n>(&'n mut self, wrong: &'n mut Vec<Failure<'v, 'i>>) -> Out<'n, 'v, 'i> {
        Out {
            found: (!self.is_enough()).then_some(wrong),
            marks: self.marks.as_deref_mut(),
        }
    }

    pub(super) fn mark(&mut self, index: usize) {
        if let Some(marks) = &mut self.marks {
            marks.mark(index);
        }
    }

    /// Whether nothing is gained by looking further, where something is wrong.
    pub(super) fn is_enough(&self) -> bool {
        let found = self.found.as_ref();
        found.is_none_or(|found| found.len() >= MAX_OFFENCES)
    }

    /// Whether a wrong value is all that there is to know.
    pub(super) fn is_brief(&self) -> bool {
        self.found.is_none()
    }
}
