//! Run of a [`Validator`] on a value, within a budget of steps; and the members and items that its keywords have
//! evaluated.

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

/// The number of steps for any value, and the additional steps for each byte of it. Recursive schemas with alternatives
/// can double the work with each level of the value, so this bounds the time. A step takes some ten nanoseconds.
const STEPS: usize = 1 << 20;
const STEPS_PER_BYTE: usize = 64;
/// The maximum nesting depth of schemas and values together, which bounds the use of the stack. Any value that can be
/// parsed needs only a few schemas for each of its own levels.
const MAX_DEPTH: usize = 600;
/// The steps for the conversion of a number to decimal and its division.
const STEPS_PER_DECIMAL: usize = 32;

/// The bytes per step for the pointer of a value or a schema, whose names are processed one by one.
const BYTES_OF_WAY_PER_STEP: usize = 8;

/// The maximum memory of all failures together, in bytes: nested alternatives keep separate failures.
const MAX_FAILURE_BYTES: usize = 16 << 20;

/// The budget of steps was used up before the verdict was known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BudgetExceeded;

impl Validator {
    /// Whether the schema accepts the value, whose JSON is `length` bytes long.
    pub(crate) fn accepts(&self, instance: &Value, length: usize) -> Result<bool, BudgetExceeded> {
        let mut run = Run::new(self, length);
        let accepts = run.node(self.root, &Position::root(instance), Out::NOTHING);
        run.finish(accepts)
    }

    /// Returns the first failures of the value against the schema.
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

pub(crate) struct Run<'v> {
    validator: &'v Validator,
    steps: usize,
    depth: usize,
    pub(crate) is_exhausted: bool,
    /// The number of bytes that failures may still take.
    pub(crate) bytes_left: usize,
    /// The resources that were entered on the way to the current schema, for dynamic references.
    pub(crate) scope: Vec<ResourceId>,
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

    /// Subtracts `steps` from the budget. Returns `true` if it is used up; then the verdict does not count.
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        self.is_exhausted |= self.steps < steps;
        self.steps = self.steps.saturating_sub(steps);
        self.is_exhausted
    }

    /// Checks a value against a node. The evaluated members or items are marked if the node accepts the value.
    pub(crate) fn node<'i>(
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
            // A value that was already rejected counts as not evaluated, so its unevaluated members must not be
            // reported as well.
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

    /// The verdict of a keyword that does not depend on other schemas, and the name of the keyword. `None` for other
    /// keywords.
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

    pub(crate) fn matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        let matches = pattern.matches(text, &mut self.steps);
        self.is_exhausted |= matches.is_none();
        matches == Some(true)
    }

    pub(crate) fn are_unique(&mut self, items: &[Value]) -> bool {
        let mut work = items.len();
        let sorted = number::sorted(items, &mut work);
        let are_unique = sorted.windows(2).all(|pair| {
            let [one, other] = pair else { return true };
            number::order(one, other, &mut work).is_ne()
        });
        !self.spend(work) && are_unique
    }

    pub(crate) fn report<'i>(
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
        // Building the pointers takes work for each level of the value and of the schema.
        let ways = failure.pointer.len() + here.node.place.pointer.len();
        if !self.spend(1 + self.depth + ways / BYTES_OF_WAY_PER_STEP) {
            found.push(failure);
        }
    }
}

impl Keyword {
    /// Whether the keyword depends on the members or items that the other keywords have evaluated.
    fn needs_evaluated(&self) -> bool {
        matches!(
            self,
            Self::UnevaluatedItems(_) | Self::UnevaluatedProperties(_)
        )
    }
}

pub(crate) fn kind_of(node: &Node, value: &Value) -> u8 {
    match value {
        Value::Null => kind::NULL,
        Value::Bool(_) => kind::BOOLEAN,
        Value::Number(number) if number.is_f64() => {
            let is_whole = number::is_integral(number);
            // A number beyond the range of integer types was hardly written with a fraction.
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

/// The number of characters, items or members. `None` if the value is of another type.
fn count(value: &Value, of: u8) -> Option<usize> {
    match value {
        Value::String(text) if of == kind::STRING => Some(text.chars().count()),
        Value::Array(items) if of == kind::ARRAY => Some(items.len()),
        Value::Object(map) if of == kind::OBJECT => Some(map.len()),
        _ => None,
    }
}
