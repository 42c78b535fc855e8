//! Layer for [`tracing`] that sends a handler's events to the client of its request.

use std::{cell::Cell, error::Error as StdError, fmt};

use oxmcp_protocol::{
    JsonObject, LoggingLevel, LoggingMessageParams, Notification, internal::write_notification,
    method::LoggingMessage,
};
use serde::{
    Deserialize,
    de::{
        IntoDeserializer,
        value::{Error as NoLevel, StrDeserializer},
    },
};
use serde_json::Value;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    layer::{Context, Layer},
    registry::LookupSpan,
};

use super::message::{Admitted, Audience};
use crate::session::{connection::RequestContext, trace::span};

thread_local! {
    /// Whether this thread is sending an event. Nested events are not sent.
    static SENDING: Cell<bool> = const { Cell::new(false) };
}

/// Guard that marks this thread as sending an event until it is dropped, even if formatting a value panics.
struct Sending;

impl Sending {
    fn begin() -> Option<Self> {
        (!SENDING.replace(true)).then_some(Self)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        SENDING.set(false);
    }
}

/// The request that a span belongs to, kept with the span.
struct OfRequest(RequestContext);

/// A layer for a [`tracing`] subscriber that sends events to clients, as log messages. Made by [`layer`].
pub struct LogLayer {
    logger: Option<String>,
}

/// Returns a layer for a [`tracing`] subscriber that sends a handler's events to the client of its request, as log messages.
/// (With the Cargo feature `tracing-subscriber`.)
///
/// Events outside of requests are not sent. `data` is an object with the event's message as `msg` (or as `message`, if a field
/// is called `msg`) and the event's fields. `logger` is the event's target. `trace` becomes [`LoggingLevel::Debug`], and `warn`
/// becomes `Warning`. For the levels that `tracing` lacks (`notice`, `critical`, `alert` and `emergency`), a field `level`
/// overrides the event's level; likewise, a field `logger` overrides its target.
///
/// As with [`RequestContext::log`](crate::RequestContext::log), the server must have declared
/// [`logging`](crate::Server::logging), the client must want messages of the level, and the rate is limited. Logging never
/// waits: while the client is slow, events are dropped and counted. Events of this crate are not sent. Like progress
/// notifications, the messages bypass middleware.
///
/// The layer identifies requests by their spans, which have the level `info` and a target in `oxmcp`: a filter must let them
/// pass. Work that a handler spawns belongs to the request if it is
/// [in the span](https://docs.rs/tracing/latest/tracing/trait.Instrument.html#method.in_current_span). Events after the response
/// go only to legacy clients, whose sessions accept messages at any time.
///
/// All events during a request can reach its client, including those of libraries: use a filter for this layer.
///
/// ```
/// use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt};
///
/// let mine = Targets::new().with_target("library", tracing::Level::INFO).with_target("oxmcp", tracing::Level::INFO);
/// let subscriber = tracing_subscriber::registry().with(oxmcp::logging::layer().with_filter(mine));
/// # let _ = subscriber;
/// tracing::error!(level = "emergency", logger = "reactor", "it melts");
/// ```
#[must_use]
pub fn layer() -> LogLayer {
    span::install_layer();
    LogLayer { logger: None }
}

impl LogLayer {
    /// Sets the `logger` of all messages, instead of the targets of the events.
    #[must_use]
    pub fn logger(mut self, name: impl Into<String>) -> Self {
        self.logger = Some(name.into());
        self
    }

    fn message(&self, level: LoggingLevel, event: &Event<'_>) -> Option<LoggingMessageParams> {
        let mut data = data_of(event);
        let is_level = |value: &mut Value| value.as_str().and_then(level_named) == Some(level);
        if data.get_mut("level").is_some_and(is_level) {
            data.remove("level");
        }
        let logger = match data.get("logger") {
            Some(Value::String(own)) => Some(own.clone()),
            _ => None,
        };
        if logger.is_some() {
            data.remove("logger");
        }
        let logger = logger.or_else(|| self.logger.clone());
        let message = LoggingMessageParams::new(level, &data).ok()?;
        Some(message.with_logger(logger.unwrap_or_else(|| event.metadata().target().to_owned())))
    }

    fn send(&self, cx: &RequestContext, event: &Event<'_>) {
        let level = level_in(event);
        let Some(audience) = Audience::of(cx).filter(|audience| audience.hears(level)) else {
            return;
        };
        let Some(message) = self.message(level, event) else {
            return;
        };
        let Some(Admitted { messages, dropped }) = audience.admit(message) else {
            return;
        };
        let mut written = Vec::new();
        for message in messages {
            if write_notification(&mut written, LoggingMessage::NAME, &message).is_err() {
                return;
            }
        }
        if !cx.try_notify(&written) {
            audience.drop(dropped + 1);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let metadata = attributes.metadata();
        if metadata.name() != span::INBOUND || metadata.target() != span::TARGET {
            return;
        }
        let request = span::request_of_new_span();
        if let (Some(request), Some(span)) = (request, cx.span(id)) {
            span.extensions_mut().replace(OfRequest(request));
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        if event.metadata().target().split("::").next() == Some("oxmcp") {
            return;
        }
        let Some(_sending) = Sending::begin() else {
            return;
        };
        let scope = cx.event_scope(event);
        let request = scope.into_iter().flatten().find_map(|span| {
            let extensions = span.extensions();
            extensions.get::<OfRequest>().map(|it| it.0.clone())
        });
        if let Some(request) = request {
            self.send(&request, event);
        }
    }
}

impl fmt::Debug for LogLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLayer")
            .field("logger", &self.logger)
            .finish()
    }
}

/// The protocol level for a level of `tracing`.
fn level_of(level: &Level) -> LoggingLevel {
    match *level {
        Level::ERROR => LoggingLevel::Error,
        Level::WARN => LoggingLevel::Warning,
        Level::INFO => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    }
}

/// The event as an object: its message as `msg`, and its fields by their names.
fn data_of(event: &Event<'_>) -> JsonObject {
    let mut record = Record::default();
    event.record(&mut record);
    // If the event has a field `msg`, that field keeps its name.
    let name = if record.fields.contains_key("msg") {
        "message"
    } else {
        "msg"
    };
    let message = record.message.unwrap_or_default();
    record.fields.insert(name.into(), message.into());
    record.fields
}

/// The level of an event: that of its field `level`, if it names a protocol level, or else the event's own.
fn level_in(event: &Event<'_>) -> LoggingLevel {
    let metadata = event.metadata();
    let level = metadata.fields().field("level").and_then(|level| {
        let mut name = LevelField {
            field: level,
            value: None,
        };
        event.record(&mut name);
        name.value
    });
    level.unwrap_or_else(|| level_of(metadata.level()))
}

/// The value of the field `level`.
struct LevelField {
    field: Field,
    value: Option<LoggingLevel>,
}

impl Visit for LevelField {
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if *field == self.field {
            self.value = level_named(value);
        }
    }
}

/// The protocol level with this name. `tracing` lacks `notice`, `critical`, `alert` and `emergency`.
fn level_named(name: &str) -> Option<LoggingLevel> {
    let name: StrDeserializer<'_, NoLevel> = name.into_deserializer();
    LoggingLevel::deserialize(name).ok()
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
        // JSON has no NaN and no infinities.
        match Value::from(value) {
            Value::Null => self.set(field, value.to_string()),
            number => self.set(field, number),
        }
    }
}
