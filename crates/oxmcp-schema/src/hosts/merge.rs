//! Merging the forms at the root of a schema into one object, which has the properties of all forms and requires those that
//! all forms require.
//!
//! A description says which properties belong together. If the value of one property distinguishes the forms, that property
//! has the description; otherwise the whole object has it.

use serde_json::{Map, Value, json};

use crate::{
    explain::expected::{list, listed as listed_values, literal, quote_text},
    infer::{
        order::{self, ORDER, is_mark},
        references::target,
    },
};

/// The maximum depth of references and nested forms that are followed.
const MAX_DEPTH: usize = 16;

/// An object schema without alternatives: what a form says about an object, or several forms together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    /// The properties, in their order.
    properties: Vec<(String, Value)>,
    required: Vec<String>,
    others: Others,
    description: Option<String>,
    /// The properties that belong together, in words, if no discriminator has them in its description.
    notes: Vec<String>,
}

/// The members that an object may have in addition to its properties.
#[derive(Clone, Debug, Default, PartialEq)]
enum Others {
    #[default]
    Unsaid,
    Refused,
    /// `additionalProperties`.
    Matching(Value),
}

impl Form {
    /// Reads the keywords of a schema that are about objects. `None` if it accepts no object.
    pub(crate) fn read(schema: &Value, root: &Value) -> Option<Self> {
        Self::read_nested(schema, root, 0)
    }

