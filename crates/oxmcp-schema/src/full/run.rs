//! Run of a [`Validator`] on a value, within a budget of work; and the members and items that its keywords have evaluated.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    fast::check::kind,
    full::{
        at::{Evaluated, Here, MAX_FAILURES, Out, Position},
        failure::{Detail, Failure},
        nodes::{Keyword, Node, NodeId, Validator},
        number::{self, BYTES_PER_STEP, Decimal},
        pattern::search::Pattern,
        resources::ResourceId,
    },
};

/// How many steps any value may take, and how many more for each byte of it. Recursive schemas with alternatives can
/// double the work with each level of the value, so this is what bounds the time. A step takes some ten nanoseconds.
const STEPS: usize = 1 << 20;
const STEPS_PER_BYTE: usize = 64;
/// How deep schemas and values may nest together, for the sake of the stack. No value that can be read needs more than
/// a few schemas for each of its own levels.
const MAX_DEPTH: usize = 600;
/// What it takes to write a number down and divide it.
const STEPS_PER_DECIMAL: usize = 32;

/// The same for the way to a value or a schema, of which each name is looked at by itself.
const BYTES_OF_WAY_PER_STEP: usize = 8;

/// How many bytes they may take together: alternatives within alternatives keep theirs apart.
const MAX_FAILURE_BYTES: usize = 16 << 20;

/// The value was not found right or wrong with the work that is worth it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BudgetExceeded;

impl Validator {
    /// Whether the schema accepts the value, whose JSON is `length` bytes long.
    pub(crate) fn accepts(&self, instance: &Value, length: usize) -> Result<bool, BudgetExceeded> {
        let mut run = Run::new(self, length);
        let accepts = run.node(self.root, &Position::root(instance), Out::NOTHING);
        run.finish(accepts)
    }

    /// What the schema has against the value: the first few failures.
    pub(crate) fn failures<'v, 'i>(
        &'v self,
        instance: &'i Value,
        length: usize,
    ) -> Result<Vec<Failure<'v, 'i>>, BudgetExceeded> {
        let mut run = Run::new(self, length);
        let mut failures = Vec::new();
        let out = Out {
            found: Some(&mut failures),
            evaluated: None,
        };
        run.node(self.root, &Position::root(instance), out);
        run.finish(failures)
    }
}

pub(super) struct Run<'v> {
    validator: &'v Validator,
    steps: usize,
    depth: usize,
    pub(super) is_exhausted: bool,
    /// How many bytes of failures may still be kept.
    pub(super) bytes_left: usize,
    /// The resources that were entered on the way here, for dynamic references.
    pub(super) scope: Vec<ResourceId>,
}

impl<'v> Run<'v> {
    fn new(validator: &'v Validator, length: usize) -> Self {
        Self {
            validator,
            steps: STEPS.saturating_add(length.saturating_mul(STEPS_PER_BYTE)),
            depth: 0,
            is_exhausted: false,
            bytes_left: MAX_FAILURE_BYTES,
            scope: Vec::new(),
        }
    }

    fn finish<T>(self, result: T) -> Result<T, BudgetExceeded> {
        if self.is_exhausted {
            Err(BudgetExceeded)
        } else {
            Ok(result)
        }
    }

