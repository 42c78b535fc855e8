//! A call that is ready to be sent, and its rounds with the server.

use std::future::pending;

use oxmcp_json::Text;
use oxmcp_protocol::{
    CallToolParams, InputResponses, Method, Revision,
    internal::{
        ResultType, has_result_type,
        negotiation::{ProbeOutcome, on_error},
        peek_result_type, with_input_responses,
    },
    method::CallTool,
};
use serde_json::value::to_raw_value;
use tokio::{
    select,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        cache::options::CacheMode,
        requests::{
            call_answer::{CallAnswer, PendingInput},
            call_driver::{CallDriver, DrivenCall},
        },
        session::ClientSession,
    },
    error::{Error, Result},
    logged::Logged,
    session::{
        outbound::{call::ContinuationGuard, calls::CallResult, options::CallOptions},
        task::{BoxFuture, after},
    },
};

/// The params of a call. It is no larger than the JSON text, which most calls carry.
pub(crate) enum Params<P> {
    /// Typed params, with the cache mode, which only typed calls can choose.
    Typed(Box<P>, CacheMode),
    /// A JSON object that fits every revision, without a `_meta`.
    Written(Vec<u8>),
}

impl Params<CallToolParams> {
    /// The name of the tool that is called.
    pub(crate) fn tool_name(&self) -> Option<String> {
        match self {
            Self::Typed(params, _) => Some(params.name.clone()),
            Self::Written(params) => tool_name(params),
        }
    }
}

/// A call whose params and options fit its session.
pub(crate) struct CallRequest {
    pub(crate) session: ClientSession,
    pub(crate) method: &'static str,
    /// The result types that extensions may add to the method.
    pub(crate) result_types: &'static [&'static str],
    /// A JSON object without a `_meta`.
    pub(crate) params: Vec<u8>,
    pub(crate) options: CallOptions,
}

impl CallRequest {
    /// Makes the request, and repeats it once if the server has refused the headers of a tool call, or a revision that it
    /// supports.
    pub(crate) async fn send(&mut self) -> Result<CallAnswer> {
        let listings = self.session.state().headers.listings();
        self.options.start = Some(Instant::now());
        let connection = self.session.connection();
        let answer = connection.call_written(self.method, &self.params, &mut self.options);
        let result = match answer.await {
            Ok(result) => result,
            Err(error) => Box::pin(self.retry(error, listings)).await?,
        };
        if !self.session.revision().is_modern() {
            return Ok(CallAnswer::Complete(result));
        }
        Ok(match result.result_type() {
            ResultType::Complete => CallAnswer::Complete(result),
            ResultType::InputRequired => CallAnswer::InputRequired(PendingInput {
                _guard: ContinuationGuard::new(self.session.connection()),
                result: result.json,
            }),
            ResultType::Other => {
                self.check_type(&result.json)?;
                CallAnswer::Extended(result)
            }
        })
    }

    /// Lets the driver make the call. If it is manual, the input requests of the server are left to the caller.
    pub(crate) fn drive(
        self,
        driver: &CallDriver,
        is_manual: bool,
    ) -> BoxFuture<Result<CallAnswer>> {
        let call = DrivenCall {
            params: self.params,
            options: self.options,
            is_manual,
        };
        (driver.call)(self.session.connection(), call)
    }

    /// Repeats the request after an error, if that may help. `listings` is the number of listings of tools before the request
    /// was made.
    async fn retry(&mut self, error: Error, listings: u64) -> Result<CallResult> {
        self.note_url_elicitations(&error);
        let start = self.options.start.unwrap_or_else(Instant::now);
        if !self.is_taken_in_same_revision(&error)
            && !self.wants_other_headers(&error, start, listings).await?
        {
            return Err(error);
        }
        let options = &mut self.options;
        options.start = Some(Instant::now());
        options.max_total = options.max_total.saturating_sub(start.elapsed());
        options.timeout = options.timeout.min(options.max_total);
        let connection = self.session.connection();
        let again = connection
            .call_written(self.method, &self.params, options)
            .await;
        again.inspect_err(|error| self.note_url_elicitations(error))
    }

    /// Whether the server has refused the revision of the request although it declares that it supports it: another node of the
    /// server may accept the request. Clients should then ask again in a revision that the server names.
    fn is_taken_in_same_revision(&self, error: &Error) -> bool {
        let revision = self.session.revision();
        on_error(error, &[revision]) == ProbeOutcome::AskAgain(revision)
    }

