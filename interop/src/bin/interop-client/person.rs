//! The user of the client: answers to questions, and a record of notifications.

use std::{
    collections::VecDeque,
    env, io,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use oxmcp::{
    Client, ClientSession, Error,
    http::MemoryTokenStore,
    protocol::{
        CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitResult,
        LoggingMessageParams, Root, SamplingContent,
    },
};
use tokio::sync::Notify;

/// A user who answers questions and records notifications. Clones share the same state.
#[derive(Clone, Default)]
pub(crate) struct Person(Arc<Inner>);

#[derive(Default)]
struct Inner {
    answers: Mutex<VecDeque<ElicitResult>>,
    heard: Mutex<Vec<LoggingMessageParams>>,
    /// Signaled when the server notifies that its tools have changed.
    changed: Notify,
    /// Signaled when the server logs a message.
    logged: Notify,
    logins: AtomicUsize,
    store: MemoryTokenStore,
}

impl Person {
    /// Logs in, with a browser that continues by itself.
    pub(crate) fn log_in(&self, url: &str) -> io::Result<()> {
        self.0.logins.fetch_add(1, Ordering::Relaxed);
        browse(url).map(drop)
    }

    /// The number of logins of the user.
    pub(crate) fn logins(&self) -> usize {
        self.0.logins.load(Ordering::Relaxed)
    }

    /// The store of the user's tokens.
    pub(crate) fn store(&self) -> &MemoryTokenStore {
        &self.0.store
    }

    /// A client that asks this user.
    pub(crate) fn client(&self) -> Client {
        let (asked, hearing, told) = (self.clone(), self.clone(), self.clone());
        Client::new("interop-client", "1.0.0")
            .on_elicit(move |form: ElicitFormParams| {
                let answer = asked.answers().pop_front();
                async move {
                    answer.ok_or_else(|| {
                        Error::internal(format!("unexpected question: {:?}", form.message))
                    })
                }
            })
            .on_sample(|asked: CreateMessageParams| async move { repeat(&asked) })
            .roots([Root::new("file:///home/moon").with_name("moon")])
            .on_tools_changed(move |_session: ClientSession| {
                told.0.changed.notify_one();
                std::future::ready(())
            })
            .on_log(move |message: LoggingMessageParams, _session| {
                hearing.heard().push(message);
                hearing.0.logged.notify_one();
                std::future::ready(())
            })
    }

    /// Sets the answers to the next questions.
    pub(crate) fn will_answer(&self, answers: Vec<ElicitResult>) {
        *self.answers() = answers.into();
    }

    /// The number of answers that no question has used yet.
    pub(crate) fn unasked(&self) -> usize {
        self.answers().len()
    }

    /// Waits until the server notifies that its tools have changed.
    pub(crate) async fn hears_of_change(&self) {
        self.0.changed.notified().await;
    }

    /// Waits for a log message that satisfies `is_it`.
    pub(crate) async fn hears(&self, is_it: impl Fn(&LoggingMessageParams) -> bool) {
        while !self.heard().iter().any(&is_it) {
            self.0.logged.notified().await;
        }
    }

    fn answers(&self) -> MutexGuard<'_, VecDeque<ElicitResult>> {
        self.0
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) -> MutexGuard<'_, Vec<LoggingMessageParams>> {
        self.0.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer of the model, which repeats its input.
fn repeat(asked: &CreateMessageParams) -> CreateMessageResult {
    let pieces = asked.messages.iter().flat_map(|message| &message.content);
    let said: Vec<_> = pieces.filter_map(SamplingContent::as_text).collect();
    CreateMessageResult::new("parrot", format!("because of {:?}", said.join(" ")))
}

/// Starts the browser in the variable `BROWSER`.
pub(crate) fn browse(url: &str) -> io::Result<Child> {
    let browser = env::var_os("BROWSER")
        .ok_or_else(|| io::Error::other("the variable BROWSER is not set"))?;
    Command::new(browser).arg(url).stdout(Stdio::null()).spawn()
}
