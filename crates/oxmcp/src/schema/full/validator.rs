//! A schema, compiled: nodes that refer to each other by number, so that recursion in a schema is nothing special.

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use serde_json::{Number, Value};

use super::{
    dialect::Dialect,
    grammar::Shape,
    number::Decimal,
    pattern::Pattern,
    resources::{Place, ResourceId},
};

pub(super) type NodeId = usize;

/// A compiled schema. [`accepts`](Self::accepts) and [`offences`](Self::offences) use it.
#[derive(Debug)]
pub(in crate::schema) struct Validator {
    pub(super) documents: Vec<Arc<Value>>,
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
}

/// What a schema asks of a value.
#[derive(Debug)]
pub(super) struct Node {
    /// Where the schema stands, for messages.
    pub(super) place: Place,
    pub(super) resource: ResourceId,
    /// Whether 1.0 is an integer, which the oldest dialect denies.
    pub(super) whole_is_integer: bool,
    /// In the order in which they are told.
    pub(super) keywords: Vec<Keyword>,
}

/// A keyword, or several that belong together. Those about other kinds of values than the one at hand say nothing.
#[derive(Debug)]
pub(super) enum Keyword {
    /// The schema `false`.
    Never,
    /// `type`, as bits.
    Kinds(u8),
    /// `enum` and `const`. The values are sorted.
    Values(&'static str, Vec<Value>),
    Limit(&'static str, Accepts, Number),
    MultipleOf(Decimal),
    /// How many characters, items or members, by the kind of value that has them.
    Count(&'static str, u8, Accepts, u64),
    Pattern(Pattern),
    UniqueItems,
    Required(Vec<String>),
    /// `dependentRequired`: what is required where a member is there.
    DependentRequired(Vec<(String, Vec<String>)>),
    DependentSchemas(Vec<(String, NodeId)>),
    PropertyNames(NodeId),
    Members(Members),
    Items(Items),
    Contains(Contains),
    Ref(NodeId),
    DynamicRef(DynamicRef),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If(If),
    UnevaluatedItems(NodeId),
    UnevaluatedProperties(Rest),
    Grammar(Grammar),
}

/// Which results of a comparison with a limit are accepted.
pub(super) type Accepts = fn(Ordering) -> bool;

/// `properties`, `patternProperties` and `additionalProperties`.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) named: HashMap<String, NodeId>,
    pub(super) patterns: Vec<(Pattern, NodeId)>,
    pub(super) rest: Option<Rest>,
}

/// What holds for members that nothing else speaks of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rest {
    Refused,
    Checked(NodeId),
}

/// `prefixItems`, `items` and `additionalItems`.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) first: Vec<NodeId>,
    pub(super) rest: Option<NodeId>,
    /// Whether an item after the first is one too many, which the older dialects say by `additionalItems`.
    pub(super) is_closed: bool,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) item: NodeId,
    pub(super) least: u64,
    pub(super) most: Option<u64>,
    /// Whether what is found counts as evaluated.
    pub(super) marks: bool,
}

/// A reference whose target is looked for from the outside in, among the schemas that led here.
#[derive(Debug)]
pub(super) struct DynamicRef {
    pub(super) otherwise: NodeId,
    pub(super) candidates: Candidates,
}

/// The places that have an anchor, in the order of the resources that they are in.
pub(super) type Candidates = Arc<[(ResourceId, NodeId)]>;

#[derive(Debug)]
pub(super) struct If {
    pub(super) condition: NodeId,
    pub(super) then: Option<NodeId>,
    pub(super) otherwise: Option<NodeId>,
}

/// That a value is a schema of a dialect, or what a part of one holds.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) dialect: Dialect,
    pub(super) shape: Shape,
    /// What holds for the schemas within: the same, unless this dialect is extended.
    pub(super) schema: DynamicRef,
}

impl Validator {
    /// The schema that a node was made of.
    pub(super) fn schema_of(&self, node: &Node) -> &Value {
        let document = self.documents.get(node.place.document);
        document
            .and_then(|document| document.pointer(&node.place.pointer))
            .unwrap_or(&Value::Null)
    }
}
