//! A [`Validator`] at work on a value.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::{Map, Value};

use super::{
    marks::Marks,
    number::{self, Decimal},
    pattern::Pattern,
    offence::{Detail, Offence},
    resources::ResourceId,
    validator::{
        Contains, DynamicRef, If, Items, Keyword, Members, Node, NodeId, Rest, Validator,
    },
};
use crate::schema::check::kind;

/// How many steps any value may take, and how many more for each byte of it. Recursive schemas with alternatives can
/// double the work with each level of the value, so this is what bounds the time: ten seconds for the largest messages.
const STEPS: usize = 1 << 20;
const STEPS_PER_BYTE: usize = 64;
/// How deep schemas and values may nest together, for the sake of the stack. No value that can be read needs more than
/// a few schemas for each of its own levels.
const MAX_DEPTH: usize = 600;
/// How many offences are kept of one value or of one alternative.
const MAX_OFFENCES: usize = 32;
/// How many names are told in one offence.
const MAX_NAMES: usize = 17;

/// The value was not found right or wrong with the work that is worth it.
#[derive(Debug)]
pub(in crate::schema) struct TooMuchWork;

impl Validator {
    /// Whether the schema accepts the value, whose JSON is `length` bytes long.
    pub(in crate::schema) fn accepts(
        &self,
        instance: &Value,
        length: usize,
    ) -> Result<bool, TooMuchWork> {
        let mut run = Run::new(self, length);
        let accepts = run.node(self.root, &At::root(instance), None, None);
        run.finish(accepts)
    }

    /// What the schema has against the value: the first few offences.
    pub(in crate::schema) fn offences<'v, 'i>(
        &'v self,
        instance: &'i Value,
        length: usize,
    ) -> Result<Vec<Offence<'v, 'i>>, TooMuchWork> {
        let mut run = Run::new(self, length);
        let mut offences = Vec::new();
        run.node(self.root, &At::root(instance), Some(&mut offences), None);
        run.finish(offences)
    }
}

/// A value, and the way to it.
struct At<'p, 'i> {
    value: &'i Value,
    parent: Option<(&'p At<'p, 'i>, Step<'p>)>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Member(&'p str),
    Item(usize),
}

impl<'p, 'i> At<'p, 'i> {
    fn root(value: &'i Value) -> Self {
        Self {
            value,
            parent: None,
        }
    }

    fn member(&'p self, name: &'p str, value: &'i Value) -> Self {
        Self {
            value,
            parent: Some((self, Step::Member(name))),
        }
    }

    fn item(&'p self, index: usize, value: &'i Value) -> Self {
        Self {
            value,
            parent: Some((self, Step::Item(index))),
        }
    }

    fn pointer(&self) -> String {
        let Some((parent, step)) = self.parent else {
            return String::new();
        };
        let mut pointer = parent.pointer();
        pointer.push('/');
        match step {
            Step::Member(name) => pointer.push_str(&name.replace('~', "~0").replace('/', "~1")),
            Step::Item(index) => pointer.push_str(&index.to_string()),
        }
        pointer
    }
}

/// Where offences go. None where only the verdict is wanted, which then comes as early as it can.
type Found<'f, 'v, 'i> = Option<&'f mut Vec<Offence<'v, 'i>>>;

struct Run<'v> {
    validator: &'v Validator,
    steps: usize,
    depth: usize,
    is_exhausted: bool,
    /// The resources that were entered on the way here, for dynamic references.
    scope: Vec<ResourceId>,
}

impl<'v> Run<'v> {
    fn new(validator: &'v Validator, length: usize) -> Self {
        Self {
            validator,
            steps: STEPS.saturating_add(length.saturating_mul(STEPS_PER_BYTE)),
            depth: 0,
            is_exhausted: false,
            scope: Vec::new(),
        }
    }

    fn finish<T>(self, result: T) -> Result<T, TooMuchWork> {
        if self.is_exhausted {
            Err(TooMuchWork)
        } else {
            Ok(result)
        }
    }

    /// Whether there is no more work to be had. Whatever is answered then does not count.
    fn spend(&mut self, steps: usize) -> bool {
        self.is_exhausted |= self.steps < steps;
        self.steps = self.steps.saturating_sub(steps);
        self.is_exhausted
    }

