//! Compiler of the keywords of one schema: those of its dialect become assertions.

use std::{cmp::Ordering, collections::HashMap};

use serde_json::{Map, Number, Value};

use crate::{
    error::{Result, SchemaError},
    explain::expected::quote_text,
    fast::check::{kind, kind_of},
    full::{
        dialect::Dialect,
        nodes::{Accepts, Compiler, Contains, If, Items, Keyword, Members, NodeId, Rest},
        number::{self, Decimal},
        pattern::search::Pattern,
        resources::SchemaCursor,
        uri,
    },
};

/// The error for an invalid schema, with its position.
pub(crate) fn invalid(place: &SchemaCursor, message: &str) -> SchemaError {
    let pointer = if place.pointer.is_empty() {
        "/"
    } else {
        &place.pointer
    };
    SchemaError::invalid(format!("invalid JSON Schema: {pointer}: {message}"))
}

/// The keywords of one schema.
pub(crate) struct Keywords<'c, 's> {
    pub(crate) compiler: &'c mut Compiler,
    pub(crate) map: &'s Map<String, Value>,
    pub(crate) place: &'s SchemaCursor,
    pub(crate) resource: usize,
    pub(crate) dialect: Dialect,
}

impl<'s> Keywords<'_, 's> {
    pub(crate) fn compile(mut self) -> Result<Vec<Keyword>> {
        let reference = self.reference("$ref")?.map(Keyword::Ref);
        if reference.is_some() && self.dialect.ref_stands_alone() {
            return Ok(reference.into_iter().collect());
        }
        let mut found: Vec<Keyword> = Vec::new();
        found.extend(self.values()?);
        found.extend(self.limits()?);
        found.extend(self.counts()?);
        found.extend(self.text()?);
        found.extend(self.requirements()?);
        found.extend(self.members()?);
        found.extend(self.items()?);
        found.extend(self.contains()?);
        found.extend(reference);
        found.extend(self.dynamic_reference()?);
        found.extend(self.combinations()?);
        // The unevaluated members are known only after all other keywords were checked.
        found.extend(self.unevaluated()?);
        Ok(found)
    }

    /// The value of a keyword, if the dialect has the keyword, which exists since `first`.
    pub(crate) fn get(&self, keyword: &str, first: Dialect) -> Option<&'s Value> {
        self.map.get(keyword).filter(|_| self.dialect >= first)
    }

    fn invalid(&self, keyword: &str, message: &str) -> SchemaError {
        invalid(&self.place.within(&[keyword]), message)
    }

    pub(crate) fn misplaced(&self, keyword: &str) -> SchemaError {
        self.invalid(keyword, "invalid value for this keyword")
    }

    /// The schema that is the value of a keyword.
    fn schema(&mut self, keyword: &str, first: Dialect) -> Option<NodeId> {
        self.get(keyword, first)?;
        Some(self.compiler.node(self.place.within(&[keyword])))
    }

    fn schemas(&mut self, keyword: &str, first: Dialect) -> Result<Option<Vec<NodeId>>> {
        match self.get(keyword, first) {
            None => Ok(None),
            Some(Value::Array(schemas)) => Ok(Some(self.node_list(keyword, schemas.len()))),
            Some(_) => Err(self.misplaced(keyword)),
        }
    }

    fn node_list(&mut self, keyword: &str, count: usize) -> Vec<NodeId> {
        let nodes = (0..count).map(|index| {
            let place = self.place.within(&[keyword, &index.to_string()]);
            self.compiler.node(place)
        });
        nodes.collect()
    }

    fn named_schemas(&mut self, keyword: &str, first: Dialect) -> Result<Vec<(&'s str, NodeId)>> {
        let schemas = match self.get(keyword, first) {
            None => return Ok(Vec::new()),
            Some(Value::Object(schemas)) => schemas,
            Some(_) => return Err(self.misplaced(keyword)),
        };
        let nodes = schemas.keys().map(|name| {
            let place = self.place.within(&[keyword, name]);
            (name.as_str(), self.compiler.node(place))
        });
        Ok(nodes.collect())
    }

    pub(crate) fn count(&self, keyword: &str, first: Dialect) -> Result<Option<u64>> {
        match self.get(keyword, first) {
            None => Ok(None),
            Some(value) => value
                .as_number()
                .and_then(number::count)
                .map(Some)
                .ok_or_else(|| self.misplaced(keyword)),
        }
    }

    fn names(&self, keyword: &str, value: &Value) -> Result<Vec<String>> {
        let names = value.as_array().and_then(|names| {
            let names = names.iter().map(|name| Some(name.as_str()?.to_owned()));
            names.collect()
        });
        names.ok_or_else(|| self.misplaced(keyword))
    }

    pub(crate) fn pattern(&mut self, keyword: &str, pattern: &str) -> Result<Pattern> {
        let made = Pattern::new(pattern).map_err(|error| {
            let pattern = quote_text(pattern);
            self.invalid(
                keyword,
                &format!("cannot use the pattern {pattern}: {error}"),
            )
        })?;
        self.compiler.take(made.size());
        Ok(made)
    }

    fn requirements(&mut self) -> Result<Vec<Keyword>> {
        let mut found = Vec::new();
        if let Some(names) = self.map.get("required") {
            found.push(Keyword::Required(self.names("required", names)?));
        }
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        if let Some(names) = self.get("dependentRequired", Dialect::Draft201909) {
            let names = names.as_object();
            for (name, names) in names.ok_or_else(|| self.misplaced("dependentRequired"))? {
                required.push((name.clone(), self.names("dependentRequired", names)?));
            }
        }
        for (name, node) in self.named_schemas("dependentSchemas", Dialect::Draft201909)? {
            schemas.push((name.to_owned(), node));
        }
        // The older form of both keywords, which newer schemas use as well.
        if let Some(all) = self.map.get("dependencies") {
            let all = all.as_object();
            for (name, value) in all.ok_or_else(|| self.misplaced("dependencies"))? {
                match value {
                    Value::Array(_) => {
                        required.push((name.clone(), self.names("dependencies", value)?));
                    }
                    // The oldest form has a single name instead of an array.
                    Value::String(only) => required.push((name.clone(), vec![only.clone()])),
                    _ => {
                        let place = self.place.within(&["dependencies", name]);
                        schemas.push((name.clone(), self.compiler.node(place)));
                    }
                }
            }
        }
        if !required.is_empty() {
            found.push(Keyword::DependentRequired(required));
        }
        if !schemas.is_empty() {
            found.push(Keyword::DependentSchemas(schemas));
        }
        Ok(found)
    }

    fn members(&mut self) -> Result<Vec<Keyword>> {
        let names = self.schema("propertyNames", Dialect::Draft06);
        let mut found: Vec<Keyword> = names.into_iter().map(Keyword::PropertyNames).collect();
        let named: HashMap<_, _> = self
            .named_schemas("properties", Dialect::Draft04)?
            .into_iter()
            .map(|(name, node)| (name.to_owned(), node))
            .collect();
        let mut patterns = Vec::new();
        for (pattern, node) in self.named_schemas("patternProperties", Dialect::Draft04)? {
            patterns.push((self.pattern("patternProperties", pattern)?, node));
        }
        let rest = self.rest("additionalProperties", Dialect::Draft04);
        if !named.is_empty() || !patterns.is_empty() || rest.is_some() {
            found.push(Keyword::Members(Members {
                named,
                patterns,
                rest,
            }));
        }
        Ok(found)
    }

    fn rest(&mut self, keyword: &str, first: Dialect) -> Option<Rest> {
        if self.get(keyword, first)? == &Value::Bool(false) {
            return Some(Rest::Refused);
        }
        self.schema(keyword, first).map(Rest::Checked)
    }

    fn items(&mut self) -> Result<Option<Keyword>> {
        let mut items = Items {
            first: self
                .schemas("prefixItems", Dialect::Draft202012)?
                .unwrap_or_default(),
            ..Items::default()
        };
        match self.map.get("items") {
            Some(Value::Array(schemas)) if self.dialect < Dialect::Draft202012 => {
                items.first = self.node_list("items", schemas.len());
                items.rest = self.schema("additionalItems", Dialect::Draft04);
                items.is_closed = self.map.get("additionalItems") == Some(&Value::Bool(false));
            }
            Some(_) => items.rest = self.schema("items", Dialect::Draft04),
            None => {}
        }
        let says_something = !items.first.is_empty() || items.rest.is_some();
        Ok(says_something.then_some(Keyword::Items(items)))
    }

    fn contains(&mut self) -> Result<Option<Keyword>> {
        let Some(item) = self.schema("contains", Dialect::Draft06) else {
            return Ok(None);
        };
        Ok(Some(Keyword::Contains(Contains {
            item,
            least: self
                .count("minContains", Dialect::Draft201909)?
                .unwrap_or(1),
            most: self.count("maxContains", Dialect::Draft201909)?,
            evaluated: self.dialect >= Dialect::Draft202012,
        })))
    }

    fn combinations(&mut self) -> Result<Vec<Keyword>> {
        let mut found = Vec::new();
        found.extend(self.schemas("allOf", Dialect::Draft04)?.map(Keyword::AllOf));
        found.extend(self.schemas("anyOf", Dialect::Draft04)?.map(Keyword::AnyOf));
        found.extend(self.schemas("oneOf", Dialect::Draft04)?.map(Keyword::OneOf));
        found.extend(self.schema("not", Dialect::Draft04).map(Keyword::Not));
        if let Some(condition) = self.schema("if", Dialect::Draft07) {
            found.push(Keyword::If(If {
                condition,
                then: self.schema("then", Dialect::Draft07),
                otherwise: self.schema("else", Dialect::Draft07),
            }));
        }
        Ok(found)
    }

    fn unevaluated(&mut self) -> Result<Vec<Keyword>> {
        let items = self.schema("unevaluatedItems", Dialect::Draft201909);
        let members = self.rest("unevaluatedProperties", Dialect::Draft201909);
        let items = items.map(Keyword::UnevaluatedItems);
        let members = members.map(Keyword::UnevaluatedProperties);
        Ok(items.into_iter().chain(members).collect())
    }

    fn reference(&mut self, keyword: &str) -> Result<Option<NodeId>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::String(reference)) => {
                let place = self.compiler.resources.find(reference, self.resource)?;
                Ok(Some(self.compiler.node(place)))
            }
            Some(_) => Err(self.misplaced(keyword)),
        }
    }

    fn dynamic_reference(&mut self) -> Result<Option<Keyword>> {
        let keyword = match self.dialect {
            Dialect::Draft202012 => "$dynamicRef",
            Dialect::Draft201909 => "$recursiveRef",
            _ => return Ok(None),
        };
        let Some(Value::String(reference)) = self.map.get(keyword) else {
            return Ok(None);
        };
        let place = self.compiler.resources.find(reference, self.resource)?;
        let (_, anchor) = uri::split_fragment(reference);
        let reference = self.compiler.dynamic_reference(&place, anchor);
        Ok(Some(Keyword::DynamicRef(reference)))
    }
}

