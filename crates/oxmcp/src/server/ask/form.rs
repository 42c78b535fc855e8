//! Elicitation form for a type, derived from the type's JSON schema.

use std::{any::TypeId, collections::HashMap, sync::Arc};

use oxmcp_json::Text;
use oxmcp_protocol::{
    BooleanSchema, ElicitSchema, EnumOptions, JsonObject, MultiSelectSchema, NumberKind,
    NumberSchema, OrderedMap, PrimitiveSchema, SingleSelectSchema, StringFormat, StringSchema,
};
use oxmcp_schema::{JsonSchema, Schema, internal::refusal};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{
    error::{Error, Result},
    sync::RwLock,
};

/// The form that asks for a type.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) schema: ElicitSchema,
    /// The schema of the type, which can express more than a form.
    whole: Schema,
}

/// The forms made so far, by their types: inferring a form costs more than asking. The number of types in a program is fixed,
/// which bounds the map.
static FORMS: RwLock<Option<HashMap<TypeId, Made>>> = RwLock::new(None);

type Made = Result<Arc<Form>, Arc<str>>;

impl Form {
    /// The form that asks for a `T`.
    ///
    /// # Errors
    /// If the type cannot be a form; the error names the field.
    pub(crate) fn of<T: JsonSchema + 'static>() -> Result<Arc<Self>> {
        let id = TypeId::of::<T>();
        let forms = FORMS.read();
        let made = forms.as_ref().and_then(|forms| forms.get(&id)).cloned();
        drop(forms);
        let made = made.unwrap_or_else(|| {
            let made: Made = Self::make(Schema::of::<T>())
                .map(Arc::new)
                .map_err(|problem| format!("{}: {problem}", T::schema_name()).into());
            let mut forms = FORMS.write();
            let forms = forms.get_or_insert_default();
            forms.insert(id, made.clone());
            made
        });
        made.map_err(|problem| Error::misuse(format!("cannot make a form for {problem}")))
    }

    fn make(whole: Schema) -> Result<Self, String> {
        /// The members of an object's schema. The properties are read in their order.
        #[derive(Deserialize)]
        struct Object {
            properties: OrderedMap<JsonObject>,
            #[serde(default)]
            required: Vec<String>,
        }
        let object: Object = serde_json::from_str(whole.as_raw().get())
            .ok()
            .filter(|_| whole.is_object())
            .ok_or("not a struct with named fields; a form has a field for each")?;
        let mut schema = ElicitSchema::new();
        for (name, property) in object.properties {
            let field = field(property).map_err(|problem| {
                format!(
                    "field {name:?} {problem}; use text, numbers, bool, enums of plain names, or lists of such enums"
                )
            })?;
            schema = if object.required.contains(&name) {
                schema.required(name, field)
            } else {
                schema.optional(name, field)
            };
        }
        Ok(Self { schema, whole })
    }

    /// Validates an answer that matches the form against the schema of the type.
    pub(crate) fn check(&self, content: &str) -> Result<(), String> {
        let content =
            serde_json::from_str::<&RawValue>(content).map_err(|error| error.to_string())?;
        self.whole
            .validate(content)
            .map_err(|violations| violations.to_string())
    }

    /// Describes the error of a type that cannot be read from an answer, although the answer is valid.
    pub(crate) fn refusal<T: DeserializeOwned>(
        &self,
        content: &RawValue,
        error: &serde_json::Error,
    ) -> String {
        refusal::<T>(Some(&self.whole), Text::from(content), error).to_string()
    }
}

/// The members of a field's schema.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Property {
    #[serde(rename = "type")]
    kind: Option<String>,
    title: Option<String>,
    description: Option<String>,
    default: Option<Value>,
    r#enum: Option<Vec<Value>>,
    any_of: Option<Vec<JsonObject>>,
    pattern: Option<String>,
    format: Option<String>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    items: Option<JsonObject>,
    min_items: Option<u64>,
    max_items: Option<u64>,
}

