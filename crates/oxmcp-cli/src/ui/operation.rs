//! The operations of the page on a session: lists, calls, reads, and what else a client can do.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
};

use futures_util::StreamExt;
use oxmcp::{
    CancellationToken, ClientSession, Error, ToleratedDeviation,
    protocol::{
        CallToolResult, CompleteParams, LoggingLevel, Method, ProgressParams, Tool, method,
    },
    tasks::{AsTask, TaskHandle},
};
use serde::{Deserialize, Serialize};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::{
    commands::findings,
    ui::{connect::Connected, events::Events, views::Views},
};

/// The bytes of a result that the page gets.
const MAX_RESULT: usize = 16 << 20;

/// The time for a task that was cancelled to end.
const CANCEL: Duration = Duration::from_secs(10);

/// The resources that are watched at once.
const MAX_WATCHES: usize = 100;

/// The characters of a text of a server that reports how far an operation is.
const MAX_STATUS: usize = 1000;

/// An operation that the page has asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Operation {
    List {
        of: Kind,
    },
    Call {
        tool: String,
        #[serde(default)]
        arguments: Map<String, Value>,
        /// Whether the call may go on as a task.
        #[serde(default)]
        as_task: bool,
        /// Whether the app of the tool is shown.
        #[serde(default)]
        app: bool,
    },
    Prompt {
        name: String,
        #[serde(default)]
        arguments: BTreeMap<String, String>,
    },
    Read {
        uri: String,
    },
    Complete {
        params: Value,
    },
    Subscribe {
        uri: String,
    },
    Unsubscribe {
        uri: String,
    },
    Level {
        level: LoggingLevel,
    },
    Check,
    /// Sends a request that the page has as JSON.
    Send {
        method: String,
        #[serde(default)]
        params: Map<String, Value>,
    },
}

/// The lists of a server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

/// The reason for which an operation failed.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub message: String,
    pub code: Option<i64>,
    pub data: Option<Value>,
    pub is_cancelled: bool,
}

/// An operation in progress.
pub(crate) struct Work<'a> {
    pub events: &'a Arc<Events>,
    pub views: &'a Arc<Views>,
    pub connected: &'a Connected,
    pub server: usize,
    pub job: &'a str,
    pub stop: &'a CancellationToken,
}

type Outcome = Result<Box<RawValue>, Trouble>;

