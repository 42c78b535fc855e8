//! Compiled schemas: nodes that refer to each other by number, so that recursion in a schema is nothing special; and the state
//! of the compiler that numbers them.

use std::{
    cmp::Ordering,
    collections::HashMap,
    mem::{size_of, size_of_val},
    sync::Arc,
};

use serde_json::{Number, Value};

use crate::full::{
    dialect::Dialect,
    grammar::table::Shape,
    number::Decimal,
    pattern::search::Pattern,
    resources::{Place, ResourceId, Resources},
};

pub(super) type NodeId = usize;

/// A compiled schema. [`accepts`](Self::accepts) and [`failures`](Self::failures) use it.
#[derive(Debug)]
pub(crate) struct Validator {
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
    pub(super) evaluated: bool,
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

/// State of a compilation.
#[derive(Default)]
pub(super) struct Compiler {
    pub(super) resources: Resources,
    pub(super) nodes: Vec<Option<Node>>,
    ids: HashMap<Place, NodeId>,
    /// Nodes that have a number and nothing else yet.
    pub(super) waiting: Vec<(NodeId, Place)>,
    /// The places that have a dynamic anchor, by its name, and how many resources were looked at for that.
    anchored: HashMap<String, (usize, Candidates)>,
    /// How many bytes may still be taken. Where none are left, what is compiled is not used.
    pub(super) bytes_left: usize,
}

impl Compiler {
    /// A compiler that may take so many bytes.
    pub(super) fn new(bytes_left: usize) -> Self {
        Self {
            bytes_left,
            ..Self::default()
        }
    }

    /// The number of the schema at a place. It is compiled later, so that nothing here is recursive.
    pub(super) fn node(&mut self, place: Place) -> NodeId {
        if let Some(id) = self.ids.get(&place) {
            return *id;
        }
        // It is kept for the node, in the map, and for a while in the list.
        self.take(size_of::<Node>() + 3 * (size_of::<Place>() + place.pointer.len()));
        if self.bytes_left == 0 {
            return 0;
        }
        let id = self.nodes.len();
        self.nodes.push(None);
        self.ids.insert(place.clone(), id);
        self.waiting.push((id, place));
        id
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// A reference to a place that an anchor has led to.
    pub(super) fn dynamic_reference(&mut self, place: &Place, anchor: &str) -> DynamicRef {
        let otherwise = self.node(place.clone());
        // Only what is such an anchor itself is looked for further out.
        let around = self.resources.around(place);
        let all = self.resources.all();
        let own = all.get(around).map(|it| it.dynamic_anchors.get(anchor));
        let is_dynamic = own.flatten() == Some(place);
        DynamicRef {
            otherwise,
            candidates: if is_dynamic {
                self.anchored(anchor)
            } else {
                Arc::default()
            },
        }
    }

    /// The places of all resources that have a dynamic anchor. References to the same share them.
    fn anchored(&mut self, anchor: &str) -> Candidates {
        let count = self.resources.all().len();
        if let Some((seen, found)) = self.anchored.get(anchor)
            && *seen == count
        {
            return Arc::clone(found);
        }
        let anchors = self.resources.all().iter().enumerate();
        let places: Vec<_> = anchors
            .filter_map(|(id, it)| Some((id, it.dynamic_anchors.get(anchor)?.clone())))
            .collect();
        let places = places.into_iter();
        let found: Candidates = places.map(|(id, place)| (id, self.node(place))).collect();
        self.take(size_of_val(&*found));
        let entry = (count, Arc::clone(&found));
        self.anchored.insert(anchor.to_owned(), entry);
        found
    }
}