    fn read_nested(schema: &Value, root: &Value, depth: usize) -> Option<Self> {
        let map = match schema {
            Value::Object(map) => map,
            other => return (*other != Value::Bool(false)).then(Self::default),
        };
        let is_object = match map.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(kind) => kind == "object",
            None => true,
        };
        if !is_object {
            return None;
        }
        let mut form = Self::of_keywords(map);
        if depth == MAX_DEPTH {
            return Some(form);
        }
        let read = |nested: &Value| Self::read_nested(nested, root, depth + 1);
        if let Some(target) = map.get("$ref").and_then(|it| target(it, root))
            && !std::ptr::eq(target, schema)
        {
            form = form.and(read(target)?);
        }
        let nested = |keyword| map.get(keyword).and_then(Value::as_array);
        for part in nested("allOf").into_iter().flatten() {
            form = form.and(read(part)?);
        }
        for forms in ["anyOf", "oneOf"].into_iter().filter_map(nested) {
            let forms: Vec<_> = forms.iter().filter_map(read).collect();
            form = form.and(Self::either(&forms)?);
        }
        if map.get("unevaluatedProperties") == Some(&Value::Bool(false))
            && form.others == Others::Unsaid
        {
            form.others = Others::Refused;
        }
        Some(form)
    }

    /// Reads the keywords of one object, without its forms.
    fn of_keywords(map: &Map<String, Value>) -> Self {
        let required = map.get("required");
        let properties = map.get("properties").and_then(Value::as_object);
        let properties = properties.map(|all| order::in_order(all, required));
        let names = required.and_then(Value::as_array).into_iter().flatten();
        Self {
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, property)| (name.clone(), property.clone()))
                .collect(),
            required: names
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            others: match map.get("additionalProperties") {
                Some(Value::Bool(false)) if !map.contains_key("patternProperties") => {
                    Others::Refused
                }
                Some(schema @ Value::Object(_)) => Others::Matching(schema.clone()),
                _ => Others::Unsaid,
            },
            description: text(map.get("description")),
            notes: Vec::new(),
        }
    }

    fn property(&self, name: &str) -> Option<&Value> {
        let mut properties = self.properties.iter();
        properties.find_map(|(known, property)| (known == name).then_some(property))
    }

    fn requires(&self, name: &str) -> bool {
        self.required.iter().any(|known| known == name)
    }

    /// The object that both forms describe.
    fn and(mut self, other: Self) -> Self {
        let adds = |one: &Self, to: &Self| {
            let mut names = one.properties.iter();
            names.any(|(name, _)| to.property(name).is_none())
        };
        self.others = match (&self.others, &other.others) {
            (Others::Refused, Others::Refused) => Others::Refused,
            // Properties that the closed form lacks are kept for the other form; the result accepts more.
            (Others::Refused, Others::Unsaid) if !adds(&other, &self) => Others::Refused,
            (Others::Unsaid, Others::Refused) if !adds(&self, &other) => Others::Refused,
            (Others::Matching(one), Others::Unsaid) | (Others::Unsaid, Others::Matching(one)) => {
                Others::Matching(one.clone())
            }
            (one, other) if one == other => one.clone(),
            _ => Others::Unsaid,
        };
        for (name, property) in other.properties {
            match self.properties.iter_mut().find(|(known, _)| *known == name) {
                Some((_, own)) => *own = both(own, &property),
                None => self.properties.push((name, property)),
            }
        }
        for name in other.required {
            if !self.requires(&name) {
                self.required.push(name);
            }
        }
        if self.description.is_none() {
            self.description = other.description;
        }
        self.notes.extend(other.notes);
        self
    }

    /// The object that has one of the forms. `None` if there is no form.
    fn either(forms: &[Self]) -> Option<Self> {
        let [first, rest @ ..] = forms else {
            return None;
        };
        if rest.is_empty() {
            return Some(first.clone());
        }
        let tag = discriminator(forms);
        let label = |form: &Self| {
            let tag = tag.as_ref()?;
            let value = form.property(tag)?;
            Some(format!("if {tag} is {}", values_of(value)))
        };
        let mut merged = Self {
            required: first.required.clone(),
            others: either_others(forms),
            ..Self::default()
        };
        merged
            .required
            .retain(|name| rest.iter().all(|form| form.requires(name)));
        for (name, _) in forms.iter().flat_map(|form| &form.properties) {
            if merged.property(name).is_some() {
                continue;
            }
            let is_tag = tag.as_ref() == Some(name);
            let alternatives = forms.iter().filter_map(|form| {
                let label = label(form).filter(|_| !is_tag);
                let others = match &form.others {
                    Others::Matching(schema) => Some(schema),
                    _ => None,
                };
                Some((label, form.property(name).or(others)?))
            });
            merged.properties.push((name.clone(), any_of(alternatives)));
        }
        merged.describe(forms, tag.as_deref());
        Some(merged)
    }

    /// Says which properties belong together.
    fn describe(&mut self, forms: &[Self], tag: Option<&str>) {
        self.notes
            .extend(forms.iter().flat_map(|form| form.notes.clone()));
        if let Some(tag) = tag {
            let lines = forms.iter().map(|form| {
                let value = form.property(tag).map(values_of).unwrap_or_default();
                form.line(&value, Some(tag))
            });
            let lines: Vec<_> = lines.collect();
            let mut properties = self.properties.iter_mut();
            let property = properties.find(|(name, _)| name == tag);
            if let Some((_, Value::Object(property))) = property {
                let own = text(property.get("description"));
                let own = own
                    .into_iter()
                    .chain(["The other properties depend on it:".to_owned()]);
                let text = own.collect::<Vec<_>>().join("\n\n");
                let text = format!("{text}\n{}", lines.join("\n"));
                property.insert("description".to_owned(), text.into());
            }
        } else if forms.iter().all(Self::is_one_property) {
            for (name, property) in &mut self.properties {
                let mut with_name = forms.iter().filter(|form| form.property(name).is_some());
                let about = with_name.next().and_then(|form| form.description.clone());
                if let (Value::Object(property), Some(about)) = (property, about) {
                    property.entry("description").or_insert(about.into());
                }
            }
            let names: Vec<_> = self
                .properties
                .iter()
                .map(|(name, _)| quote_text(name))
                .collect();
            let names = names.join(", ");
            self.notes
                .push(format!("Give exactly one of these properties: {names}."));
        } else {
            let lines: Vec<_> = forms.iter().map(|form| form.line("", None)).collect();
            let lines = lines.join("\n");
            self.notes.push(format!(
                "Give the properties of exactly one of these lines:\n{lines}"
            ));
        }
    }

    /// Whether it is the form of a variant that is given by its name, as in `{"Circle": {..}}`.
    fn is_one_property(&self) -> bool {
        matches!((self.properties.as_slice(), self.required.as_slice()), ([(one, _)], [name]) if one == name)
            && self.others == Others::Refused
    }

    /// The line about this form: `- "Circle": a round shape; "r", "a" (optional)`.
    fn line(&self, value: &str, tag: Option<&str>) -> String {
        let only_required = self.required.iter().map(String::as_str);
        let only_required = only_required.filter(|name| self.property(name).is_none());
        let names = self.properties.iter().map(|(name, _)| name.as_str());
        let names = names.chain(only_required);
        let names = names.filter(|name| Some(*name) != tag).map(|name| {
            let optional = if self.requires(name) {
                ""
            } else {
                " (optional)"
            };
            format!("{}{optional}", quote_text(name))
        });
        let names: Vec<_> = names.collect();
        let names = match names.as_slice() {
            [] => "no other properties".to_owned(),
            names => names.join(", "),
        };
        let about = self.description.iter().map(|text| text.replace('\n', " "));
        let about: Vec<_> = about.chain([names]).collect();
        let about = about.join("; ");
        if value.is_empty() {
            return format!("- {about}");
        }
        format!("- {value}: {about}")
    }

    /// Writes the form into the root of a schema.
    pub(crate) fn write(self, root: &mut Map<String, Value>) {
        let mut properties = Map::new();
        for (index, (name, mut property)) in self.properties.into_iter().enumerate() {
            if let Value::Object(property) = &mut property {
                property.insert(ORDER.to_owned(), index.into());
            }
            properties.insert(name, property);
        }
        root.insert("properties".to_owned(), Value::Object(properties));
        root.remove("required");
        if !self.required.is_empty() {
            root.insert("required".to_owned(), self.required.into());
        }
        match self.others {
            Others::Unsaid => {
                if root.get("additionalProperties") != Some(&Value::Bool(true)) {
                    root.remove("additionalProperties");
                }
            }
            Others::Refused => {
                root.insert("additionalProperties".to_owned(), false.into());
            }
            Others::Matching(schema) => {
                root.insert("additionalProperties".to_owned(), schema);
            }
        }
        let description = self.description.into_iter().chain(self.notes);
        let description = description.collect::<Vec<_>>().join("\n\n");
        if !description.is_empty() {
            root.insert("description".to_owned(), description.into());
        }
    }
}

