//! Layer for [`tracing`] that sends the events of handlers to the clients whose requests they serve.

use std::{cell::Cell, error::Error as StdError, fmt};

use oxmcp_protocol::{
    JsonObject, LoggingLevel, LoggingMessageParams, Notification, internal::write_notification,
    method::LoggingMessage,
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
use crate::{server::dispatch::span, session::connection::RequestContext};

thread_local! {
    /// Whether this thread is about to send an event: what happens on the way is not sent.
    static SENDING: Cell<bool> = const { Cell::new(false) };
}

/// An event is being sent on this thread, until this is dropped: values that panic while they are shown are no reason to
/// stay silent from then on.
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

/// A layer for a [`tracing`] subscriber that sends events to clients, as log messages: each to the client whose request is
/// being served where it happens. (With the Cargo feature `tracing-subscriber`.)
///
/// An event that happens while no request is served is not sent. `data` is an object with the event's message as `msg`
/// and its fields; `logger` is the event's target; `trace` becomes
/// [`LoggingLevel::Debug`], and `warn` becomes `Warning`. As with
/// [`RequestContext::log`](crate::RequestContext::log), the server must have declared [`logging`](crate::Server::logging),
/// the client must want messages of the level, and the rate is limited. Logging never waits: while the client is
/// slow, events are dropped and counted. Events of this crate itself are not sent. As progress, what is sent does not pass
/// through middleware.
///
/// Requests are known by their spans, which are of the level `info`, with a target in `oxmcp`: a filter must let them pass. Work
/// that a handler spawns belongs to the request if it is
/// [in the span](https://docs.rs/tracing/latest/tracing/trait.Instrument.html#method.in_current_span); after the answer it is
/// sent to legacy clients only, whose sessions take messages at all times.
///
/// All that is logged while a request is served can reach its client, by libraries too: use a filter of the layer's own.
///
/// ```
/// use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt};
///
/// let mine = Targets::new().with_target("library", tracing::Level::INFO).with_target("oxmcp", tracing::Level::INFO);
/// let subscriber = tracing_subscriber::registry().with(oxmcp::logging::layer().with_filter(mine));
/// # let _ = subscriber;
/// ```
#[must_use]
pub fn layer() -> LogLayer {
    span::install_layer();
    LogLayer { logger: None }
}

impl LogLayer {
    /// The `logger` of all messages, in place of the targets of the events.
    #[must_use]
    pub fn logger(mut self, name: impl Into<String>) -> Self {
        self.logger = Some(name.into());
        self
    }

    fn message(&self, event: &Event<'_>) -> Option<LoggingMessageParams> {
        let level = level_of(event.metadata().level());
        let message = LoggingMessageParams::new(level, &data_of(event)).ok()?;
        let logger = self.logger.as_deref();
        Some(message.with_logger(logger.unwrap_or_else(|| event.metadata().target())))
    }

    fn send(&self, cx: &RequestContext, event: &Event<'_>) {
        let level = level_of(event.metadata().level());
        let Some(audience) = Audience::of(cx).filter(|audience| audience.hears(level)) else {
            return;
        };
        let Some(message) = self.message(event) else {
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
        if metadata.name() != span::NAME || metadata.target() != span::TARGET {
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

/// The level of the protocol that stands for one of `tracing`.
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
