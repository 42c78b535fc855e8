//! Targets of references: documents, schemas within them that have their own URI, and anchors.

use std::{collections::HashMap, sync::Arc};

use oxmcp_json::pointer_token;
use serde_json::Value;

use crate::{
    error::{Result, SchemaError},
    full::{dialect::Dialect, grammar::table::part, uri},
};

/// The maximum length of the URI of a schema, in bytes. The URIs of nested schemas begin with it.
const MAX_URI: usize = 1024;

/// The position of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SchemaCursor {
    pub(crate) document: usize,
    /// A JSON Pointer into the document.
    pub(crate) pointer: String,
}

impl SchemaCursor {
    /// The place of a nested value.
    pub(crate) fn within(&self, names: &[&str]) -> Self {
        let mut pointer = self.pointer.clone();
        for name in names {
            pointer.push('/');
            pointer.push_str(&pointer_token(name));
        }
        Self {
            document: self.document,
            pointer,
        }
    }
}

/// The number of a schema that has a URI.
pub(crate) type ResourceId = usize;

#[derive(Debug)]
pub(crate) struct Resource {
    uri: String,
    place: SchemaCursor,
    pub(crate) dialect: Dialect,
    anchors: HashMap<String, SchemaCursor>,
    /// The anchors that are searched from the outermost resource inwards. The one without a name is
    /// `$recursiveAnchor`.
    pub(crate) dynamic_anchors: HashMap<String, SchemaCursor>,
    /// Whether the resource is the metaschema of its dialect, which is built in and has no text.
    pub(crate) is_metaschema: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Resources {
    documents: Vec<Arc<Value>>,
    all: Vec<Resource>,
    by_uri: HashMap<String, ResourceId>,
    by_place: HashMap<SchemaCursor, ResourceId>,
}

/// Keywords whose value is a schema or an array of schemas.
const HOLD_SCHEMAS: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is an object of schemas.
const HOLD_NAMED_SCHEMAS: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

impl Resources {
    /// Adds a document. Its base URI is `uri`, unless it sets another one.
    pub(crate) fn add(&mut self, document: Value, uri: &str, dialect: Dialect) -> Result<()> {
        let document = Arc::new(document);
        let place = SchemaCursor {
            document: self.documents.len(),
            pointer: String::new(),
        };
        self.documents.push(Arc::clone(&document));
        let root = self.open(uri.to_owned(), place.clone(), dialect);
        self.index(&document, &place, root)
    }

    pub(crate) fn document(&self, place: &SchemaCursor) -> Option<&Arc<Value>> {
        self.documents.get(place.document)
    }

    pub(crate) fn into_documents(self) -> Vec<Arc<Value>> {
        self.documents
    }

    pub(crate) fn all(&self) -> &[Resource] {
        &self.all
    }

    /// The resource that contains a place.
    pub(crate) fn around(&self, place: &SchemaCursor) -> ResourceId {
        let mut place = place.clone();
        loop {
            if let Some(id) = self.by_place.get(&place) {
                return *id;
            }
            match place.pointer.rfind('/') {
                Some(end) => place.pointer.truncate(end),
                None => return 0,
            }
        }
    }

    /// Resolves a reference in a resource to its target.
    pub(crate) fn find(&mut self, reference: &str, from: ResourceId) -> Result<SchemaCursor> {
        let (uri, fragment) = uri::split_fragment(reference);
        let base = self.all.get(from).map_or("", |resource| &resource.uri);
        let uri = uri::resolve(base, uri);
        let found = match self.by_uri.get(&uri) {
            Some(id) => Some(*id),
            None => self.add_metaschema(&uri),
        };
        let fragment = uri::percent_decode(fragment);
        let place = found.and_then(|id| self.all.get(id)).and_then(|resource| {
            if fragment.is_empty() || fragment.starts_with('/') {
                let mut place = resource.place.clone();
                place.pointer.push_str(&fragment);
                if resource.is_metaschema {
                    return part(resource.dialect, &fragment).map(|_| place);
                }
                let document = self.document(&place)?;
                document.pointer(&place.pointer).map(|_| place)
            } else {
                resource.anchors.get(&*fragment).cloned()
            }
        });
        place.ok_or_else(|| {
            SchemaError::invalid(format!(
                "cannot resolve the reference {reference}: references are never fetched; put the target under \"$defs\""
            ))
        })
    }

