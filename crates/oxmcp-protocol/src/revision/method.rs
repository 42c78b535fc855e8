//! Methods of the protocol: one type for each, and one table for each direction.
//!
//! The tables are the only place that defines which revisions have which methods.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    result::payload::Payload,
    revision::version::{COUNT, N, Revision, Revisions, Y},
    types::{
        base::{CancelledParams, EmptyParams, EmptyResult, NotificationParams},
        completion::{CompleteParams, CompleteResult},
        elicitation::params::{ElicitParams, ElicitResult, ElicitationCompleteParams},
        lifecycle::{DiscoverResult, InitializeParams, InitializeResult},
        logging::{LoggingMessageParams, SetLevelParams},
        pagination::PaginatedParams,
        progress::ProgressParams,
        prompts::{GetPromptParams, GetPromptResult, ListPromptsResult},
        resources::{
            ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams,
            ReadResourceResult, ResourceUpdatedParams, SubscribeParams,
        },
        roots::ListRootsResult,
        sampling::{CreateMessageParams, CreateMessageResult},
        subscriptions::{AcknowledgedParams, ListenParams, ListenResult},
        tasks::{ListTasksResult, Task, TaskParams, TaskPayload},
        tools::{CallToolParams, CallToolResult, ListToolsResult},
    },
};

/// A kind of request: its name, its params and its result.
pub trait Method: Send + Sync + 'static {
    /// The name on the wire.
    const NAME: &'static str;
    /// The params of the request.
    type Params: Payload + DeserializeOwned + 'static;
    /// The result of the request.
    type Result: Payload + DeserializeOwned + 'static;
    /// The `resultType`s that `Result` can be read from in addition to the protocol's own, if an extension defines
    /// some: see `Extension::result_type` of the SDK.
    const RESULT_TYPES: &'static [&'static str] = &[];
}

/// A kind of notification: its name and its params.
pub trait Notification {
    /// The name on the wire.
    const NAME: &'static str;
    /// The params of the notification.
    type Params: Serialize + DeserializeOwned + Send + 'static;
}

/// A kind of request whose result may ask the client for input: one of [`MULTI_ROUND_TRIP`].
/// See [supported requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#supported-requests).
pub trait MultiRoundTrip: Method {}

impl MultiRoundTrip for CallTool {}
impl MultiRoundTrip for GetPrompt {}
impl MultiRoundTrip for ReadResource {}

/// A kind of request whose result states how long it may be cached.
///
/// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
pub trait Cacheable: Method {}

macro_rules! methods {
    ($( $method:ident, $name:literal, $params:ty => $result:ty; )+) => { $(
        #[doc = concat!("The request `", $name, "`.")]
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct $method;

        impl Method for $method {
            const NAME: &'static str = $name;
            type Params = $params;
            type Result = $result;
        }
    )+

        /// Calls the visitor with the result type of a method of the protocol.
        pub(crate) fn visit_result<V: PayloadVisitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $( $name => Some(visitor.visit::<$result>()), )+
                _ => None,
            }
        }

        fn visit_params_of_request<V: PayloadVisitor>(
            name: &str,
            visitor: V,
        ) -> Result<V::Output, V> {
            match name {
                $( $name => Ok(visitor.visit::<$params>()), )+
                _ => Err(visitor),
            }
        }
    };
}

macro_rules! notifications {
    ($( $notification:ident, $name:literal, $params:ty; )+) => { $(
        #[doc = concat!("The notification `", $name, "`.")]
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct $notification;

        impl Notification for $notification {
            const NAME: &'static str = $name;
            type Params = $params;
        }
    )+

        fn visit_params_of_notification<V: PayloadVisitor>(
            name: &str,
            visitor: V,
        ) -> Option<V::Output> {
            match name {
                $( $name => Some(visitor.visit::<$params>()), )+
                _ => None,
            }
        }
    };
}

/// Code that is generic over the type of a message and runs for the type that belongs to a method name.
pub(crate) trait PayloadVisitor {
    /// The return type of the code.
    type Output;

    /// Runs the code for the type `P`.
    fn visit<P: Payload + DeserializeOwned>(self) -> Self::Output;
}

/// Calls the visitor with the params type of a request or notification of the protocol.
pub(crate) fn visit_params<V: PayloadVisitor>(name: &str, visitor: V) -> Option<V::Output> {
    match visit_params_of_request(name, visitor) {
        Ok(output) => Some(output),
        Err(visitor) => visit_params_of_notification(name, visitor),
    }
}