fn either_others(forms: &[Form]) -> Others {
    let mut matching = forms.iter().filter(|form| form.others != Others::Refused);
    let Some(first) = matching.next() else {
        return Others::Refused;
    };
    if matching.all(|form| form.others == first.others) {
        return first.others.clone();
    }
    Others::Unsaid
}

/// The property that distinguishes the forms: all require it, and each has different values for it.
fn discriminator(forms: &[Form]) -> Option<String> {
    let (first, rest) = forms.split_first()?;
    let values = |form: &Form, name: &str| {
        let property = form.property(name).filter(|_| form.requires(name));
        property?
            .as_object()
            .and_then(listed_values)
            .map(<[Value]>::to_vec)
    };
    let tells_apart = |name: &str| {
        let mut seen = values(first, name)?;
        for form in rest {
            let more = values(form, name)?;
            if more.iter().any(|value| seen.contains(value)) {
                return None;
            }
            seen.extend(more);
        }
        Some(name.to_owned())
    };
    first
        .properties
        .iter()
        .find_map(|(name, _)| tells_apart(name))
}

fn values_of(property: &Value) -> String {
    let values = property.as_object().and_then(listed_values);
    list(values.into_iter().flatten().map(literal))
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

/// The schema of a value that two schemas describe: their keywords together, or those of the more specific one.
fn both(one: &Value, other: &Value) -> Value {
    let (Value::Object(first), Value::Object(second)) = (one, other) else {
        return if one.is_object() { one } else { other }.clone();
    };
    let lists = |map: &Map<String, Value>| listed_values(map).is_some();
    if lists(first) != lists(second) {
        return if lists(first) { one } else { other }.clone();
    }
    let is_simple =
        |key: &str| matches!(key, "type" | "description" | "title" | "default") || is_mark(key);
    if first
        .keys()
        .all(|key| is_simple(key) && second.contains_key(key) || !second.contains_key(key))
        && !first.contains_key("additionalProperties")
        && !second.contains_key("additionalProperties")
        && first.get("type") == second.get("type")
    {
        let mut together = second.clone();
        together.extend(first.clone());
        return Value::Object(together);
    }
    if asserted(one)
        .as_object()
        .is_some_and(|it| it.len() > asserted(other).as_object().map_or(0, Map::len))
    {
        return one.clone();
    }
    other.clone()
}

/// The schema that accepts what one of the schemas accepts. A label says in the description for which case the schema is.
pub(crate) fn any_of<'a>(schemas: impl Iterator<Item = (Option<String>, &'a Value)>) -> Value {
    struct Group {
        schema: Value,
        /// The labels and descriptions of the schemas that say the same.
        about: Vec<(Option<String>, Option<String>)>,
    }
    let mut groups: Vec<Group> = Vec::new();
    for (label, schema) in schemas {
        let about = (label, text(schema.get("description")));
        let same = |group: &&mut Group| asserted(&group.schema) == asserted(schema);
        if let Some(group) = groups.iter_mut().find(same) {
            group.about.push(about);
        } else {
            groups.push(Group {
                schema: schema.clone(),
                about: vec![about],
            });
        }
    }
    if groups.len() > 1 && groups.iter().all(|it| is_plain_list(&it.schema)) {
        let about = groups.iter().flat_map(|it| it.about.clone()).collect();
        let values = groups
            .iter()
            .filter_map(|it| listed_values(it.schema.as_object()?));
        let mut all: Vec<Value> = Vec::new();
        for value in values.flatten() {
            if !all.contains(value) {
                all.push(value.clone());
            }
        }
        let schema = json!({"type": "string", "enum": all});
        groups = vec![Group { schema, about }];
    }
    let is_only = groups.len() == 1;
    let forms = groups.into_iter().map(|Group { mut schema, about }| {
        let all_same = about
            .iter()
            .all(|it| it.1 == about.first().and_then(|it| it.1.clone()));
        if let Value::Object(map) = &mut schema
            && !(is_only && all_same)
        {
            map.retain(|key, _| !is_mark(key));
            let mut lines: Vec<String> = about.into_iter().filter_map(line_about).collect();
            lines.dedup();
            match lines.as_slice() {
                [] => map.remove("description"),
                lines => map.insert("description".to_owned(), lines.join("\n").into()),
            };
        }
        schema
    });
    let mut forms: Vec<_> = forms.collect();
    if forms.len() == 1 {
        return forms.remove(0);
    }
    json!({"anyOf": forms})
}

fn line_about((label, description): (Option<String>, Option<String>)) -> Option<String> {
    match (label, description) {
        (Some(label), Some(text)) => Some(format!("{label}: {text}")),
        (label, text) => label.or(text),
    }
}

/// Whether a schema is a list of strings, and nothing else.
fn is_plain_list(schema: &Value) -> bool {
    let is_known = |key: &String| matches!(key.as_str(), "type" | "enum" | "const");
    let Value::Object(map) = asserted(schema) else {
        return false;
    };
    map.keys().all(is_known)
        && listed_values(&map).is_some_and(|values| values.iter().all(Value::is_string))
}

/// The schema without what only describes it.
fn asserted(schema: &Value) -> Value {
    let mut schema = order::without_marks(schema);
    if let Value::Object(map) = &mut schema {
        for keyword in ["title", "description", "default", "examples", "deprecated"] {
            map.remove(keyword);
        }
    }
    schema
}
