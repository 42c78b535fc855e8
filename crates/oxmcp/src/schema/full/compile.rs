//! From a schema to a [`Validator`].

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    dialect::Dialect,
    grammar,
    keywords::{Keywords, invalid},
    resources::{Place, Resources},
    validator::{DynamicRef, Grammar, Keyword, Node, NodeId, Validator},
};
use crate::error::Result;

/// Compiles a schema that is known to be one of this dialect.
pub(super) fn compile(schema: Value, dialect: Dialect) -> Result<Validator> {
    let mut compiler = Compiler::default();
    compiler.resources.add(schema, "", dialect)?;
    let root = compiler.node(Place {
        document: 0,
        pointer: String::new(),
    });
    while let Some((id, place)) = compiler.waiting.pop() {
        let node = compiler.compile(place)?;
        if let Some(slot) = compiler.nodes.get_mut(id) {
            *slot = Some(node);
        }
    }
    Ok(Validator {
        documents: compiler.resources.into_documents(),
        nodes: compiler.nodes.into_iter().flatten().collect(),
        root,
    })
}

#[derive(Default)]
pub(super) struct Compiler {
    pub(super) resources: Resources,
    nodes: Vec<Option<Node>>,
    ids: HashMap<Place, NodeId>,
    /// Nodes that have a number and nothing else yet.
    waiting: Vec<(NodeId, Place)>,
}

impl Compiler {
    /// The number of the schema at a place. It is compiled later, so that nothing here is recursive.
    pub(super) fn node(&mut self, place: Place) -> NodeId {
        if let Some(id) = self.ids.get(&place) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(None);
        self.ids.insert(place.clone(), id);
        self.waiting.push((id, place));
        id
    }

    fn compile(&mut self, place: Place) -> Result<Node> {
        let document = self.resources.document(&place).map(Arc::clone);
        let schema = document
            .as_ref()
            .and_then(|document| document.pointer(&place.pointer));
        let resource = self.resources.around(&place);
        let within = self.resources.all().get(resource);
        let dialect = within.map_or(Dialect::DEFAULT, |it| it.dialect);
        let is_metaschema = within.is_some_and(|it| it.is_metaschema);
        let keywords = match schema {
            _ if is_metaschema => self.grammar(&place, dialect).into_iter().collect(),
            Some(Value::Bool(true)) => Vec::new(),
            Some(Value::Bool(false)) => vec![Keyword::Never],
            Some(Value::Object(map)) => Keywords {
                compiler: self,
                map,
                place: &place,
                resource,
                dialect,
            }
            .compile()?,
            _ => return Err(invalid(&place, "there is no schema here")),
        };
        Ok(Node {
            resource,
            whole_is_integer: dialect > Dialect::Draft04,
            keywords,
            place,
        })
    }

    /// A dialect's metaschema, or a part of it.
    fn grammar(&mut self, place: &Place, dialect: Dialect) -> Option<Keyword> {
        let root = Place {
            document: place.document,
            pointer: String::new(),
        };
        let schema = match dialect.metaschema_anchor() {
            Some(anchor) => self.dynamic_reference(&root, anchor),
            None => DynamicRef {
                otherwise: self.node(root),
                candidates: Vec::new(),
            },
        };
        Some(Keyword::Grammar(Grammar {
            dialect,
            shape: grammar::part(dialect, &place.pointer)?,
            schema,
        }))
    }

    /// A reference to a place that an anchor has led to.
    pub(super) fn dynamic_reference(&mut self, place: &Place, anchor: &str) -> DynamicRef {
        let otherwise = self.node(place.clone());
        // Only what is such an anchor itself is looked for further out.
        let around = self.resources.around(place);
        let all = self.resources.all();
        let own = all.get(around).map(|it| it.dynamic_anchors.get(anchor));
        let mut candidates = Vec::new();
        if own.flatten() == Some(place) {
            let anchors = all.iter().enumerate();
            let places: Vec<_> = anchors
                .filter_map(|(id, it)| Some((id, it.dynamic_anchors.get(anchor)?.clone())))
                .collect();
            let places = places.into_iter();
            candidates.extend(places.map(|(id, place)| (id, self.node(place))));
        }
        DynamicRef {
            otherwise,
            candidates,
        }
    }
}
