//! Compiled fast check: the common keywords of a schema, arranged for one pass over JSON text.
//!
//! It only ever accepts values. If it rejects or does not understand a value, the [full](crate::full) validator
//! decides, so a keyword that is missing here costs time but never correctness.

use serde_json::{Map, Value};

use crate::infer::order;

/// The types of JSON values, as bits.
pub(crate) mod kind {
    pub(crate) const NULL: u8 = 1;
    pub(crate) const BOOLEAN: u8 = 1 << 1;
    pub(crate) const INTEGER: u8 = 1 << 2;
    pub(crate) const FRACTION: u8 = 1 << 3;
    pub(crate) const STRING: u8 = 1 << 4;
    pub(crate) const ARRAY: u8 = 1 << 5;
    pub(crate) const OBJECT: u8 = 1 << 6;
    pub(crate) const ALL: u8 = (1 << 7) - 1;
}

/// The maximum number of listed values, which are compared one by one; longer lists are left to the full validator,
/// which uses binary search.
const MAX_LISTED: usize = 64;

/// The number of properties up to which they are compared one by one; with more, binary search is used.
const FEW: usize = 8;

/// The largest integer up to which all integers are exact as `f64`.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

#[derive(Debug)]
pub(crate) enum Check {
    /// Accepts every value.
    Anything,
    /// Accepts no value: the full validator decides.
    Unknown,
    Typed(Box<Typed>),
    /// Accepts a value if the first alternative for its type does.
    AnyOf(Box<[Typed]>),
}

/// The assertions for a value. Assertions for other types than the value's are ignored, as in JSON Schema.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) kinds: u8,
    pub(crate) values: Option<Box<[Value]>>,
    pub(crate) numbers: Option<Numbers>,
    pub(crate) lengths: Option<Span>,
    /// The properties in the order of their declaration.
    pub(crate) properties: Box<[Property]>,
    /// The indices of the properties, sorted by name, if there are many.
    by_name: Box<[usize]>,
    /// The bits of the required properties, by their indices in `properties`.
    pub(crate) required: u64,
    pub(crate) additional: Check,
    pub(crate) items: Check,
    pub(crate) item_count: Option<Span>,
}

#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: Box<str>,
    pub(crate) check: Check,
}

#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) minimum: f64,
    pub(crate) maximum: f64,
    pub(crate) above: f64,
    pub(crate) below: f64,
}

#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) minimum: u64,
    pub(crate) maximum: u64,
}

/// The check that accepts every value.
pub(crate) static ANYTHING: Check = Check::Anything;

impl Check {
    pub(crate) fn compile(schema: &Value) -> Self {
        match schema {
            Value::Bool(true) => Self::Anything,
            Value::Object(map) => compile_object(map).unwrap_or(Self::Unknown),
            _ => Self::Unknown,
        }
    }

    /// The assertions for values of this type. `None` if the check cannot decide.
    #[inline]
    pub(crate) fn typed(&self, kind: u8) -> Option<&Typed> {
        match self {
            Self::Typed(typed) if typed.kinds & kind != 0 => Some(typed),
            Self::AnyOf(forms) => forms.iter().find(|form| form.kinds & kind != 0),
            _ => None,
        }
    }
}

fn compile_object(map: &Map<String, Value>) -> Option<Check> {
    let mut assertions = map
        .keys()
        .filter(|keyword| !is_annotation(keyword))
        .peekable();
    if assertions.peek().is_none() {
        return Some(Check::Anything);
    }
    let Some(forms) = map.get("anyOf") else {
        return compile_typed(map).map(|typed| Check::Typed(Box::new(typed)));
    };
    let kinds = kinds(map)?;
    if assertions.any(|keyword| keyword != "anyOf" && keyword != "type") {
        return None;
    }
    let forms = forms.as_array()?.iter().filter_map(|form| {
        let form = form.as_object()?;
        if form.contains_key("anyOf") {
            return None;
        }
        compile_typed(form).filter(|typed| typed.kinds & !kinds == 0)
    });
    // Only the first alternative for each type is used.
    let mut known = 0;
    let is_asked = |typed: &Typed| {
        let is_new = typed.kinds & !known != 0;
        known |= typed.kinds;
        is_new
    };
    Some(Check::AnyOf(forms.filter(is_asked).collect()))
}

fn compile_typed(map: &Map<String, Value>) -> Option<Typed> {
    let properties = properties(map)?;
    let mut typed = Typed {
        kinds: kinds(map)?,
        values: None,
        numbers: None,
        lengths: None,
        by_name: by_name(&properties),
        properties,
        required: 0,
        additional: Check::Anything,
        items: Check::Anything,
        item_count: None,
    };
    for (keyword, value) in map {
        match keyword.as_str() {
            "type" | "properties" => {}
            "required" => typed.require(value)?,
            "additionalProperties" => typed.additional = Check::compile(value),
            "items" => typed.items = Check::compile(value),
            "enum" if map.contains_key("const") => return None,
            "enum" => typed.values = Some(scalars(value.as_array()?)?),
            "const" => typed.values = Some(scalars(std::slice::from_ref(value))?),
            "minimum" => typed.numbers().minimum = limit(value)?,
            "maximum" => typed.numbers().maximum = limit(value)?,
            "exclusiveMinimum" => typed.numbers().above = limit(value)?,
            "exclusiveMaximum" => typed.numbers().below = limit(value)?,
            "minLength" => span(&mut typed.lengths).minimum = value.as_u64()?,
            "maxLength" => span(&mut typed.lengths).maximum = value.as_u64()?,
            "minItems" => span(&mut typed.item_count).minimum = value.as_u64()?,
            "maxItems" => span(&mut typed.item_count).maximum = value.as_u64()?,
            annotation if is_annotation(annotation) => {}
            _ => return None,
        }
    }
    Some(typed)
}

