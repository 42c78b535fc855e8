//! Types of the protocol: one file per page of the specification, with the members of all revisions.
//!
//! A type holds the members of all revisions at once; its docs say which revisions have which member. Outgoing messages are fitted
//! to the peer's revision ([projection](crate::revision)), so no other code has to distinguish revisions.
//!
//! Later revisions may add members to structs and variants to enums, so create a struct by its constructor, and set its other
//! members afterwards.
//!
//! ```
//! use oxmcp_protocol::{Tool, ToolAnnotations};
//!
//! let mut tool = Tool::new("add", serde_json::json!({"type": "object"}))
//!     .with_description("Add two numbers")
//!     .with_annotations(ToolAnnotations::default().with_read_only_hint(true));
//! tool.meta.insert("com.example/cost", 3);
//! ```

pub(crate) mod annotations;
pub(crate) mod base;
pub(crate) mod caching;
pub(crate) mod capabilities;
pub(crate) mod completion;
pub(crate) mod content;
pub(crate) mod elicitation;
pub(crate) mod errors;
pub(crate) mod lifecycle;
pub(crate) mod logging;
pub(crate) mod pagination;
pub(crate) mod progress;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod roots;
pub(crate) mod sampling;
pub(crate) mod sampling_content;
pub(crate) mod subscriptions;
pub(crate) mod tasks;
pub(crate) mod tool_index;
pub(crate) mod tools;

pub use annotations::{Annotations, Icon, IconTheme, Role};
pub use base::{CancelledParams, EmptyParams, EmptyResult, NotificationParams};
pub use caching::{CacheHint, CacheScope};
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, PromptsCapability, ResourcesCapability,
    RootsCapability, SamplingCapability, ServerCapabilities, ToolsCapability,
};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference, PromptReference, ResourceTemplateReference,
};
pub use content::{AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent};
pub use elicitation::{
    params::{
        ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams,
        ElicitationCompleteParams,
    },
    schema::{
        BooleanSchema, ElicitSchema, NumberKind, NumberSchema, PrimitiveSchema, StringFormat,
        StringSchema,
    },
    select::{EnumOption, EnumOptions, MultiSelectSchema, SingleSelectSchema},
};
pub use errors::{
    MissingClientCapabilityData, ResourceNotFoundData, UnsupportedProtocolVersionData,
    UrlElicitationRequiredData,
};
pub use lifecycle::{DiscoverResult, Implementation, InitializeParams, InitializeResult};
pub use logging::{LoggingLevel, LoggingMessageParams, SetLevelParams};
pub use pagination::{Cursor, PaginatedParams};
pub use progress::ProgressParams;
pub use prompts::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub use resources::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceBody, ResourceContents, ResourceTemplate, ResourceUpdatedParams,
    SubscribeParams,
};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingMessage, StopReason, ToolChoice, ToolChoiceMode,
};
pub use sampling_content::{SamplingContent, ToolResultContent, ToolUseContent};
pub use subscriptions::{AcknowledgedParams, ListenParams, ListenResult, SubscriptionFilter};
pub use tasks::{
    ClientTasksCapability, CreateTaskResult, ListTasksResult, RelatedTaskMetadata,
    ServerTasksCapability, Task, TaskMetadata, TaskParams, TaskPayload, TaskStatus,
};
pub use tool_index::ToolIndex;
pub use tools::{
    CallToolParams, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
    ToolExecution,
};

pub use crate::{
    meta::{object::Meta, progress_token::ProgressToken, trace_context::TraceContext},
    mrtr::{
        requests::{InputRequest, InputRequests, InputRequiredResult},
        responses::{InputResponse, InputResponses},
    },
    result::payload::Payload,
    revision::method::{Method, Notification},
    values::{
        blob::Blob,
        json::{JsonObject, RawJson},
        ordered_map::{OrderedMap, OrderedMapIter},
    },
};