    /// Lists the tools again if the server has refused the headers of the request. Returns whether the tool may want other
    /// headers now.
    async fn wants_other_headers(
        &mut self,
        error: &Error,
        start: Instant,
        listings: u64,
    ) -> Result<bool> {
        let is_mismatch = self.session.state().headers.is_mismatch(error);
        let name = (self.method == CallTool::NAME && is_mismatch).then(|| tool_name(&self.params));
        let Some(name) = name.flatten() else {
            return Ok(false);
        };
        // Borrowed mutably, as `self` is: the callbacks are `Send`, but not `Sync`.
        let options = &mut self.options;
        let limit = options.timeout.min(options.max_total);
        select! {
            biased;
            () = cancelled(options.cancel.as_ref()) => Err(cancellation(self.method)),
            may_help = list_tools_again(&self.session, &name, listings) => Ok(may_help),
            () = sleep_until(after(start, limit)) => Ok(false),
        }
    }

    /// Records the elicitations by URL that an error asks for.
    fn note_url_elicitations(&self, error: &Error) {
        let state = self.session.state();
        // A client without a handler for URLs ignores the completion of such an elicitation.
        if state.client.features().on_elicit_url.is_some() {
            state.url_elicitations.insert_required(error);
        }
    }

    /// Refuses a result of an unknown type. Types that an extension has added are accepted if the client has the extension
    /// and the method reads them.
    pub(crate) fn check_type(&self, result: &str) -> Result<()> {
        let result = Text::checked(result);
        if peek_result_type(result) != ResultType::Other {
            return Ok(());
        }
        let features = self.session.client().features().clone();
        let is_known = |name: &&&str| features.extensions.has_result_type(name);
        let mut known = self.result_types.iter().filter(is_known);
        if known.any(|name| has_result_type(result, name)) {
            return Ok(());
        }
        let (name, hint) = unknown_type(result.get());
        Err(Error::decode(format!(
            "{}: unknown result type {name:?}{hint}",
            self.method
        )))
    }
}

/// The longest name of a result type that is shown in an error, in characters.
const SHOWN_TYPE: usize = 64;

/// The type of a result, for an error message, and a hint about it.
fn unknown_type(result: &str) -> (String, &'static str) {
    #[derive(serde::Deserialize)]
    struct Typed {
        #[serde(rename = "resultType")]
        result_type: serde_json::Value,
    }
    let named = serde_json::from_str(result).map(|Typed { result_type }| match result_type {
        serde_json::Value::String(name) => name,
        other => other.to_string(),
    });
    let name: String = named.unwrap_or_default().chars().take(SHOWN_TYPE).collect();
    let hint = match &*name {
        "task" => {
            ": servers may create tasks only for clients that declare the extension `io.modelcontextprotocol/tasks`"
        }
        _ => "",
    };
    (name, hint)
}

pub(crate) fn cancellation(method: &str) -> Error {
    Error::cancelled(format!("the call to {method} was cancelled"))
}

/// Waits until a call is cancelled by its token.
pub(crate) async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => pending().await,
    }
}

/// Lists the tools, to learn which headers they want. Returns whether that may have changed the headers of a call.
async fn list_tools_again(session: &ClientSession, name: &str, listings: u64) -> bool {
    let headers = &session.state().headers;
    let Some(mirror) = headers.mirror() else {
        return false;
    };
    let _one_at_a_time = headers.lock_listing().await;
    if headers.listings() != listings {
        // Another call was refused, too, and its listing began after this call was made.
        return true;
    }
    let before = mirror.knows(name);
    let mut tools = session.tools().cache(CacheMode::Refresh);
    // Only the tool of the call is kept: a server may have many tools with long descriptions.
    let mut wanted = None;
    while let Some(listed) = tools.next().await {
        match listed {
            Ok(tool) if tool.name == name => wanted = Some(tool),
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(error = %Logged(&error), "could not list tools to find the headers of a call");
                return false;
            }
        }
    }
    headers.count_listing();
    // Learned again as the newest, in case there are more tools than the mirror can hold.
    wanted.is_some_and(|tool| mirror.learn(&tool).is_ok()) && (before || mirror.knows(name))
}

/// The name of the tool in the params of a call.
pub(crate) fn tool_name(params: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct ToolName {
        name: String,
    }
    let named: ToolName = serde_json::from_slice(params).ok()?;
    Some(named.name)
}

/// The caller's answers to the input requests of a round, and the request state that the server gave with them.
#[derive(Debug, Default)]
pub(crate) struct RoundInput {
    pub(crate) answers: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

impl RoundInput {
    /// Adds the input to the params of the call.
    pub(crate) fn add_to(&self, params: &[u8], revision: Revision) -> Result<Vec<u8>> {
        if !revision.has_input_responses() {
            return Err(Error::unsupported(format!(
                "revision {revision} does not support input responses; nothing was sent"
            )));
        }
        let text = str::from_utf8(params).map_err(|_| Error::misuse("the params are not UTF-8"))?;
        let add = || {
            let state = self.state.as_ref().map(to_raw_value).transpose()?;
            with_input_responses(Text::checked(text), self.answers.as_ref(), state.as_deref())
        };
        add().map_err(|error: serde_json::Error| {
            Error::misuse(format!("could not serialize the input responses: {error}"))
                .with_source(error)
        })
    }
}