impl Keywords<'_, '_> {
    pub(crate) fn values(&self) -> Result<Vec<Keyword>> {
        let mut found = Vec::new();
        if let Some(value) = self.map.get("type") {
            let kinds = match value {
                Value::String(name) => kind_of(name),
                Value::Array(names) => names
                    .iter()
                    .try_fold(0, |kinds, name| Some(kinds | kind_of(name.as_str()?)?)),
                _ => None,
            };
            found.push(Keyword::Kinds(kinds.ok_or_else(|| self.misplaced("type"))?));
        }
        if let Some(values) = self.map.get("enum") {
            let values = values.as_array().ok_or_else(|| self.misplaced("enum"))?;
            let values = number::sorted(values, &mut 0).into_iter().cloned();
            found.push(Keyword::Values("enum", values.collect()));
        }
        if let Some(value) = self.get("const", Dialect::Draft06) {
            found.push(Keyword::Values("const", vec![value.clone()]));
        }
        Ok(found)
    }

    pub(crate) fn limits(&self) -> Result<Vec<Keyword>> {
        const LIMITS: [(&str, &str, Accepts, Accepts); 2] = [
            (
                "minimum",
                "exclusiveMinimum",
                Ordering::is_ge,
                Ordering::is_gt,
            ),
            (
                "maximum",
                "exclusiveMaximum",
                Ordering::is_le,
                Ordering::is_lt,
            ),
        ];
        let mut found = Vec::new();
        for (inclusive, exclusive, reaches, passes) in LIMITS {
            let limit = self.number(inclusive)?;
            if self.dialect == Dialect::Draft04 {
                // In draft-04, the second keyword modifies the first.
                let is_exclusive = self.map.get(exclusive) == Some(&Value::Bool(true));
                let accepts = if is_exclusive { passes } else { reaches };
                found.extend(limit.map(|it| Keyword::Limit(inclusive, accepts, it)));
                continue;
            }
            found.extend(limit.map(|it| Keyword::Limit(inclusive, reaches, it)));
            let limit = self.number(exclusive)?;
            found.extend(limit.map(|it| Keyword::Limit(exclusive, passes, it)));
        }
        if let Some(divisor) = self.number("multipleOf")? {
            let divisor = Decimal::new(&divisor).ok_or_else(|| self.misplaced("multipleOf"))?;
            found.push(Keyword::MultipleOf(divisor));
        }
        Ok(found)
    }