fn read(property: JsonObject) -> Result<Property, String> {
    Property::deserialize(Value::Object(property))
        .map_err(|error| format!("has an unsupported schema: {error}"))
}

fn field(property: JsonObject) -> Result<PrimitiveSchema, String> {
    let is_reference = property.contains_key("$ref");
    let property = read(property)?;
    if let Some(options) = options(&property) {
        return Ok(single(property, options).into());
    }
    match property.kind.as_deref() {
        Some("string") if property.r#enum.is_none() => Ok(text(property).into()),
        Some("number") => Ok(number(property, NumberKind::Number).into()),
        Some("integer") => Ok(number(property, NumberKind::Integer).into()),
        Some("boolean") => Ok(boolean(property).into()),
        Some("array") => list(property),
        Some("object") => Err("is an object".into()),
        _ if is_reference => Err("has a recursive type".into()),
        _ => Err("accepts several types".into()),
    }
}

fn text(property: Property) -> StringSchema {
    let format = property.format.as_deref().map(StringFormat::from);
    let mut schema = StringSchema::default();
    schema.title = property.title;
    schema.description = property.description;
    schema.min_length = property.min_length;
    schema.max_length = property.max_length;
    schema.pattern = property.pattern;
    // Forms support four formats; the schema of the type checks the others when the answer is read.
    schema.format = format.filter(|format| !matches!(format, StringFormat::Unknown(_)));
    schema.default = property.default.as_ref().and_then(string);
    schema
}

fn number(property: Property, kind: NumberKind) -> NumberSchema {
    let mut schema = NumberSchema::default();
    schema.kind = kind;
    schema.title = property.title;
    schema.description = property.description;
    schema.minimum = property.minimum;
    schema.maximum = property.maximum;
    schema.default = property.default.as_ref().and_then(Value::as_f64);
    schema
}

fn boolean(property: Property) -> BooleanSchema {
    let mut schema = BooleanSchema::default();
    schema.title = property.title;
    schema.description = property.description;
    schema.default = property.default.as_ref().and_then(Value::as_bool);
    schema
}

fn single(property: Property, options: EnumOptions) -> SingleSelectSchema {
    let mut schema = SingleSelectSchema::default();
    schema.title = property.title;
    schema.description = property.description;
    schema.options = options;
    schema.default = property.default.as_ref().and_then(string);
    schema
}

fn list(property: Property) -> Result<PrimitiveSchema, String> {
    let items = property.items.map(read).transpose()?;
    let options = items.as_ref().and_then(options);
    let options = options.ok_or("is a list of something other than an enum")?;
    let default = property.default.as_ref().and_then(Value::as_array);
    let mut schema = MultiSelectSchema::default();
    schema.title = property.title;
    // The description of the enum is the default of the field's description.
    schema.description = property
        .description
        .or_else(|| items.and_then(|it| it.description));
    schema.min_items = property.min_items;
    schema.max_items = property.max_items;
    schema.options = options;
    schema.default = default.map(|values| values.iter().filter_map(string).collect());
    Ok(schema.into())
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The names of an enum, with their titles if there are any.
fn options(property: &Property) -> Option<EnumOptions> {
    if property.kind.as_deref() == Some("string")
        && let Some(names) = &property.r#enum
    {
        let names: Option<Vec<String>> = names.iter().map(string).collect();
        return names.map(EnumOptions::Untitled);
    }
    let forms = property.any_of.as_ref()?;
    let titled: Option<Vec<(String, String)>> = forms.iter().map(titled).collect();
    titled.map(EnumOptions::titled)
}

fn titled(form: &JsonObject) -> Option<(String, String)> {
    let [name] = form.get("enum")?.as_array()?.as_slice() else {
        return None;
    };
    let name = string(name)?;
    let title = ["title", "description"]
        .iter()
        .find_map(|key| form.get(*key));
    let title = title.and_then(string).unwrap_or_else(|| name.clone());
    Some((name, title))
}
