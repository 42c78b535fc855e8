//! Events of [`tracing`] as the `data` of log messages.

use std::{error::Error as StdError, fmt};

use serde_json::Value;
use tracing::{
    Event, Level,
    field::{Field, Visit},
};

use crate::protocol::{JsonObject, LoggingLevel};

/// The level of the protocol that stands for one of `tracing`.
pub(super) fn level_of(level: &Level) -> LoggingLevel {
    match *level {
        Level::ERROR => LoggingLevel::Error,
        Level::WARN => LoggingLevel::Warning,
        Level::INFO => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    }
}

/// The event as an object: its message as `msg`, and its fields by their names.
pub(super) fn data_of(event: &Event<'_>) -> JsonObject {
    let mut record = Record::default();
    event.record(&mut record);
    let message = record.message.unwrap_or_default();
    record.fields.insert("msg".into(), message.into());
    record.fields
}

#[derive(Default)]
struct Record {
    message: Option<String>,
    fields: JsonObject,
}

impl Record {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().into(), value.into());
    }
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = Some(format!("{value:?}")),
            _ => self.set(field, format!("{value:?}")),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = Some(value.to_owned()),
            _ => self.set(field, value),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn StdError + 'static)) {
        self.set(field, value.to_string());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // What is no number cannot be said in JSON.
        match Value::from(value) {
            Value::Null => self.set(field, value.to_string()),
            number => self.set(field, number),
        }
    }
}