impl Typed {
    fn numbers(&mut self) -> &mut Numbers {
        self.numbers.get_or_insert(Numbers {
            minimum: f64::NEG_INFINITY,
            maximum: f64::INFINITY,
            above: f64::NEG_INFINITY,
            below: f64::INFINITY,
        })
    }

    fn require(&mut self, names: &Value) -> Option<()> {
        for name in names.as_array()? {
            let (index, _) = self.find(name.as_str()?, 0)?;
            self.required |= bit(index)?;
        }
        Some(())
    }

    /// The property of this name and its index. `likely` is the index that is tried first.
    #[inline]
    pub(crate) fn find(&self, name: &str, likely: usize) -> Option<(usize, &Property)> {
        if let Some(property) = self.properties.get(likely)
            && *property.name == *name
        {
            return Some((likely, property));
        }
        self.search(name)
    }

    fn search(&self, name: &str) -> Option<(usize, &Property)> {
        if self.by_name.is_empty() {
            let mut properties = self.properties.iter().enumerate();
            return properties.find(|(_, property)| *property.name == *name);
        }
        let name_at = |place: &usize| self.properties.get(*place).map(|it| &*it.name);
        let found = self
            .by_name
            .binary_search_by(|it| name_at(it).cmp(&Some(name)));
        let place = *self.by_name.get(found.ok()?)?;
        Some((place, self.properties.get(place)?))
    }
}

/// The bit of the property with this index; properties beyond the width of the bit set have none.
#[inline]
pub(crate) fn bit(place: usize) -> Option<u64> {
    1_u64.checked_shl(u32::try_from(place).ok()?)
}

/// The properties in the order of their declaration.
fn properties(map: &Map<String, Value>) -> Option<Box<[Property]>> {
    let Some(schemas) = map.get("properties") else {
        return Some(Box::default());
    };
    let schemas = order::in_order(schemas.as_object()?, map.get("required"));
    let properties = schemas.into_iter().map(|(name, schema)| Property {
        name: name.as_str().into(),
        check: Check::compile(schema),
    });
    Some(properties.collect())
}

fn by_name(properties: &[Property]) -> Box<[usize]> {
    if properties.len() <= FEW {
        return Box::default();
    }
    let mut places: Vec<_> = (0..properties.len()).collect();
    places.sort_by_key(|place| properties.get(*place).map(|it| &it.name));
    places.into()
}

fn kinds(map: &Map<String, Value>) -> Option<u8> {
    match map.get("type") {
        None => Some(kind::ALL),
        Some(Value::String(name)) => kind_of(name),
        Some(Value::Array(names)) => names
            .iter()
            .try_fold(0, |kinds, name| Some(kinds | kind_of(name.as_str()?)?)),
        Some(_) => None,
    }
}

pub(crate) fn kind_of(name: &str) -> Option<u8> {
    Some(match name {
        "null" => kind::NULL,
        "boolean" => kind::BOOLEAN,
        "integer" => kind::INTEGER,
        "number" => kind::INTEGER | kind::FRACTION,
        "string" => kind::STRING,
        "array" => kind::ARRAY,
        "object" => kind::OBJECT,
        _ => return None,
    })
}

fn scalars(values: &[Value]) -> Option<Box<[Value]>> {
    let are_scalars = values
        .iter()
        .all(|value| !value.is_array() && !value.is_object());
    (are_scalars && values.len() <= MAX_LISTED).then(|| values.into())
}

fn limit(value: &Value) -> Option<f64> {
    value.as_f64().filter(|limit| limit.abs() <= MAX_EXACT)
}

fn span(span: &mut Option<Span>) -> &mut Span {
    span.get_or_insert(Span {
        minimum: 0,
        maximum: u64::MAX,
    })
}

impl Numbers {
    pub(crate) fn accepts(&self, number: f64) -> bool {
        number.abs() <= MAX_EXACT
            && number >= self.minimum
            && number <= self.maximum
            && (number > self.above || self.above == f64::NEG_INFINITY)
            && (number < self.below || self.below == f64::INFINITY)
    }
}

impl Span {
    pub(crate) fn accepts(&self, count: usize) -> bool {
        let count = count as u64;
        count >= self.minimum && count <= self.maximum
    }
}

/// Keywords without effect on validity. Formats are annotations here, in every dialect.
fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "format"
            | "$schema"
            | "$comment"
            | "$defs"
            | "definitions"
    ) || keyword.starts_with("x-")
        || order::is_mark(keyword)
}
