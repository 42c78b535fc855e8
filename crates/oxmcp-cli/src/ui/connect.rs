//! Connects to a server for the page: its questions, logs, changes and messages become events.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use oxmcp::{
    Client, ClientSession, FeatureKind, Revision,
    protocol::{
        CreateMessageParams, ElicitFormParams, ElicitUrlParams, LoggingLevel, LoggingMessageParams,
    },
    tasks::ClientTasks,
    transport::Logging,
};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::{
    args::Connection,
    failure::{Failure, Result},
    session,
    target::Server,
    terminal::Terminal,
    ui::{events::Events, questions::Questions},
};

/// The bytes of a message that the page shows.
const MAX_MESSAGE: usize = 256 << 10;

/// The bytes of a line of standard error, or of a log message, that the page shows.
const MAX_LOG: usize = 16 << 10;

/// The bytes of the name of a logger, or of the ID of a question, that the page shows.
const MAX_NAME: usize = 256;

/// Everything that a session of the page needs.
pub(crate) struct Connector {
    pub events: Arc<Events>,
    pub questions: Arc<Questions>,
    pub options: Connection,
    pub terminal: Terminal,
}

/// A session, and the resources that are watched in it.
pub(crate) struct Connected {
    pub session: ClientSession,
    pub facts: Value,
    pub watches: Mutex<BTreeMap<String, AbortHandle>>,
}

impl Connected {
    /// Stops watching resources.
    pub(crate) fn end_watches(&self) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, watch) in std::mem::take(&mut *watches) {
            watch.abort();
        }
    }
}

impl Connector {
    /// Connects to the server, with one revision or with all.
    ///
    /// # Errors
    /// The server cannot be reached, does not start, or needs a login.
    pub(crate) async fn connect(
        &self,
        id: usize,
        server: &Server,
        revision: Option<&str>,
    ) -> Result<Connected> {
        let begun = self.events.elapsed();
        let client = self.client(id, revision)?;
        let events = Arc::clone(&self.events);
        let terminal = self.terminal.observed(move |source, line| {
            let line = cut(line, MAX_LOG);
            events.push("stderr", Some(id), json!({"source": source, "text": line}));
        });
        let transport = server.transport(&self.options, &terminal)?;
        let events = Arc::clone(&self.events);
        let logged = Logging::with(transport, move |line| {
            let (direction, text) = line.split_once(' ').unwrap_or((line, ""));
            let message = json!({"isSent": direction == "->", "text": text});
            events.push("wire", Some(id), message);
            terminal.wire(line);
        });
        let connected = client.connect(logged.max_bytes(MAX_MESSAGE)).await;
        let of_server = |error| Failure::from(error).of_server(&server.label);
        let session = connected.map_err(of_server)?;
        // A session with a single revision may have sent nothing yet, and the facts are not known.
        session
            .offers(FeatureKind::Tools)
            .await
            .map_err(of_server)?;
        let took = self.events.elapsed().saturating_sub(begun);
        Ok(Connected {
            facts: facts(&session, took.as_millis()),
            session,
            watches: Mutex::default(),
        })
    }

    fn client(&self, id: usize, revision: Option<&str>) -> Result<Client> {
        let mut client = session::plain(&self.options)
            .tasks()
            .extension(oxmcp_apps::host::extension())
            .without_cache()
            .log_level(LoggingLevel::Info);
        if let Some(date) = revision {
            let known = Revision::ALL.into_iter().find(|it| it.as_str() == date);
            let known =
                known.ok_or_else(|| Failure::usage(format!("unknown revision {date:?}")))?;
            client = client.revisions([known]);
        }
        Ok(self.reporting(self.asking(client, id), id))
    }

    /// Sends the questions of the server to the page.
    fn asking(&self, client: Client, id: usize) -> Client {
        let [forms, pages, samples] = [(); 3].map(|()| Arc::clone(&self.questions));
        client
            .on_elicit(move |form: ElicitFormParams| {
                let questions = Arc::clone(&forms);
                async move { questions.form(id, form).await }
            })
            .on_elicit_url(move |page: ElicitUrlParams| {
                let questions = Arc::clone(&pages);
                async move { questions.url(id, page).await }
            })
            .on_sample(move |asked: CreateMessageParams| {
                let questions = Arc::clone(&samples);
                async move { questions.sample(id, asked).await }
            })
    }

    /// Sends the notifications of the server to the page.
    fn reporting(&self, client: Client, id: usize) -> Client {
        let report = |kind: &'static str, body: Value| {
            let events = Arc::clone(&self.events);
            move |_: ClientSession| {
                events.push(kind, Some(id), &body);
                std::future::ready(())
            }
        };
        let client = client
            .on_tools_changed(report("changed", json!({"of": "tools"})))
            .on_prompts_changed(report("changed", json!({"of": "prompts"})))
            .on_resources_changed(report("changed", json!({"of": "resources"})))
            .on_restarted(report("restarted", json!({})));
        let logs = Arc::clone(&self.events);
        let completed = Arc::clone(&self.events);
        client
            .on_log(move |message: LoggingMessageParams, _| {
                let text = cut(message.data.get(), MAX_LOG);
                let level = message.level.as_str();
                let logger = message.logger.as_deref().map(|it| cut(it, MAX_NAME));
                let log = json!({"level": level, "logger": logger, "text": text});
                logs.push("log", Some(id), log);
                std::future::ready(())
            })
            .on_elicitation_complete(move |elicitation, _| {
                let elicitation = cut(&elicitation, MAX_NAME);
                completed.push("visited", Some(id), json!({"elicitation": elicitation}));
                std::future::ready(())
            })
    }
}

fn facts(session: &ClientSession, millis: u128) -> Value {
    json!({
        "server": session.server_info(),
        "revision": session.revision().as_str(),
        "isModern": session.revision().is_modern(),
        "capabilities": session.server_capabilities(),
        "instructions": session.instructions(),
        "millis": u64::try_from(millis).unwrap_or(u64::MAX),
    })
}

/// The beginning of a text, with its length if it is cut off.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!(
        "{}… ({} bytes)",
        text.get(..end).unwrap_or_default(),
        text.len()
    )
}
