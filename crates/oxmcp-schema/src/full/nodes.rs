//! Compiled schemas: nodes that refer to each other by number, so that recursive schemas need no special treatment; and
//! the state of the compiler that numbers them.

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
    resources::{ResourceId, Resources, SchemaCursor},
};

pub(crate) type NodeId = usize;

/// A compiled schema. [`accepts`](Self::accepts) and [`failures`](Self::failures) use it.
#[derive(Debug)]
pub(crate) struct Validator {
    pub(crate) documents: Vec<Arc<Value>>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
}

/// The assertions of a schema.
#[derive(Debug)]
pub(crate) struct Node {
    /// The position of the schema, for messages.
    pub(crate) place: SchemaCursor,
    pub(crate) resource: ResourceId,
    /// Whether 1.0 is an integer, as in all dialects but draft-04.
    pub(crate) whole_is_integer: bool,
    /// The keywords in the order in which failures are reported.
    pub(crate) keywords: Vec<Keyword>,
}

/// A keyword, or several that belong together. Keywords for other types of values than the current one are ignored.
#[derive(Debug)]
pub(crate) enum Keyword {
    /// The schema `false`.
    Never,
    /// `type`, as bits.
    Kinds(u8),
    /// `enum` and `const`. The values are sorted.
    Values(&'static str, Vec<Value>),
    Limit(&'static str, Accepts, Number),
    MultipleOf(Decimal),
    /// A limit for the number of characters, items or members, with the type of value that has them.
    Count(&'static str, u8, Accepts, u64),
    Pattern(Pattern),
    UniqueItems,
    Required(Vec<String>),
    /// `dependentRequired`: the members that are required if another member is present.
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

/// The accepted results of a comparison with a limit.
pub(crate) type Accepts = fn(Ordering) -> bool;

/// `properties`, `patternProperties` and `additionalProperties`.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) named: HashMap<String, NodeId>,
    pub(crate) patterns: Vec<(Pattern, NodeId)>,
    pub(crate) rest: Option<Rest>,
}

/// The rule for members that no other keyword covers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rest {
    Refused,
    Checked(NodeId),
}

/// `prefixItems`, `items` and `additionalItems`.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) first: Vec<NodeId>,
    pub(crate) rest: Option<NodeId>,
    /// Whether items after `first` are not allowed, which the older dialects express by `additionalItems`.
    pub(crate) is_closed: bool,
}

#[derive(Debug)]
pub(crate) struct Contains {
    pub(crate) item: NodeId,
    pub(crate) least: u64,
    pub(crate) most: Option<u64>,
    /// Whether the items that match count as evaluated.
    pub(crate) evaluated: bool,
}

/// A reference whose target is searched from the outermost of the enclosing schemas inwards.
#[derive(Debug)]
pub(crate) struct DynamicRef {
    pub(crate) otherwise: NodeId,
    pub(crate) candidates: Candidates,
}

/// The places that have an anchor, in the order of their resources.
pub(crate) type Candidates = Arc<[(ResourceId, NodeId)]>;

#[derive(Debug)]
pub(crate) struct If {
    pub(crate) condition: NodeId,
    pub(crate) then: Option<NodeId>,
    pub(crate) otherwise: Option<NodeId>,
}

/// The assertion that a value is a schema of a dialect, or has the form of a part of one.
#[derive(Debug)]
pub(crate) struct Grammar {
    pub(crate) dialect: Dialect,
    pub(crate) shape: Shape,
    /// The grammar of nested schemas: the same, unless this dialect is extended.
    pub(crate) schema: DynamicRef,
}

impl Validator {
    /// The schema from which a node was compiled.
    pub(crate) fn schema_of(&self, node: &Node) -> &Value {
        let document = self.documents.get(node.place.document);
        document
            .and_then(|document| document.pointer(&node.place.pointer))
            .unwrap_or(&Value::Null)
    }
}

/// State of a compilation.
#[derive(Default)]
pub(crate) struct Compiler {
    pub(crate) resources: Resources,
    pub(crate) nodes: Vec<Option<Node>>,
    ids: HashMap<SchemaCursor, NodeId>,
    /// Nodes that have a number but were not compiled yet.
    pub(crate) waiting: Vec<(NodeId, SchemaCursor)>,
    /// The places that have a dynamic anchor, by its name, and the number of resources that were searched for them.
    anchored: HashMap<String, (usize, Candidates)>,
    /// The number of bytes that the compiled schema may still take. At zero the result is discarded.
    pub(crate) bytes_left: usize,
}

impl Compiler {
    /// A compiler for a schema of at most `bytes_left` bytes.
    pub(crate) fn new(bytes_left: usize) -> Self {
        Self {
            bytes_left,
            ..Self::default()
        }
    }

    /// The number of the schema at a place. It is compiled later, so that the compiler is not recursive.
    pub(crate) fn node(&mut self, place: SchemaCursor) -> NodeId {
        if let Some(id) = self.ids.get(&place) {
            return *id;
        }
        // The place is stored in the node, in the map, and temporarily in the list.
        self.take(size_of::<Node>() + 3 * (size_of::<SchemaCursor>() + place.pointer.len()));
        if self.bytes_left == 0 {
            return 0;
        }
        let id = self.nodes.len();
        self.nodes.push(None);
        self.ids.insert(place.clone(), id);
        self.waiting.push((id, place));
        id
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// A reference to a place that was found by an anchor.
    pub(crate) fn dynamic_reference(&mut self, place: &SchemaCursor, anchor: &str) -> DynamicRef {
        let otherwise = self.node(place.clone());
        // Only a target with a dynamic anchor is searched in the enclosing schemas.
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

    /// The places of all resources with a dynamic anchor. References to the same anchor share them.
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