    /// Whether there is no more work to be had. Whatever is answered then does not count.
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        self.is_exhausted |= self.steps < steps;
        self.steps = self.steps.saturating_sub(steps);
        self.is_exhausted
    }

    /// Holds a value against a node. Evaluated are made where it fits.
    pub(super) fn node<'i>(
        &mut self,
        id: NodeId,
        at: &Position<'_, 'i>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let Some(node) = self.validator.nodes.get(id) else {
            return false;
        };
        self.is_exhausted |= self.depth >= MAX_DEPTH;
        if self.spend(1) {
            return false;
        }
        self.depth += 1;
        let enters_resource = self.scope.last() != Some(&node.resource);
        if enters_resource {
            self.scope.push(node.resource);
        }
        let wants_evaluated =
            out.evaluated.is_some() || node.keywords.last().is_some_and(Keyword::needs_evaluated);
        let mut evaluated = wants_evaluated.then(Evaluated::default);
        let mut accepts = true;
        for keyword in &node.keywords {
            // What is wrong already has not been evaluated, and should not be told for that once more.
            if !accepts && (out.is_brief() || keyword.needs_evaluated()) {
                break;
            }
            let out = Out {
                found: out.found.as_deref_mut(),
                evaluated: evaluated.as_mut(),
            };
            accepts &= self.keyword(Here { node, at }, keyword, out);
        }
        if enters_resource {
            self.scope.pop();
        }
        self.depth -= 1;
        if let (true, Some(all), Some(evaluated)) = (accepts, out.evaluated, evaluated) {
            all.merge(evaluated);
        }
        accepts
    }

    fn keyword<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        keyword: &'v Keyword,
        out: Out<'_, 'v, 'i>,
    ) -> bool {
        if self.spend(1) {
            return false;
        }
        let value = here.at.value;
        let Some((is_right, name)) = self.assertion(here.node, keyword, value) else {
            return match value {
                Value::Object(map) => self.of_object(here, keyword, map, out),
                Value::Array(items) => self.of_array(here, keyword, items, out),
                _ => self.of_any(here, keyword, out),
            };
        };
        if !is_right {
            self.report(here, name, Detail::None, out);
        }
        is_right
    }

    /// Whether a value is right by a keyword that asserts something and looks no further, and its name.
    fn assertion(
        &mut self,
        node: &Node,
        keyword: &Keyword,
        value: &Value,
    ) -> Option<(bool, &'static str)> {
        Some(match (keyword, value) {
            (Keyword::Never, _) => (false, "false"),
            (Keyword::Kinds(kinds), value) => (kinds & kind_of(node, value) != 0, "type"),
            (Keyword::Values(name, values), value) => {
                let mut work = 0;
                let found = values.binary_search_by(|it| number::order(it, value, &mut work));
                (!self.spend(work) && found.is_ok(), *name)
            }
            (Keyword::Limit(name, accepts, limit), Value::Number(number)) => {
                (accepts(number::compare(number, limit)), *name)
            }
            (Keyword::MultipleOf(divisor), Value::Number(number)) => {
                self.spend(STEPS_PER_DECIMAL);
                let number = Decimal::new(number);
                let is_multiple = number.is_some_and(|it| it.is_multiple_of(divisor));
                (is_multiple, "multipleOf")
            }
            (Keyword::Count(name, kind, accepts, limit), value) => {
                if let Value::String(text) = value {
                    self.spend(text.len() / BYTES_PER_STEP);
                }
                let count = count(value, *kind);
                let is_right = count.is_none_or(|count| accepts((count as u64).cmp(limit)));
                (is_right, *name)
            }
            (Keyword::Pattern(pattern), Value::String(text)) => {
                (self.matches(pattern, text), "pattern")
            }
            (Keyword::UniqueItems, Value::Array(items)) => (self.are_unique(items), "uniqueItems"),
            _ => return None,
        })
    }

    pub(super) fn matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        let matches = pattern.matches(text, &mut self.steps);
        self.is_exhausted |= matches.is_none();
        matches == Some(true)
    }

    pub(super) fn are_unique(&mut self, items: &[Value]) -> bool {
        let mut work = items.len();
        let sorted = number::sorted(items, &mut work);
        let are_unique = sorted.windows(2).all(|pair| {
            let [one, other] = pair else { return true };
            number::order(one, other, &mut work).is_ne()
        });
        !self.spend(work) && are_unique
    }

    pub(super) fn report<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        keyword: &'static str,
        detail: Detail<'v, 'i>,
        out: Out<'_, 'v, 'i>,
    ) {
        let Some(found) = out.found.filter(|found| found.len() < MAX_FAILURES) else {
            return;
        };
        let failure = Failure {
            place: self.validator.schema_of(here.node),
            keyword,
            pointer: here.at.pointer(),
            instance: Cow::Borrowed(here.at.value),
            detail,
        };
        self.is_exhausted |= self.bytes_left < failure.size();
        self.bytes_left = self.bytes_left.saturating_sub(failure.size());
        // Each level of the value and of the schema was gone through, to say where they are.
        let ways = failure.pointer.len() + here.node.place.pointer.len();
        if !self.spend(1 + self.depth + ways / BYTES_OF_WAY_PER_STEP) {
            found.push(failure);
        }
    }
}

impl Keyword {
    /// Whether it has to know what the other keywords have evaluated.
    fn needs_evaluated(&self) -> bool {
        matches!(
            self,
            Self::UnevaluatedItems(_) | Self::UnevaluatedProperties(_)
        )
    }
}

pub(super) fn kind_of(node: &Node, value: &Value) -> u8 {
    match value {
        Value::Null => kind::NULL,
        Value::Bool(_) => kind::BOOLEAN,
        Value::Number(number) if number.is_f64() => {
            let is_whole = number::is_integral(number);
            // What no other type of number can hold was hardly written with a fraction.
            if is_whole && (node.whole_is_integer || !number::is_moderate(number)) {
                kind::INTEGER
            } else {
                kind::FRACTION
            }
        }
        Value::Number(_) => kind::INTEGER,
        Value::String(_) => kind::STRING,
        Value::Array(_) => kind::ARRAY,
        Value::Object(_) => kind::OBJECT,
    }
}

/// How many characters, items or members there are. None where the value is of another kind.
fn count(value: &Value, of: u8) -> Option<usize> {
    match value {
        Value::String(text) if of == kind::STRING => Some(text.chars().count()),
        Value::Array(items) if of == kind::ARRAY => Some(items.len()),
        Value::Object(map) if of == kind::OBJECT => Some(map.len()),
        _ => None,
    }
}