    fn number(&self, keyword: &str) -> Result<Option<Number>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(_) => Err(self.misplaced(keyword)),
        }
    }

    pub(crate) fn counts(&self) -> Result<Vec<Keyword>> {
        const COUNTS: [(&str, u8, Accepts); 6] = [
            ("minLength", kind::STRING, Ordering::is_ge),
            ("maxLength", kind::STRING, Ordering::is_le),
            ("minItems", kind::ARRAY, Ordering::is_ge),
            ("maxItems", kind::ARRAY, Ordering::is_le),
            ("minProperties", kind::OBJECT, Ordering::is_ge),
            ("maxProperties", kind::OBJECT, Ordering::is_le),
        ];
        let mut found = Vec::new();
        for (keyword, of, accepts) in COUNTS {
            let limit = self.count(keyword, Dialect::Draft04)?;
            found.extend(limit.map(|limit| Keyword::Count(keyword, of, accepts, limit)));
        }
        if self.map.get("uniqueItems") == Some(&Value::Bool(true)) {
            found.push(Keyword::UniqueItems);
        }
        Ok(found)
    }

    pub(crate) fn text(&mut self) -> Result<Option<Keyword>> {
        match self.map.get("pattern") {
            None => Ok(None),
            Some(Value::String(pattern)) => {
                Ok(Some(Keyword::Pattern(self.pattern("pattern", pattern)?)))
            }
            Some(_) => Err(self.misplaced("pattern")),
        }
    }
}
