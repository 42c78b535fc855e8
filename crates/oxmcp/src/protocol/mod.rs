//! The types of the protocol, one file per page of the specification, each holding every revision's members.
//!
//! Types hold the members of all revisions at once; their docs say which revisions have which. What is sent is made
//! to fit the peer's revision on its way out, so nobody else has to care.
//!
//! Structs are open for members that later revisions add, and enums for variants: make them by their constructors,
//! and set what else there is to set.
//!
//! ```
//! use oxmcp::protocol::{Tool, ToolAnnotations};
//!
//! let mut tool = Tool::new("add", serde_json::json!({"type": "object"}))
//!     .with_description("Add two numbers")
//!     .with_annotations(ToolAnnotations::default().with_read_only_hint(true));
//! tool.meta.insert("com.example/cost", 3);
//! ```

mod base;
mod blob;
mod caching;
mod cancellation;
mod capabilities;
mod completion;
mod content;
mod discover;
pub(crate) mod elicit_check;
mod elicit_expected;
mod elicit_format;
mod elicit_schema;
mod elicit_select;
mod elicitation;
mod errors;
pub(crate) mod http_headers;
mod json;
mod lifecycle;
mod logging;
mod meta;
pub mod method;
mod mrtr;
pub(crate) mod negotiation;
mod open_enum;
mod ordered_map;
mod pagination;
mod payload;
mod progress;
mod projection;
mod prompts;
#[cfg(test)]
mod proof;
mod request_meta;
mod resource_contents;
mod resources;
pub mod revision;
mod roots;
mod sampling;
mod sampling_check;
mod sampling_content;
mod subscriptions;
mod tagged;
mod tasks;
mod tool_outline;
#[cfg(test)]
mod tool_outline_tests;
mod tool_result;
mod tools;
mod wire;

pub use base::{EmptyParams, EmptyResult, NotificationParams};
pub use blob::Blob;
pub use caching::{CacheHint, CacheScope};
pub(crate) use caching::{Freshness, peek_freshness};
pub use cancellation::CancelledParams;
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, PromptsCapability, ResourcesCapability,
    RootsCapability, SamplingCapability, ServerCapabilities, ToolsCapability,
};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference, PromptReference, ResourceTemplateReference,
};
pub use content::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, Icon, IconTheme, ImageContent, Role,
    TextContent,
};
pub use discover::DiscoverResult;
pub use elicit_schema::{
    BooleanSchema, ElicitSchema, NumberKind, NumberSchema, PrimitiveSchema, StringFormat,
    StringSchema,
};
pub use elicit_select::{EnumOption, EnumOptions, MultiSelectSchema, SingleSelectSchema};
pub use elicitation::{
    ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams,
};
pub use errors::{
    MissingClientCapabilityData, ResourceNotFoundData, UnsupportedProtocolVersionData,
    UrlElicitationRequiredData,
};
pub use json::{JsonObject, RawJson};
pub use lifecycle::{Implementation, InitializeParams, InitializeResult};
pub use logging::{LoggingLevel, LoggingMessageParams, SetLevelParams};
pub use meta::Meta;
pub use method::{Method, Notification};
pub(crate) use mrtr::{Asked, AskedInput, with_answers};
pub use mrtr::{InputRequest, InputRequests, InputRequiredResult, InputResponse, InputResponses};
pub use ordered_map::{OrderedMap, OrderedMapIter};
pub use pagination::{Cursor, PaginatedParams};
pub use payload::Payload;
pub(crate) use payload::{encode_payload, has_result_type};
pub(crate) use progress::write_progress;
pub use progress::{ProgressParams, ProgressToken};
pub(crate) use projection::{Project, project_error};

pub use prompts::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub(crate) use request_meta::{Era, RequestMeta, RequestParams, unsupported_version};
pub use resource_contents::{ResourceBody, ResourceContents};
pub(crate) use resources::covers;
pub use resources::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceTemplate, ResourceUpdatedParams, SubscribeParams,
};
pub use revision::Revision;
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingMessage, StopReason, ToolChoice, ToolChoiceMode,
};
pub(crate) use sampling_check::check_tool_results;
pub use sampling_content::{SamplingContent, ToolResultContent, ToolUseContent};
pub use subscriptions::{AcknowledgedParams, ListenParams, ListenResult, SubscriptionFilter};
pub use tasks::{
    ClientTasksCapability, CreateTaskResult, ListTasksResult, RelatedTaskMetadata,
    ServerTasksCapability, Task, TaskMetadata, TaskParams, TaskPayload, TaskStatus,
};
pub(crate) use tool_outline::Outline;
pub(crate) use tool_result::TextResult;
pub use tools::{
    CallToolParams, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
    ToolExecution,
};
pub(crate) use wire::{HasMeta, ResultType, encode_result, into_text, peek_result_type};
