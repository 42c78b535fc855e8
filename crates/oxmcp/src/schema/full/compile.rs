//! From a schema to a [`Validator`].

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    dialect::Dialect,
    keywords::{Keywords, invalid},
    resources::{Place, Resources},
    validator::{Keyword, Node, NodeId, Validator},
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
        let dialect = self.resources.all().get(resource).map(|it| it.dialect);
        let dialect = dialect.unwrap_or(Dialect::DEFAULT);
        let keywords = match schema {
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
}
