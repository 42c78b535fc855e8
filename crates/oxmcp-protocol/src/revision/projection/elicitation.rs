//! Projection of elicitation requests and results.

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    revision::{projection::project::Project, version::Revision},
    types::elicitation::{
        params::{ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams},
        schema::{ElicitSchema, PrimitiveSchema, StringSchema},
        select::{EnumOptions, MultiSelectSchema, SingleSelectSchema},
    },
    values::json::JsonObject,
};

impl Project for ElicitParams {
    fn project(&mut self, to: Revision) {
        match self {
            Self::Form(form) => form.project(to),
            Self::Url(url) => url.project(to),
            Self::Unknown(_) => {}
        }
    }
}

impl Project for ElicitFormParams {
    fn project(&mut self, to: Revision) {
        self.requested_schema.project(to);
        if !to.has_tasks() {
            self.task = None;
        }
    }
}

impl Project for ElicitUrlParams {
    fn project(&mut self, to: Revision) {
        if !to.has_elicitation_ids() {
            self.elicitation_id = None;
        }
        if !to.has_tasks() {
            self.task = None;
        }
    }
}

impl Project for ElicitResult {
    fn project(&mut self, to: Revision) {
        if !to.has_rich_forms()
            && let Some(content) = &self.content
            && let Some(joined) = join_lists(content)
        {
            self.content = Some(joined);
        }
    }
}

/// Joins lists in the content by commas, for revisions in which values cannot be lists. `None` if it has
/// no lists.
fn join_lists(content: &RawValue) -> Option<Box<RawValue>> {
    if !content.get().contains('[') {
        return None;
    }
    let mut content: JsonObject = serde_json::from_str(content.get()).ok()?;
    for field in content.values_mut() {
        if let Value::Array(values) = field {
            let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            *field = values.join(", ").into();
        }
    }
    to_raw_value(&content).ok()
}

impl Project for ElicitSchema {
    fn project(&mut self, to: Revision) {
        if to.has_rich_forms() {
            return;
        }
        self.dialect = None;
        for field in self.properties.values_mut() {
            match field {
                PrimitiveSchema::String(field) => field.default = None,
                PrimitiveSchema::Number(field) => field.default = None,
                PrimitiveSchema::SingleSelect(field) => plain_select(field),
                PrimitiveSchema::MultiSelect(select) => *field = listed(select).into(),
                PrimitiveSchema::Boolean(_) | PrimitiveSchema::Unknown(_) => {}
            }
        }
    }
}

/// Converts titled options to values and names in two lists, the form of older revisions.
fn plain_select(field: &mut SingleSelectSchema) {
    field.default = None;
    if let EnumOptions::Titled(options) = &mut field.options {
        let (values, names) = options
            .drain(..)
            .map(|option| (option.value, option.title))
            .unzip();
        field.options = EnumOptions::Named { values, names };
    }
}

/// Replaces a multiple choice by a text field, for revisions without multiple choice.
fn listed(select: &mut MultiSelectSchema) -> StringSchema {
    let values: Vec<&str> = select.options.values().collect();
    let hint = format!("Any of these, separated by commas: {}", values.join(", "));
    let description = match select.description.take() {
        Some(description) => format!("{description}\n{hint}"),
        None => hint,
    };
    StringSchema {
        title: select.title.take(),
        ..StringSchema::default().with_description(description)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn old_forms_have_no_lists_but_separate_titles() {
        let colors = EnumOptions::titled([("r", "Red"), ("g", "Green")]);
        let mut old = ElicitSchema::new()
            .required("one", SingleSelectSchema::new(colors.clone()))
            .required("some", MultiSelectSchema::new(colors));
        old.project(Revision::V2025_06_18);
        let old: Value = serde_json::from_str(&serde_json::to_string(&old).unwrap()).unwrap();
        assert_eq!(
            old["properties"]["one"],
            json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]})
        );
        assert_eq!(old["properties"]["some"]["type"], "string");
    }
}