methods! {
    CallTool, "tools/call", CallToolParams => CallToolResult;
    ListTools, "tools/list", PaginatedParams => ListToolsResult;
    ReadResource, "resources/read", ReadResourceParams => ReadResourceResult;
    ListResources, "resources/list", PaginatedParams => ListResourcesResult;
    ListResourceTemplates, "resources/templates/list", PaginatedParams => ListResourceTemplatesResult;
    Subscribe, "resources/subscribe", SubscribeParams => EmptyResult;
    Unsubscribe, "resources/unsubscribe", SubscribeParams => EmptyResult;
    GetPrompt, "prompts/get", GetPromptParams => GetPromptResult;
    ListPrompts, "prompts/list", PaginatedParams => ListPromptsResult;
    Complete, "completion/complete", CompleteParams => CompleteResult;
    SetLevel, "logging/setLevel", SetLevelParams => EmptyResult;
    Ping, "ping", EmptyParams => EmptyResult;
    Initialize, "initialize", InitializeParams => InitializeResult;
    Discover, "server/discover", EmptyParams => DiscoverResult;
    Listen, "subscriptions/listen", ListenParams => ListenResult;
    CreateMessage, "sampling/createMessage", CreateMessageParams => CreateMessageResult;
    ListRoots, "roots/list", EmptyParams => ListRootsResult;
    Elicit, "elicitation/create", ElicitParams => ElicitResult;
    GetTask, "tasks/get", TaskParams => Task;
    GetTaskPayload, "tasks/result", TaskParams => TaskPayload;
    CancelTask, "tasks/cancel", TaskParams => Task;
    ListTasks, "tasks/list", PaginatedParams => ListTasksResult;
}

impl Cacheable for Discover {}
impl Cacheable for ListTools {}
impl Cacheable for ListPrompts {}
impl Cacheable for ListResources {}
impl Cacheable for ListResourceTemplates {}
impl Cacheable for ReadResource {}

notifications! {
    Cancelled, "notifications/cancelled", CancelledParams;
    Progress, "notifications/progress", ProgressParams;
    Initialized, "notifications/initialized", NotificationParams;
    RootsListChanged, "notifications/roots/list_changed", NotificationParams;
    LoggingMessage, "notifications/message", LoggingMessageParams;
    ResourceUpdated, "notifications/resources/updated", ResourceUpdatedParams;
    ResourceListChanged, "notifications/resources/list_changed", NotificationParams;
    ToolListChanged, "notifications/tools/list_changed", NotificationParams;
    PromptListChanged, "notifications/prompts/list_changed", NotificationParams;
    ElicitationComplete, "notifications/elicitation/complete", ElicitationCompleteParams;
    SubscriptionsAcknowledged, "notifications/subscriptions/acknowledged", AcknowledgedParams;
    TaskStatusChanged, "notifications/tasks/status", Task;
}

/// One row of a table: a method, and the revisions that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The name on the wire.
    pub name: &'static str,
    /// The revisions that have the method.
    revisions: Revisions,
    /// The member of the params that names the subject of the request, if there is one: over HTTP the header `Mcp-Name`
    /// repeats it, from 2026-07-28 on.
    /// See [standard headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#standard-request-headers).
    pub named: Option<&'static str>,
    /// Whether the request may be sent to a server again although the outcome of the first attempt is unknown, because
    /// it is harmless to execute it twice. It is set in [`REQUESTS_TO_SERVER`] only.
    pub repeatable: bool,
    /// Whether the method changes the state of the session, so that it must be sent again when a session is
    /// re-established. It is set for methods that clients send only.
    pub changes_session: bool,
}

impl Row {
    const fn request<M: Method>(revisions: [bool; COUNT]) -> Self {
        Self::new(M::NAME, revisions)
    }

    const fn notification<N: Notification>(revisions: [bool; COUNT]) -> Self {
        Self::new(N::NAME, revisions)
    }

    const fn new(name: &'static str, revisions: [bool; COUNT]) -> Self {
        Self {
            name,
            revisions: Revisions::new(revisions),
            named: None,
            repeatable: false,
            changes_session: false,
        }
    }

    const fn named(mut self, member: &'static str) -> Self {
        self.named = Some(member);
        self
    }

    const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    const fn changes_session(mut self) -> Self {
        self.changes_session = true;
        self
    }

    /// Returns whether a revision has the method.
    #[must_use]
    pub const fn is_in(&self, revision: Revision) -> bool {
        self.revisions.has(revision)
    }
}

