//! The requests that a layer counts, and the shares into which it divides them: by principal, session and tool.

use std::{borrow::Cow, collections::BTreeSet, pin::Pin, sync::Arc};

use oxmcp_json::Text;
use oxmcp_protocol::{
    Method,
    method::{CallTool, Complete, GetPrompt, ReadResource},
};

use crate::{
    error::Result,
    session::{
        connection::{Connection, RequestContext},
        middleware::{Request, Response},
    },
};

/// A tool's name is not longer, so a longer name is none.
const MAX_TOOL_NAME: usize = 128;

/// The methods that run handlers of features.
pub(crate) const WORK: [&str; 4] = [
    CallTool::NAME,
    GetPrompt::NAME,
    ReadResource::NAME,
    Complete::NAME,
];

/// The response of a layer.
pub(crate) type LayerFuture = Pin<Box<dyn Future<Output = Result<Response>> + Send>>;

/// The requests that a limit counts, and how it divides them.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    methods: BTreeSet<Cow<'static, str>>,
    /// The only tools whose calls are counted. Empty if all are.
    tools: BTreeSet<String>,
    by_principal: bool,
    by_session: bool,
    by_tool: bool,
}

/// The share of a limit that a request counts for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share {
    principal: Option<Arc<str>>,
    session: Option<usize>,
    tool: Option<Box<str>>,
}

#[cfg(test)]
impl Share {
    pub(crate) fn named(tool: &str) -> Self {
        Self {
            tool: Some(tool.into()),
            ..Self::default()
        }
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            methods: BTreeSet::from([CallTool::NAME.into()]),
            tools: BTreeSet::new(),
            by_principal: false,
            by_session: false,
            by_tool: false,
        }
    }
}

impl Counted {
    pub(crate) fn set_methods(&mut self, methods: impl IntoIterator<Item = Cow<'static, str>>) {
        self.methods = methods.into_iter().collect();
    }

    pub(crate) fn set_tools(&mut self, tools: impl IntoIterator<Item = String>) {
        self.tools = tools.into_iter().collect();
    }

    pub(crate) fn divide_by_principal(&mut self) {
        self.by_principal = true;
    }

    pub(crate) fn divide_by_session(&mut self) {
        self.by_session = true;
    }

    pub(crate) fn divide_by_tool(&mut self) {
        self.by_tool = true;
    }

    /// The share of a request. `None` if it is not counted.
    pub(crate) fn share_of(&self, request: &Request) -> Option<Share> {
        let cx = request.context().filter(|cx| cx.request_id().is_some())?;
        if !self.methods.contains(request.method()) {
            return None;
        }
        let tool = tool_of(request);
        let is_counted = |tool: &str| self.tools.is_empty() || self.tools.contains(tool);
        let tool = tool.as_deref();
        tool.is_none_or(is_counted).then(|| self.share(cx, tool))
    }

    /// The share of a call of a tool, or of another request.
    pub(crate) fn share(&self, cx: &RequestContext, tool: Option<&str>) -> Share {
        let session = self.by_session.then(|| session_of(cx)).flatten();
        // A request without a session is one of its principal.
        let by_principal = self.by_principal || self.by_session && session.is_none();
        let principal = cx.principal().filter(|_| by_principal);
        let tool = tool.filter(|tool| self.by_tool && tool.len() <= MAX_TOOL_NAME);
        Share {
            principal: principal.map(|it| Arc::from(it.as_str())),
            session,
            tool: tool.map(Into::into),
        }
    }
}

/// A name of the session of a request, while the session lives. Afterwards another session may get it, and continues with the
/// share of the first. `None` for a request over HTTP that belongs to no session.
pub(crate) fn session_of(cx: &RequestContext) -> Option<usize> {
    let session = cx.server_session()?;
    let lasts = !session.is_for_one_request();
    lasts.then(|| Arc::<Connection>::as_ptr(session.connection()).addr())
}

/// The name of the tool that a request calls.
pub(crate) fn tool_of(request: &Request) -> Option<String> {
    match request.method() {
        CallTool::NAME => member_of(request, "name"),
        _ => None,
    }
}

/// A member of a request's params, if it is a string.
pub(crate) fn member_of(request: &Request, name: &str) -> Option<String> {
    let mut members = Text::from(request.raw_params()?).members();
    let (_, value) = members.find(|(key, _)| key.is_str(name))?;
    value.as_str().map(Cow::into_owned)
}

/// The methods by which the users of a limit choose the requests that it counts.
macro_rules! counted_methods {
    () => {
        /// Divides the limit by principal: each authenticated caller has its own. Callers that are not authenticated share one.
        #[must_use]
        pub fn per_principal(mut self) -> Self {
            self.counted.divide_by_principal();
            self
        }

        /// Divides the limit by session: each has its own. A request over HTTP without a session (2026-07-28 and later) counts
        /// for its principal.
        #[must_use]
        pub fn per_session(mut self) -> Self {
            self.counted.divide_by_session();
            self
        }

        /// Divides the limit by tool: each has its own.
        #[must_use]
        pub fn per_tool(mut self) -> Self {
            self.counted.divide_by_tool();
            self
        }

        /// Limits only the calls of these tools. By default, all are limited.
        #[must_use]
        pub fn tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
            self.counted.set_tools(names.into_iter().map(Into::into));
            self
        }

        /// Limits the requests with these methods. By default, these are the calls of tools.
        #[must_use]
        pub fn methods<N: Into<std::borrow::Cow<'static, str>>>(
            mut self,
            methods: impl IntoIterator<Item = N>,
        ) -> Self {
            self.counted
                .set_methods(methods.into_iter().map(Into::into));
            self
        }
    };
}

pub(crate) use counted_methods;