    /// Holds a value against a node. Marks are made where it fits.
    fn node<'i>(
        &mut self,
        id: NodeId,
        at: &At<'_, 'i>,
        mut found: Found<'_, 'v, 'i>,
        marks: Option<&mut Marks>,
    ) -> bool {
        let Some(node) = self.validator.nodes.get(id) else {
            return false;
        };
        self.is_exhausted |= self.depth >= MAX_DEPTH;
        if self.spend(1) {
            return false;
        }
        self.depth += 1;
        let enters = self.scope.last() != Some(&node.resource);
        if enters {
            self.scope.push(node.resource);
        }
        let wants_marks = marks.is_some() || node.keywords.last().is_some_and(Keyword::needs_marks);
        let mut own = wants_marks.then(Marks::default);
        let mut accepts = true;
        for keyword in &node.keywords {
            // What is wrong already has not been evaluated, and should not be told for that once more.
            if !accepts && (found.is_none() || keyword.needs_marks()) {
                break;
            }
            accepts &= self.keyword(node, keyword, at, found.as_deref_mut(), own.as_mut());
        }
        if enters {
            self.scope.pop();
        }
        self.depth -= 1;
        if let (true, Some(marks), Some(own)) = (accepts, marks, own) {
            marks.merge(own);
        }
        accepts
    }

    fn keyword<'i>(
        &mut self,
        node: &'v Node,
        keyword: &'v Keyword,
        at: &At<'_, 'i>,
        found: Found<'_, 'v, 'i>,
        marks: Option<&mut Marks>,
    ) -> bool {
        if self.spend(1) {
            return false;
        }
        let Some((is_right, name)) = self.assertion(node, keyword, at.value) else {
            return match at.value {
                Value::Object(map) => self.of_object(node, keyword, at, map, found, marks),
                Value::Array(items) => self.of_array(node, keyword, at, items, found, marks),
                _ => self.of_any(node, keyword, at, found, marks),
            };
        };
        if !is_right {
            self.tell(node, name, at, Detail::None, found);
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
                let found = values.binary_search_by(|listed| number::order(listed, value));
                (found.is_ok(), *name)
            }
            (Keyword::Limit(name, accepts, limit), Value::Number(number)) => {
                (accepts(number::compare(number, limit)), *name)
            }
            (Keyword::MultipleOf(divisor), Value::Number(number)) => {
                let number = Decimal::new(number);
                let is_multiple = number.is_some_and(|it| it.is_multiple_of(divisor));
                (is_multiple, "multipleOf")
            }
            (Keyword::Count(name, kind, accepts, limit), value) => {
                let count = count(value, *kind);
                let is_right = count.is_none_or(|count| accepts((count as u64).cmp(limit)));
                (is_right, *name)
            }
            (Keyword::Pattern(pattern), Value::String(text)) => {
                (self.matches(pattern, text), "pattern")
            }
            (Keyword::UniqueItems, Value::Array(items)) => {
                let is_exhausted = self.spend(items.len());
                (!is_exhausted && are_unique(items), "uniqueItems")
            }
            _ => return None,
        })
    }

    fn matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        let matches = pattern.matches(text, &mut self.steps);
        self.is_exhausted |= matches.is_none();
        matches == Some(true)
    }

    fn of_object<'i>(
        &mut self,
        node: &'v Node,
        keyword: &'v Keyword,
        at: &At<'_, 'i>,
        map: &'i Map<String, Value>,
        mut found: Found<'_, 'v, 'i>,
        marks: Option<&mut Marks>,
    ) -> bool {
        match keyword {
            Keyword::Required(names) => self.required(node, names, at, map, found),
            Keyword::DependentRequired(all) => {
                let mut accepts = true;
                for (_, names) in all.iter().filter(|(name, _)| map.contains_key(name)) {
                    accepts &= self.required(node, names, at, map, found.as_deref_mut());
                }
                accepts
            }
            Keyword::DependentSchemas(all) => {
                let all = all.iter().filter(|(name, _)| map.contains_key(name));
                self.all_of(all.map(|(_, id)| *id), at, found, marks)
            }
            Keyword::PropertyNames(id) => self.names(node, *id, at, map, found),
            Keyword::Members(members) => self.members(node, members, at, map, found, marks),
            Keyword::UnevaluatedProperties(rest) => {
                self.unevaluated_members(node, *rest, at, map, found, marks)
            }
            _ => self.of_any(node, keyword, at, found, marks),
        }
    }

    fn of_array<'i>(
        &mut self,
        node: &'v Node,
        keyword: &'v Keyword,
        at: &At<'_, 'i>,
        values: &'i [Value],
        found: Found<'_, 'v, 'i>,
        marks: Option<&mut Marks>,
    ) -> bool {
        match keyword {
            Keyword::Items(items) => self.items(node, items, at, values, found, marks),
            Keyword::Contains(all) => self.contains(node, all, at, values, found, marks),
            Keyword::UnevaluatedItems(id) => self.unevaluated_items(*id, at, values, found, marks),
            _ => self.of_any(node, keyword, at, found, marks),
        }
    }

    /// The keywords that apply schemas to the same value, whatever it is.
    fn of_any<'i>(
        &mut self,
        node: &'v Node,
        keyword: &'v Keyword,
        at: &At<'_, 'i>,
        found: Found<'_, 'v, 'i>,
        marks: Option<&mut Marks>,
    ) -> bool {
        match keyword {
            Keyword::Ref(id) => self.node(*id, at, found, marks),
            Keyword::DynamicRef(reference) => {
                let id = self.dynamic_target(reference);
                self.node(id, at, found, marks)
            }
            Keyword::AllOf(ids) => self.all_of(ids.iter().copied(), at, found, marks),
            Keyword::AnyOf(ids) => self.any_of(node, ids, at, found, marks),
            Keyword::OneOf(ids) => self.one_of(node, ids, at, found, marks),
            Keyword::Not(id) => {
                let accepts = !self.node(*id, at, None, None);
                if !accepts {
                    self.tell(node, "not", at, Detail::None, found);
                }
                accepts
            }
            Keyword::If(all) => self.condition(all, at, found, marks),
            // What is about other kinds of values says nothing.
            _ => true,
        }
    }

    fn all_of<'i>(
        &mut self,
        ids: impl Iterator<Item = NodeId>,
        at: &At<'_, 'i>,
        mut found: Found<'_, 'v, 'i>,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut accepts = true;
        for id in ids {
            accepts &= self.node(id, at, found.as_deref_mut(), marks.as_deref_mut());
            if !accepts && found.is_none() {
                break;
            }
        }
        accepts
    }

    fn tell<'i>(
        &self,
        node: &'v Node,
        keyword: &'static str,
        at: &At<'_, 'i>,
        detail: Detail<'v, 'i>,
        found: Found<'_, 'v, 'i>,
    ) {
        let Some(found) = found.filter(|found| found.len() < MAX_OFFENCES) else {
            return;
        };
        found.push(Offence {
            place: self.validator.schema_of(node),
            keyword,
            pointer: at.pointer(),
            instance: Cow::Borrowed(at.value),
            detail,
        });
    }

    fn required<'i>(
        &mut self,
        node: &'v Node,
        names: &'v [String],
        at: &At<'_, 'i>,
        map: &Map<String, Value>,
        mut found: Found<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = !self.spend(names.len());
        for name in names.iter().filter(|name| !map.contains_key(*name)) {
            accepts = false;
            let detail = Detail::Missing(name);
            self.tell(node, "required", at, detail, found.as_deref_mut());
        }
        accepts
    }

    fn names<'i>(
        &mut self,
        node: &'v Node,
        id: NodeId,
        at: &At<'_, 'i>,
        map: &Map<String, Value>,
        mut found: Found<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        for name in map.keys() {
            let name = Value::String(name.clone());
            let mut wrong = Vec::new();
            let wanted = found.is_some().then_some(&mut wrong);
            if self.node(id, &At::root(&name), wanted, None) {
                continue;
            }
            accepts = false;
            if found.is_none() {
                break;
            }
            if let Some(offence) = wrong.into_iter().next() {
                let detail = Detail::Name(Box::new(offence.into_owned()));
                self.tell(node, "propertyNames", at, detail, found.as_deref_mut());
            }
        }
        accepts
    }

    fn members<'i>(
        &mut self,
        node: &'v Node,
        members: &Members,
        at: &At<'_, 'i>,
        map: &'i Map<String, Value>,
        mut found: Found<'_, 'v, 'i>,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut accepts = true;
        let mut unexpected = Vec::new();
        for (index, (name, value)) in map.iter().enumerate() {
            let at = at.member(name, value);
            let mut is_named = false;
            if let Some(id) = members.named.get(name) {
                is_named = true;
                accepts &= self.node(*id, &at, found.as_deref_mut(), None);
            }
            for (pattern, id) in &members.patterns {
                if self.matches(pattern, name) {
                    is_named = true;
                    accepts &= self.node(*id, &at, found.as_deref_mut(), None);
                }
            }
            match members.rest {
                Some(Rest::Refused) if !is_named => unexpected.push(name),
                Some(Rest::Checked(id)) if !is_named => {
                    accepts &= self.node(id, &at, found.as_deref_mut(), None);
                }
                _ => {}
            }
            if let Some(marks) = marks.as_deref_mut()
                && (is_named || members.rest.is_some())
            {
                marks.mark(index);
            }
            let is_wrong = !accepts || !unexpected.is_empty();
            if is_wrong && found.is_none() || self.is_exhausted {
                return false;
            }
        }
        if !unexpected.is_empty() {
            let detail = unexpected_names(unexpected.into_iter());
            self.tell(node, "additionalProperties", at, detail, found);
            return false;
        }
        accepts
    }

    fn items<'i>(
        &mut self,
        node: &'v Node,
        items: &Items,
        at: &At<'_, 'i>,
        values: &'i [Value],
        mut found: Found<'_, 'v, 'i>,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        if items.is_closed && values.len() > items.first.len() {
            self.tell(node, "additionalItems", at, Detail::None, found);
            return false;
        }
        let mut accepts = true;
        for (index, value) in values.iter().enumerate() {
            let Some(id) = items.first.get(index).copied().or(items.rest) else {
                break;
            };
            accepts &= self.node(id, &at.item(index, value), found.as_deref_mut(), None);
            if !accepts && is_enough(&found) || self.is_exhausted {
                return false;
            }
            if let Some(marks) = marks.as_deref_mut() {
                marks.mark(index);
            }
        }
        accepts
    }

    fn contains<'i>(
        &mut self,
        node: &'v Node,
        contains: &Contains,
        at: &At<'_, 'i>,
        values: &'i [Value],
        found: Found<'_, 'v, 'i>,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut count = 0;
        for (index, value) in values.iter().enumerate() {
            if self.node(contains.item, &at.item(index, value), None, None) {
                count += 1;
                if let Some(marks) = marks.as_deref_mut().filter(|_| contains.marks) {
                    marks.mark(index);
                }
            }
        }
        let keyword = if count < contains.least {
            "contains"
        } else if contains.most.is_some_and(|most| count > most) {
            "maxContains"
        } else {
            return true;
        };
        self.tell(node, keyword, at, Detail::None, found);
        false
    }

    fn dynamic_target(&self, reference: &DynamicRef) -> NodeId {
        let outermost = self.scope.iter().find_map(|resource| {
            let mut candidates = reference.candidates.iter();
            candidates.find(|(id, _)| id == resource)
        });
        outermost.map_or(reference.otherwise, |(_, id)| *id)
    }

    fn any_of<'i>(
        &mut self,
        node: &'v Node,
        ids: &[NodeId],
        at: &At<'_, 'i>,
        found: Found<'_, 'v, 'i>,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut accepts = false;
        let mut all = Vec::new();
        for id in ids {
            let mut wrong = Vec::new();
            let wanted = found.is_some().then_some(&mut wrong);
            accepts |= self.node(*id, at, wanted, marks.as_deref_mut());
            // Each alternative that fits says what has been evaluated.
            if accepts && marks.is_none() {
                return true;
            }
            all.push(wrong);
        }
        if !accepts {
            self.tell(node, "anyOf", at, Detail::Alternatives(all), found);
        }
        accepts
    }

    fn one_of<'i>(
        &mut self,
        node: &'v Node,
        ids: &[NodeId],
        at: &At<'_, 'i>,
        found: Found<'_, 'v, 'i>,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut count = 0;
        let mut all = Vec::new();
        for id in ids {
            let mut wrong = Vec::new();
            let wanted = found.is_some().then_some(&mut wrong);
            count += usize::from(self.node(*id, at, wanted, marks.as_deref_mut()));
            all.push(wrong);
            if count > 1 {
                self.tell(node, "oneOf", at, Detail::Several, found);
                return false;
            }
        }
        if count == 0 {
            self.tell(node, "oneOf", at, Detail::Alternatives(all), found);
        }
        count == 1
    }

    fn condition<'i>(
        &mut self,
        all: &If,
        at: &At<'_, 'i>,
        found: Found<'_, 'v, 'i>,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let holds = self.node(all.condition, at, None, marks.as_deref_mut());
        let consequence = if holds { all.then } else { all.otherwise };
        consequence.is_none_or(|id| self.node(id, at, found, marks))
    }

    fn unevaluated_items<'i>(
        &mut self,
        id: NodeId,
        at: &At<'_, 'i>,
        values: &'i [Value],
        mut found: Found<'_, 'v, 'i>,
        marks: Option<&mut Marks>,
    ) -> bool {
        let Some(marks) = marks else { return true };
        let mut accepts = true;
        for (index, value) in values.iter().enumerate() {
            if marks.has(index) {
                continue;
            }
            accepts &= self.node(id, &at.item(index, value), found.as_deref_mut(), None);
            if !accepts && is_enough(&found) || self.is_exhausted {
                return false;
            }
            marks.mark(index);
        }
        accepts
    }

    fn unevaluated_members<'i>(
        &mut self,
        node: &'v Node,
        rest: Rest,
        at: &At<'_, 'i>,
        map: &'i Map<String, Value>,
        mut found: Found<'_, 'v, 'i>,
        marks: Option<&mut Marks>,
    ) -> bool {
        let Some(marks) = marks else { return true };
        let mut accepts = true;
        let mut unexpected = Vec::new();
        for (index, (name, value)) in map.iter().enumerate() {
            if marks.has(index) {
                continue;
            }
            match rest {
                Rest::Refused => unexpected.push(name),
                Rest::Checked(id) => {
                    accepts &= self.node(id, &at.member(name, value), found.as_deref_mut(), None);
                }
            }
            marks.mark(index);
        }
        if !unexpected.is_empty() {
            let detail = unexpected_names(unexpected.into_iter());
            self.tell(node, "unevaluatedProperties", at, detail, found);
            return false;
        }
        accepts
    }
}

