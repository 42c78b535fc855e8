//! The questions of servers that wait for the user of the page.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use oxmcp::{
    Answer, Error,
    protocol::{CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitUrlParams},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::ui::events::Events;

/// The number of open questions of a server. One that asks more is refused.
const MAX_OPEN: usize = 64;

/// The open questions of all servers.
pub(crate) struct Questions {
    events: Arc<Events>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    open: BTreeMap<u64, Open>,
}

struct Open {
    server: usize,
    shown: Value,
    reply: oneshot::Sender<UserReply>,
}

/// The answer of the user.
#[derive(Debug, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub(crate) enum UserReply {
    Accept {
        #[serde(default)]
        content: Map<String, Value>,
    },
    Decline,
    Cancel,
}

/// Removes a question that was answered, or that its server has withdrawn.
struct Removal<'a> {
    questions: &'a Questions,
    number: u64,
}

impl Questions {
    pub(crate) fn new(events: Arc<Events>) -> Self {
        Self {
            events,
            state: Mutex::default(),
        }
    }

    /// Asks the user to fill in a form.
    pub(crate) async fn form(
        &self,
        server: usize,
        form: ElicitFormParams,
    ) -> Answer<Map<String, Value>> {
        match self.ask(server, "form", &form).await {
            UserReply::Accept { content } => Answer::Accept(content),
            UserReply::Decline => Answer::Decline,
            UserReply::Cancel => Answer::Cancel,
        }
    }

    /// Asks the user to visit a page.
    pub(crate) async fn url(
        &self,
        server: usize,
        page: ElicitUrlParams,
    ) -> oxmcp::protocol::ElicitAction {
        use oxmcp::protocol::ElicitAction;
        match self.ask(server, "url", &page).await {
            UserReply::Accept { .. } => ElicitAction::Accept,
            UserReply::Decline => ElicitAction::Decline,
            UserReply::Cancel => ElicitAction::Cancel,
        }
    }

    /// Asks the user to write the message of a model.
    ///
    /// # Errors
    /// The user has declined, or the message cannot be read.
    pub(crate) async fn sample(
        &self,
        server: usize,
        asked: CreateMessageParams,
    ) -> oxmcp::Result<CreateMessageResult> {
        let UserReply::Accept { content } = self.ask(server, "sampling", &asked).await else {
            return Err(Error::protocol(-1, "User rejected sampling request"));
        };
        let text = Value::Object(content).to_string();
        serde_json::from_str(&text)
            .map_err(|error| Error::internal(format!("the message cannot be read: {error}")))
    }

    /// The open questions, for a page that was just opened.
    pub(crate) fn open(&self) -> Vec<Value> {
        let state = self.state();
        state.open.values().map(|it| it.shown.clone()).collect()
    }

    /// Answers a question. Returns whether it was open.
    pub(crate) fn answer(&self, number: u64, reply: UserReply) -> bool {
        let open = self.state().open.remove(&number);
        open.is_some_and(|it| it.reply.send(reply).is_ok())
    }

    async fn ask(&self, server: usize, of: &str, params: &impl Serialize) -> UserReply {
        let (reply, replied) = oneshot::channel();
        let number = {
            let mut state = self.state();
            let of_server = state.open.values().filter(|it| it.server == server);
            if of_server.count() >= MAX_OPEN {
                return UserReply::Cancel;
            }
            state.last += 1;
            let number = state.last;
            let params = serde_json::to_value(params).unwrap_or_default();
            let shown = json!({"question": number, "server": server, "of": of, "params": params});
            self.events.push("question", Some(server), &shown);
            let open = Open {
                server,
                shown,
                reply,
            };
            state.open.insert(number, open);
            number
        };
        let _removal = Removal {
            questions: self,
            number,
        };
        let events = Arc::clone(&self.events);
        let reply = replied.await.unwrap_or(UserReply::Cancel);
        events.push("answered", Some(server), json!({"question": number}));
        reply
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.questions.state().open.remove(&self.number) {
            let withdrawn = json!({"question": self.number});
            let events = &self.questions.events;
            events.push("answered", Some(open.server), withdrawn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> ElicitUrlParams {
        ElicitUrlParams::new("visit", "https://a.example/")
    }

    #[tokio::test]
    async fn open_questions_are_bounded_and_withdrawn() {
        let questions = Arc::new(Questions::new(Arc::new(Events::new())));
        let mut asked = Vec::new();
        for _ in 0..MAX_OPEN {
            let questions = Arc::clone(&questions);
            asked.push(tokio::spawn(async move { questions.url(0, page()).await }));
        }
        while questions.open().len() < MAX_OPEN {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            questions.url(0, page()).await,
            oxmcp::protocol::ElicitAction::Cancel
        );
        // The call of the question is cancelled.
        let first = asked.remove(0);
        first.abort();
        assert!(first.await.is_err());
        assert_eq!(questions.open().len(), MAX_OPEN - 1);
        let accept = UserReply::Accept {
            content: Map::new(),
        };
        assert!(questions.answer(2, accept));
        assert!(!questions.answer(2, UserReply::Decline));
        assert_eq!(
            asked.remove(0).await.unwrap(),
            oxmcp::protocol::ElicitAction::Accept
        );
    }
}