/// Returns the row of a method in one of the tables.
///
/// ```
/// use oxmcp_protocol::{Revision, method};
///
/// let ping = method::find(method::REQUESTS_TO_SERVER, "ping").unwrap();
/// assert!(ping.is_in(Revision::V2025_11_25) && !ping.is_in(Revision::V2026_07_28));
/// assert!(method::find(method::REQUESTS_TO_SERVER, "pong").is_none());
/// ```
#[must_use]
pub fn find(table: &'static [Row], name: &str) -> Option<&'static Row> {
    // A linear search over at most 21 rows, most of which differ in length: it is faster than any hash.
    table.iter().find(|row| row.name == name)
}

/// Returns whether a revision has a method.
#[must_use]
pub fn is_in(table: &'static [Row], name: &str, revision: Revision) -> bool {
    find(table, name).is_some_and(|row| row.is_in(revision))
}

// The columns are the revisions in their order: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.

/// The requests that clients send, the frequent ones first.
pub const REQUESTS_TO_SERVER: &[Row] = &[
    Row::request::<CallTool>([Y, Y, Y, Y, Y]).named("name"),
    Row::request::<ListTools>([Y, Y, Y, Y, Y]).repeatable(),
    Row::request::<ReadResource>([Y, Y, Y, Y, Y])
        .named("uri")
        .repeatable(),
    Row::request::<ListResources>([Y, Y, Y, Y, Y]).repeatable(),
    Row::request::<ListResourceTemplates>([Y, Y, Y, Y, Y]).repeatable(),
    Row::request::<GetPrompt>([Y, Y, Y, Y, Y])
        .named("name")
        .repeatable(),
    Row::request::<ListPrompts>([Y, Y, Y, Y, Y]).repeatable(),
    Row::request::<Complete>([Y, Y, Y, Y, Y]).repeatable(),
    Row::request::<Ping>([Y, Y, Y, Y, N]).repeatable(),
    Row::request::<Initialize>([Y, Y, Y, Y, N]).changes_session(),
    Row::request::<Discover>([N, N, N, N, Y]),
    Row::request::<Listen>([N, N, N, N, Y]),
    Row::request::<SetLevel>([Y, Y, Y, Y, N])
        .repeatable()
        .changes_session(),
    Row::request::<Subscribe>([Y, Y, Y, Y, N])
        .repeatable()
        .changes_session(),
    Row::request::<Unsubscribe>([Y, Y, Y, Y, N])
        .repeatable()
        .changes_session(),
    Row::request::<GetTask>([N, N, N, Y, N]),
    Row::request::<GetTaskPayload>([N, N, N, Y, N]),
    Row::request::<CancelTask>([N, N, N, Y, N]),
    Row::request::<ListTasks>([N, N, N, Y, N]),
];

/// The requests that servers send. Modern servers send none: they use
/// [`InputRequest`](crate::mrtr::requests::InputRequest)s.
pub const REQUESTS_TO_CLIENT: &[Row] = &[
    Row::request::<CreateMessage>([Y, Y, Y, Y, N]),
    Row::request::<Elicit>([N, N, Y, Y, N]),
    Row::request::<ListRoots>([Y, Y, Y, Y, N]),
    Row::request::<Ping>([Y, Y, Y, Y, N]),
    Row::request::<GetTask>([N, N, N, Y, N]),
    Row::request::<GetTaskPayload>([N, N, N, Y, N]),
    Row::request::<CancelTask>([N, N, N, Y, N]),
    Row::request::<ListTasks>([N, N, N, Y, N]),
];

/// The methods of the [`InputRequest`](crate::mrtr::requests::InputRequest)s that modern servers send within the result
/// of a request.
pub const INPUT_REQUESTS: &[Row] = &[
    Row::request::<CreateMessage>([N, N, N, N, Y]),
    Row::request::<Elicit>([N, N, N, N, Y]),
    Row::request::<ListRoots>([N, N, N, N, Y]),
];

/// The requests whose results may ask the client for input.
pub const MULTI_ROUND_TRIP: &[Row] = &[
    Row::request::<CallTool>([N, N, N, N, Y]),
    Row::request::<GetPrompt>([N, N, N, N, Y]),
    Row::request::<ReadResource>([N, N, N, N, Y]),
];

/// The notifications that clients send.
pub const NOTIFICATIONS_TO_SERVER: &[Row] = &[
    Row::notification::<Cancelled>([Y, Y, Y, Y, Y]),
    Row::notification::<Progress>([Y, Y, Y, Y, N]),
    Row::notification::<Initialized>([Y, Y, Y, Y, N]).changes_session(),
    Row::notification::<RootsListChanged>([Y, Y, Y, Y, N]),
    Row::notification::<TaskStatusChanged>([N, N, N, Y, N]),
];

/// The notifications that servers send.
pub const NOTIFICATIONS_TO_CLIENT: &[Row] = &[
    Row::notification::<Progress>([Y, Y, Y, Y, Y]),
    Row::notification::<LoggingMessage>([Y, Y, Y, Y, Y]),
    Row::notification::<ResourceUpdated>([Y, Y, Y, Y, Y]),
    Row::notification::<ResourceListChanged>([Y, Y, Y, Y, Y]),
    Row::notification::<ToolListChanged>([Y, Y, Y, Y, Y]),
    Row::notification::<PromptListChanged>([Y, Y, Y, Y, Y]),
    Row::notification::<Cancelled>([Y, Y, Y, Y, Y]),
    Row::notification::<SubscriptionsAcknowledged>([N, N, N, N, Y]),
    Row::notification::<ElicitationComplete>([N, N, N, Y, N]),
    Row::notification::<TaskStatusChanged>([N, N, N, Y, N]),
];
