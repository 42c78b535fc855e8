//! What users want to do when a server says something.

use std::{future::Future, sync::Arc};

use crate::{
    client::{client::Client, handlers::url_elicitations::Visits, session::ClientSession},
    json::{Logged, Text},
    protocol::{
        LoggingMessageParams, Notification,
        method::{
            ElicitationComplete, LoggingMessage, PromptListChanged, ResourceListChanged,
            ResourceUpdated, ToolListChanged,
        },
    },
    session::BoxFuture,
};

/// A handler of what a server says.
type Hook<Said> = Arc<dyn Fn(Said, ClientSession) -> BoxFuture<()> + Send + Sync>;

/// A handler that knows what was said, and is still to be run.
pub(crate) type Job = Box<dyn FnOnce(ClientSession) -> BoxFuture<()> + Send>;

/// The handlers of notifications.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) tools_changed: Option<Hook<()>>,
    pub(crate) prompts_changed: Option<Hook<()>>,
    pub(crate) resources_changed: Option<Hook<()>>,
    resource_updated: Option<Hook<String>>,
    log: Option<Hook<LoggingMessageParams>>,
    elicitation_complete: Option<Hook<String>>,
}

/// A notification, and how its handler is found. The visits that are open are there for the one that ends them.
type Row = (
    &'static str,
    fn(&Hooks, Option<Text<'_>>, &Visits) -> Option<Job>,
);

/// One row a notification.
const NOTIFICATIONS: &[Row] = &[
    (LoggingMessage::NAME, |hooks, params, _| {
        job(&hooks.log, || read::<LoggingMessage>(params))
    }),
    (ResourceUpdated::NAME, |hooks, params, _| {
        job(&hooks.resource_updated, || {
            Some(read::<ResourceUpdated>(params)?.uri)
        })
    }),
    (ToolListChanged::NAME, |hooks, _, _| {
        job(&hooks.tools_changed, || Some(()))
    }),
    (PromptListChanged::NAME, |hooks, _, _| {
        job(&hooks.prompts_changed, || Some(()))
    }),
    (ResourceListChanged::NAME, |hooks, _, _| {
        job(&hooks.resources_changed, || Some(()))
    }),
    (ElicitationComplete::NAME, |hooks, params, visits| {
        job(&hooks.elicitation_complete, || {
            let id = read::<ElicitationComplete>(params)?.elicitation_id;
            visits.complete(&id).then_some(id)
        })
    }),
];

impl Hooks {
    /// What is to be done when a server says this. Nothing, where there is no handler for it.
    pub(crate) fn job(
        &self,
        method: &str,
        params: Option<Text<'_>>,
        visits: &Visits,
    ) -> Option<Job> {
        let (_, row) = NOTIFICATIONS.iter().find(|(name, _)| *name == method)?;
        row(self, params, visits)
    }
}

fn job<Said: Send + 'static>(
    hook: &Option<Hook<Said>>,
    said: impl FnOnce() -> Option<Said>,
) -> Option<Job> {
    let hook = Arc::clone(hook.as_ref()?);
    let said = said()?;
    Some(Box::new(move |session| hook(said, session)))
}

fn read<N: Notification>(params: Option<Text<'_>>) -> Option<N::Params> {
    match params.unwrap_or(Text::EMPTY).parse() {
        Ok(params) => Some(params),
        Err(error) => {
            tracing::debug!(method = N::NAME, error = %Logged(&error), "a notification that cannot be read was ignored");
            None
        }
    }
}

fn erase<Said, F, Fut>(handler: F) -> Hook<Said>
where
    Said: Send + 'static,
    F: Fn(Said, ClientSession) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let handler = Arc::new(handler);
    Arc::new(move |said, session| {
        let handler = Arc::clone(&handler);
        // Called where the handlers run: a panic must not reach whoever queues it.
        Box::pin(async move { handler(said, session).await })
    })
}

impl Client {
    /// Is called when a server says that its list of tools has changed. The handlers of one session run one at a time, in
    /// the order in which the server said it.
    ///
    /// Legacy servers say it by themselves. Modern ones say it to who subscribes, so a session with one opens a
    /// subscription when it connects, for those handlers that are there by then and that the server has something for.
    /// A server that refuses is logged. [`ClientSession::listen`] opens one by hand.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
    ///
    /// ```
    /// use oxmcp::{Client, ClientSession};
    ///
    /// let client = Client::new("my-app", "1.0.0").on_tools_changed(|session: ClientSession| async move {
    ///     match session.tools().all().await {
    ///         Ok(tools) => println!("there are {} tools now", tools.len()),
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    pub fn on_tools_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = erase(move |(), session| handler(session));
        self.change(|features| features.hooks.tools_changed = Some(hook));
        self
    }

    /// Is called when a server says that its list of prompts has changed, as
    /// [`on_tools_changed`](Self::on_tools_changed) is for tools.
    #[must_use]
    pub fn on_prompts_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = erase(move |(), session| handler(session));
        self.change(|features| features.hooks.prompts_changed = Some(hook));
        self
    }

    /// Is called when a server says that its list of resources or of resource templates has changed, as
    /// [`on_tools_changed`](Self::on_tools_changed) is for tools.
    #[must_use]
    pub fn on_resources_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = erase(move |(), session| handler(session));
        self.change(|features| features.hooks.resources_changed = Some(hook));
        self
    }

    /// Is called with the URI when a server says that a resource has changed that the session subscribed to, in its turn
    /// among the handlers of the session.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#subscriptions).
    ///
    /// ```
    /// use oxmcp::Client;
    ///
    /// let client = Client::new("my-app", "1.0.0").on_resource_updated(|uri, session| async move {
    ///     match session.read_resource(uri).await {
    ///         Ok(read) => println!("{:?}", read.contents),
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    pub fn on_resource_updated<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(String, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = erase(handler);
        self.change(|features| features.hooks.resource_updated = Some(hook));
        self
    }

    /// Is called with what a server logs, in its turn among the handlers of the session. How severe it must be is said
    /// with [`log_level`](Self::log_level): modern servers log nothing before.
    /// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
    ///
    /// ```
    /// use oxmcp::{Client, protocol::LoggingLevel};
    ///
    /// let client = Client::new("my-app", "1.0.0")
    ///     .log_level(LoggingLevel::Info)
    ///     .on_log(|message, _session| async move {
    ///         eprintln!("{}: {}", message.level, message.data);
    ///     });
    /// # let _ = client;
    /// ```
    #[must_use]
    pub fn on_log<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(LoggingMessageParams, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = erase(handler);
        self.change(|features| features.hooks.log = Some(hook));
        self
    }

    /// Is called with the id of an elicitation when a server says that the user has done at its URL what was to be done
    /// (2025-11-25 only), in its turn among the handlers of the session. Ids of URLs that the server did not send the user to,
    /// be it by a question or by refusing a call with
    /// [`URL_ELICITATION_REQUIRED`](crate::ErrorCode::URL_ELICITATION_REQUIRED), are ignored.
    /// See [completion](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation).
    #[must_use]
    pub fn on_elicitation_complete<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(String, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = erase(handler);
        self.change(|features| features.hooks.elicitation_complete = Some(hook));
        self
    }
}