impl Work<'_> {
    /// Runs the operation until it ends or is cancelled.
    ///
    /// # Errors
    /// The server refused it, it was cancelled, or its result is too large.
    pub(crate) async fn run(&self, operation: Operation) -> Outcome {
        // A call stops by itself, because its task must be told.
        let is_call = matches!(operation, Operation::Call { .. });
        let result = tokio::select! {
            biased;
            () = self.stop.cancelled(), if !is_call => Err(Trouble::cancelled()),
            outcome = Box::pin(self.perform(operation)) => outcome,
        }?;
        if result.get().len() > MAX_RESULT {
            let bytes = result.get().len();
            return Err(Trouble::new(format!(
                "the result has {bytes} bytes, and the page shows at most {MAX_RESULT}; use `oxmcp call`"
            )));
        }
        Ok(result)
    }

    async fn perform(&self, operation: Operation) -> Outcome {
        let session = &self.connected.session;
        match operation {
            Operation::List { of } => list(session, of).await,
            Operation::Call {
                tool,
                arguments,
                as_task,
                app,
            } => {
                let result = match app {
                    true => self.show(&tool, arguments).await,
                    false => self.call(&tool, &arguments, as_task).await,
                };
                encode(&result?)
            }
            Operation::Prompt { name, arguments } => {
                encode(&session.get_prompt(name, arguments).await?)
            }
            Operation::Read { uri } => encode(&session.read_resource(uri).await?),
            Operation::Complete { params } => {
                let params: CompleteParams = decode(&params)?;
                encode(&session.complete(params).await?.completion)
            }
            Operation::Subscribe { uri } => self.watch(uri).await,
            Operation::Unsubscribe { uri } => {
                if let Some(watch) = self.watches().remove(&uri) {
                    watch.abort();
                }
                encode(&())
            }
            Operation::Level { level } => encode(&session.set_log_level(level).await?),
            Operation::Check => self.check().await,
            Operation::Send { method, params } => send(session, &method, &params).await,
        }
    }

    async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        as_task: bool,
    ) -> Result<CallToolResult, Trouble> {
        let call = self.connected.session.call_tool(tool, arguments);
        let call = call.on_progress(self.progress());
        if !as_task {
            return Ok(call.cancel_with(self.stop.clone()).await?);
        }
        let task = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(Trouble::cancelled()),
            task = Box::pin(call.as_task()) => task?,
        };
        self.follow(&task).await
    }

    /// Reports the states of a task until it ends.
    async fn follow(&self, task: &TaskHandle) -> Result<CallToolResult, Trouble> {
        let mut updates = task.updates();
        let mut is_stopped = false;
        let end = sleep(CANCEL);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = self.stop.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    end.as_mut().reset(Instant::now() + CANCEL);
                    let cancelled = timeout(CANCEL, task.cancel()).await;
                    cancelled.map_err(|_| Trouble::cancelled())??;
                }
                // The server has not ended the task that was cancelled.
                () = &mut end, if is_stopped => return Err(Trouble::cancelled()),
                state = updates.next() => match state {
                    Some(state) => self.report("task", json!({"task": {
                        "id": short(&state.task_id),
                        "status": state.status,
                        "message": state.status_message.as_deref().map(short),
                        "createdAt": short(&state.created_at),
                        "ttl": state.ttl_ms,
                    }})),
                    None => break,
                },
            }
        }
        if is_stopped {
            let result = timeout(CANCEL, task.result()).await;
            return Ok(result.map_err(|_| Trouble::cancelled())??);
        }
        Ok(task.result().await?)
    }

    /// Calls a tool whose app shows the result.
    async fn show(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, Trouble> {
        let session = &self.connected.session;
        let opening = async {
            let tools: Vec<Tool> = session.tools().all().await?;
            let view = self.views.open(self.server, session, tools, name).await;
            view.map_err(Trouble::new)
        };
        let view = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(Trouble::cancelled()),
            view = Box::pin(opening) => view?,
        };
        let mut shown = view.shown();
        if let Some(shown) = shown.as_object_mut() {
            shown.insert("job".to_owned(), self.job.into());
        }
        self.events.push("view", Some(self.server), shown);
        view.input(&arguments);
        let result = self.call(name, &arguments, false).await;
        match &result {
            Ok(result) => view.result(result),
            Err(trouble) => view.cancelled(&trouble.message),
        }
        result
    }

    fn progress(&self) -> impl FnMut(ProgressParams) + Send + 'static {
        let (events, server, job) = (Arc::clone(self.events), self.server, self.job.to_owned());
        move |it| {
            let message = it.message.as_deref().map(short);
            events.push(
                "job",
                Some(server),
                json!({
                    "job": job,
                    "phase": "progress",
                    "progress": {"progress": it.progress, "total": it.total, "message": message},
                }),
            );
        }
    }

    fn report(&self, phase: &str, body: Value) {
        let mut event = json!({"job": self.job, "phase": phase});
        if let (Some(event), Value::Object(body)) = (event.as_object_mut(), body) {
            event.extend(body);
        }
        self.events.push("job", Some(self.server), event);
    }

    async fn watch(&self, uri: String) -> Outcome {
        if self.watches().len() >= MAX_WATCHES {
            return Err(Trouble::new(format!(
                "{MAX_WATCHES} resources are watched; unsubscribe from one first"
            )));
        }
        let mut watch = self.connected.session.watch_resource(&uri).await?;
        let (events, server) = (Arc::clone(self.events), self.server);
        let watching = tokio::spawn(async move {
            while let Some(update) = watch.next().await {
                events.push("updated", Some(server), json!({"uri": update.uri}));
            }
        });
        if let Some(old) = self.watches().insert(uri, watching.abort_handle()) {
            old.abort();
        }
        encode(&())
    }

    fn watches(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, tokio::task::AbortHandle>> {
        let watches = &self.connected.watches;
        watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn check(&self) -> Outcome {
        let session = &self.connected.session;
        let found = findings(session).await?;
        let tolerated: Vec<Value> = session.tolerated().iter().map(deviation).collect();
        encode(&json!({"findings": found, "tolerated": tolerated}))
    }
}

/// The beginning of a text in a report, which is not counted among the bytes of results that the page keeps.
fn short(text: &str) -> String {
    text.chars().take(MAX_STATUS).collect()
}

fn deviation(it: &ToleratedDeviation) -> Value {
    json!({
        "name": it.leniency.name(),
        "method": it.method,
        "reason": it.leniency.reason(),
        "count": it.count,
    })
}

async fn list(session: &ClientSession, of: Kind) -> Outcome {
    match of {
        Kind::Tools => {
            let mut listing = session.tools();
            let mut tools: Vec<Value> = Vec::new();
            while let Some(tool) = listing.next().await {
                let tool = tool?;
                let ui = oxmcp_apps::ToolUi::of(&tool);
                let mut shown = serde_json::to_value(&tool).map_err(Trouble::unwritable)?;
                if let Some(shown) = shown.as_object_mut() {
                    // The page shows it beside the tool.
                    shown.insert("appUri".to_owned(), json!(ui.resource_uri));
                    shown.insert("isForApps".to_owned(), json!(!ui.visibility.model));
                }
                tools.push(shown);
            }
            encode(&tools)
        }
        Kind::Prompts => encode(&session.prompts().all().await?),
        Kind::Resources => encode(&session.resources().or_none().all().await?),
        Kind::Templates => encode(&session.resource_templates().or_none().all().await?),
    }
}

/// Sends a request of the page. The metadata of the protocol is left to the session.
async fn send(session: &ClientSession, name: &str, params: &Map<String, Value>) -> Outcome {
    macro_rules! send {
        ($($method:ident)+) => {
            match name {
                $(method::$method::NAME => {
                    let params = decode(&Value::Object(params.clone()))?;
                    encode(&session.request::<method::$method>(params).await?)
                })+
                _ => Err(Trouble::new(format!("{name:?} is not a request that a client sends again"))),
            }
        };
    }
    send!(
        CallTool CancelTask Complete Discover GetPrompt GetTask GetTaskPayload ListPrompts ListResources
        ListResourceTemplates ListTasks ListTools Ping ReadResource SetLevel
    )
}

fn encode(value: &impl Serialize) -> Outcome {
    to_raw_value(value).map_err(Trouble::unwritable)
}

fn decode<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Trouble> {
    serde_json::from_str(&value.to_string())
        .map_err(|error| Trouble::new(format!("the parameters cannot be read: {error}")))
}

impl Trouble {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: None,
            data: None,
            is_cancelled: false,
        }
    }

    fn cancelled() -> Self {
        Self {
            is_cancelled: true,
            ..Self::new("cancelled")
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the form that `map_err` wants"
    )]
    fn unwritable(error: serde_json::Error) -> Self {
        Self::new(format!("the result cannot be written as JSON: {error}"))
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let data = error
            .data()
            .and_then(|it| serde_json::from_str(it.get()).ok());
        Self {
            message: error.message().to_owned(),
            code: error.is_protocol().then(|| error.code().value()),
            data,
            is_cancelled: error.is_cancelled(),
        }
    }
}