    /// Adds a metaschema, which every schema can refer to.
    fn add_metaschema(&mut self, uri: &str) -> Option<ResourceId> {
        let dialect = Dialect::of_metaschema(uri)?;
        let place = SchemaCursor {
            document: self.documents.len(),
            pointer: String::new(),
        };
        self.documents.push(Arc::new(dialect.metaschema()));
        let id = self.open(uri.to_owned(), place.clone(), dialect);
        let resource = self.all.get_mut(id)?;
        resource.is_metaschema = true;
        if let Some(anchor) = dialect.metaschema_anchor() {
            let dynamic = &mut resource.dynamic_anchors;
            dynamic.insert(anchor.to_owned(), place.clone());
            resource.anchors.insert(anchor.to_owned(), place);
        }
        Some(id)
    }

    fn open(&mut self, uri: String, place: SchemaCursor, dialect: Dialect) -> ResourceId {
        let id = self.all.len();
        self.by_uri.entry(uri.clone()).or_insert(id);
        self.by_place.insert(place.clone(), id);
        self.all.push(Resource {
            uri,
            place,
            dialect,
            anchors: HashMap::new(),
            dynamic_anchors: HashMap::new(),
            is_metaschema: false,
        });
        id
    }

    fn rename(&mut self, id: ResourceId, uri: String) -> ResourceId {
        self.by_uri.insert(uri.clone(), id);
        if let Some(resource) = self.all.get_mut(id) {
            resource.uri = uri;
        }
        id
    }

    /// Collects the URIs and anchors of a schema and of all nested schemas.
    fn index(&mut self, schema: &Value, place: &SchemaCursor, around: ResourceId) -> Result<()> {
        let Value::Object(map) = schema else {
            return Ok(());
        };
        let mut here = around;
        let dialect = self
            .all
            .get(around)
            .map_or(Dialect::DEFAULT, |resource| resource.dialect);
        let text = |keyword: &str| map.get(keyword).and_then(Value::as_str);
        let is_hidden = dialect.ref_stands_alone() && map.contains_key("$ref");
        if let Some(id) = text(dialect.id()).filter(|_| !is_hidden) {
            here = self.identify(schema, id, place, around)?;
        }
        let dialect = self.all.get(here).map_or(dialect, |it| it.dialect);
        if let Some(resource) = self.all.get_mut(here) {
            if let Some(name) = text("$anchor").filter(|_| dialect >= Dialect::Draft201909) {
                resource.anchors.insert(name.to_owned(), place.clone());
            }
            if let Some(name) = text("$dynamicAnchor").filter(|_| dialect >= Dialect::Draft202012) {
                resource.anchors.insert(name.to_owned(), place.clone());
                let dynamic = &mut resource.dynamic_anchors;
                dynamic.insert(name.to_owned(), place.clone());
            }
            if map.get("$recursiveAnchor") == Some(&Value::Bool(true)) && resource.place == *place {
                let dynamic = &mut resource.dynamic_anchors;
                dynamic.insert(String::new(), place.clone());
            }
        }
        for (keyword, value) in map {
            let keyword = keyword.as_str();
            match value {
                Value::Object(schemas) if HOLD_NAMED_SCHEMAS.contains(&keyword) => {
                    for (name, schema) in schemas {
                        self.index(schema, &place.within(&[keyword, name]), here)?;
                    }
                }
                Value::Array(schemas) if HOLD_SCHEMAS.contains(&keyword) => {
                    for (index, schema) in schemas.iter().enumerate() {
                        let place = place.within(&[keyword, &index.to_string()]);
                        self.index(schema, &place, here)?;
                    }
                }
                schema if HOLD_SCHEMAS.contains(&keyword) => {
                    self.index(schema, &place.within(&[keyword]), here)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a schema with its own URI or, in older dialects, with an anchor in the form of a URI.
    fn identify(
        &mut self,
        schema: &Value,
        id: &str,
        place: &SchemaCursor,
        around: ResourceId,
    ) -> Result<ResourceId> {
        let (uri, fragment) = uri::split_fragment(id);
        let (base, dialect) = match self.all.get(around) {
            Some(resource) => (resource.uri.as_str(), resource.dialect),
            None => ("", Dialect::DEFAULT),
        };
        let uri = uri::resolve(base, uri);
        if uri.len() > MAX_URI {
            return Err(SchemaError::limit(format!(
                "the URI of a schema is longer than {MAX_URI} bytes"
            )));
        }
        let mut here = around;
        if !id.starts_with('#') {
            let dialect = Dialect::named(schema)?.unwrap_or(dialect);
            here = match self.by_place.get(place) {
                // The root of a document, which was added before its URI was known.
                Some(root) => self.rename(*root, uri),
                None => self.open(uri, place.clone(), dialect),
            };
        }
        if !fragment.is_empty()
            && let Some(resource) = self.all.get_mut(here)
        {
            resource.anchors.insert(fragment.to_owned(), place.clone());
        }
        Ok(here)
    }
}
