//! Targets of `oxmcp-schema`.

use oxmcp_schema::Schema;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

/// The first line is a schema, against which the rest is validated: input that is accepted in one pass is valid, and is read as
/// serde_json reads it.
pub fn arguments(data: &[u8]) {
    let Some((schema, instance)) = str::from_utf8(data).ok().and_then(|it| it.split_once('\n'))
    else {
        return;
    };
    let schema = serde_json::from_str::<&RawValue>(schema).ok();
    let Some(Ok(schema)) = schema.map(Schema::from_raw) else {
        return;
    };
    let Ok(instance) = serde_json::from_str::<&RawValue>(instance) else {
        return;
    };
    let expected = serde_json::from_str::<Value>(instance.get()).ok();
    let read = schema.read::<Value>(instance.into()).map(|read| read.value);
    assert!(read.is_none() || read == expected);
    let is_accepted = read.is_some() || schema.accepts_fast(instance);
    let outcome = schema.validate_by_full(instance);
    assert!(
        !is_accepted || expected.is_none() || outcome.is_ok(),
        "{outcome:?}"
    );
}

/// The first line is a pattern, against which the rest is matched.
pub fn schema_pattern(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (pattern, subject) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(schema) = Schema::from_json(json!({"type": "string", "pattern": pattern})) else {
        return;
    };
    if let Ok(subject) = to_raw_value(subject) {
        let _ = schema.validate(&subject);
    }
}
