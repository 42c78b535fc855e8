//! Compiler of schemas: from a document to a [`Validator`].

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    error::{Result, SchemaError},
    full::{
        dialect::Dialect,
        grammar::table::part,
        keywords::{Keywords, invalid},
        nodes::{Compiler, DynamicRef, Grammar, Keyword, Node, Validator},
        resources::SchemaCursor,
    },
};

/// The approximate maximum size of a compiled schema in bytes. Each subschema keeps its path, and each pattern its
/// program, so the compiled form of a small schema can be large.
const MAX_BYTES: usize = 64 << 20;

/// Compiles a schema that is known to be valid in this dialect.
pub(crate) fn compile(schema: Value, dialect: Dialect) -> Result<Validator> {
    let mut compiler = Compiler::new(MAX_BYTES);
    compiler.resources.add(schema, "", dialect)?;
    let root = compiler.node(SchemaCursor {
        document: 0,
        pointer: String::new(),
    });
    while let Some((id, place)) = compiler.waiting.pop() {
        let node = compiler.compile(place)?;
        if compiler.bytes_left == 0 {
            return Err(SchemaError::limit(format!(
                "the schema is too large: it would exceed {MAX_BYTES} bytes when compiled"
            )));
        }
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

impl Dialect {
    /// The validator of schemas in this dialect.
    pub(crate) fn validator(self) -> Validator {
        let schema = json!({"$ref": self.uri()});
        compile(schema, self).expect("the metaschemas are part of every schema")
    }

    /// Compiles a schema that is known to be valid.
    ///
    /// # Errors
    /// If it has a reference without a target, or a pattern that cannot be used.
    pub(crate) fn compile(self, schema: Value) -> Result<Validator> {
        compile(schema, self)
    }
}

impl Compiler {
    fn compile(&mut self, place: SchemaCursor) -> Result<Node> {
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
            _ => return Err(invalid(&place, "expected a schema here")),
        };
        Ok(Node {
            resource,
            whole_is_integer: dialect > Dialect::Draft04,
            keywords,
            place,
        })
    }

    /// The node for a dialect's metaschema, or for a part of it.
    fn grammar(&mut self, place: &SchemaCursor, dialect: Dialect) -> Option<Keyword> {
        let root = SchemaCursor {
            document: place.document,
            pointer: String::new(),
        };
        let schema = match dialect.metaschema_anchor() {
            Some(anchor) => self.dynamic_reference(&root, anchor),
            None => DynamicRef {
                otherwise: self.node(root),
                candidates: Arc::default(),
            },
        };
        Some(Keyword::Grammar(Grammar {
            dialect,
            shape: part(dialect, &place.pointer)?,
            schema,
        }))
    }
}
