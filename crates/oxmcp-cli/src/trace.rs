//! The events of the SDK: shown with `--verbose`, and kept for `check`, which reports what the SDK had to overlook.

use std::{
    fmt::{Debug, Write},
    mem,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    util::SubscriberInitExt,
};

use crate::terminal::Terminal;

/// The maximum number of warnings that are kept.
const MAX_WARNINGS: usize = 100;

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static TERMINAL: OnceLock<Terminal> = OnceLock::new();

/// Sends the events of the process to the terminal.
pub(crate) fn init(terminal: &Terminal) {
    // It is called once.
    let _ = TERMINAL.set(terminal.clone());
    let _ = tracing_subscriber::registry().with(Events).try_init();
}

/// The warnings since the last call.
pub(crate) fn take_warnings() -> Vec<String> {
    mem::take(&mut *warnings())
}

fn warnings() -> MutexGuard<'static, Vec<String>> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Events;

impl<S: Subscriber> Layer<S> for Events {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("oxmcp")
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let text = format!("{}{}", line.message, line.fields);
        let level = *event.metadata().level();
        if level <= Level::WARN {
            let mut warnings = warnings();
            if warnings.len() < MAX_WARNINGS {
                warnings.push(text.clone());
            }
        }
        if let Some(terminal) = TERMINAL.get() {
            terminal.detail(level.as_str(), &text);
        }
    }
}

/// An event as one line.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string never fails.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}