impl Keyword {
    /// Whether it has to know what the other keywords have evaluated.
    fn needs_marks(&self) -> bool {
        matches!(
            self,
            Self::UnevaluatedItems(_) | Self::UnevaluatedProperties(_)
        )
    }
}

/// Whether nothing is gained by looking further.
fn is_enough(found: &Found<'_, '_, '_>) -> bool {
    found
        .as_ref()
        .is_none_or(|found| found.len() >= MAX_OFFENCES)
}

fn unexpected_names<'v, 'i>(names: impl Iterator<Item = &'i String>) -> Detail<'v, 'i> {
    Detail::Unexpected(names.take(MAX_NAMES).cloned().collect())
}

fn kind_of(node: &Node, value: &Value) -> u8 {
    match value {
        Value::Null => kind::NULL,
        Value::Bool(_) => kind::BOOLEAN,
        Value::Number(number) if number.is_f64() => {
            if node.whole_is_integer && number::is_integral(number) {
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

fn are_unique(items: &[Value]) -> bool {
    let mut sorted: Vec<&Value> = items.iter().collect();
    sorted.sort_by(|one, other| number::order(one, other));
    sorted
        .windows(2)
        .all(|pair| !matches!(pair, [one, other] if number::order(one, other) == Ordering::Equal))
}
