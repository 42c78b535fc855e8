//! The params and results whose parts are projected elsewhere, and those that are the same in every revision.

use super::{Project, content::described, part_meta};
use crate::protocol::{
    AcknowledgedParams, CacheScope, CancelledParams, CompleteParams, CompleteResult, Completion,
    CompletionReference, CreateTaskResult, DiscoverResult, ElicitationCompleteParams, EmptyParams,
    EmptyResult, GetPromptParams, GetPromptResult, InitializeParams, InitializeResult,
    InputRequest, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListRootsResult, ListTasksResult, ListToolsResult, ListenParams,
    ListenResult, LoggingMessageParams, NotificationParams, PaginatedParams, ProgressParams,
    Prompt, PromptArgument, ReadResourceParams, ReadResourceResult, ResourceUpdatedParams,
    Revision, Root, SetLevelParams, SubscribeParams, Task, TaskParams, TaskPayload,
};

macro_rules! same_in_every_revision {
    ($($type:ty),+ $(,)?) => { $(
        impl Project for $type {
            fn project(&mut self, _to: Revision) {}
        }
    )+ };
}

same_in_every_revision!(
    AcknowledgedParams,
    CancelledParams,
    CreateTaskResult,
    ElicitationCompleteParams,
    EmptyParams,
    EmptyResult,
    ListTasksResult,
    ListenParams,
    ListenResult,
    LoggingMessageParams,
    NotificationParams,
    PaginatedParams,
    ResourceUpdatedParams,
    SetLevelParams,
    SubscribeParams,
    Task,
    TaskParams,
    TaskPayload,
);

/// Where results say how long they stay fresh, they must; where they do not, they must not.
fn cached(ttl_ms: &mut Option<u64>, scope: &mut Option<CacheScope>, to: Revision) {
    if to.has_caching() {
        ttl_ms.get_or_insert(0);
        scope.get_or_insert_default();
    } else {
        *ttl_ms = None;
        *scope = None;
    }
}

/// Results that say how long they stay fresh, each with the member that may have to be fitted.
macro_rules! cached {
    ($($type:ty: $member:ident,)+) => {
        $(impl Project for $type {
            fn project(&mut self, to: Revision) {
                self.$member.project(to);
                cached(&mut self.ttl_ms, &mut self.cache_scope, to);
            }
        })+
    };
}

cached! {
    ListToolsResult: tools,
    ListResourcesResult: resources,
    ListResourceTemplatesResult: resource_templates,
    ListPromptsResult: prompts,
    ReadResourceResult: contents,
    DiscoverResult: capabilities,
}

impl Project for GetPromptResult {
    fn project(&mut self, to: Revision) {
        self.messages.project(to);
    }
}

impl Project for Prompt {
    fn project(&mut self, to: Revision) {
        described(&mut self.title, &mut self.icons, to);
        self.arguments.project(to);
        part_meta(&mut self.meta, to);
    }
}

impl Project for PromptArgument {
    fn project(&mut self, to: Revision) {
        if !to.has_titles() {
            self.title = None;
        }
    }
}

impl Project for ListRootsResult {
    fn project(&mut self, to: Revision) {
        self.roots.project(to);
    }
}

impl Project for Root {
    fn project(&mut self, to: Revision) {
        part_meta(&mut self.meta, to);
    }
}

impl Project for CompleteResult {
    fn project(&mut self, _to: Revision) {
        let completion = &mut self.completion;
        let found = completion.values.len();
        if found > Completion::MAX_VALUES {
            completion.values.truncate(Completion::MAX_VALUES);
            completion.has_more = true;
            completion.total.get_or_insert(found as u64);
        }
    }
}

impl Project for CompleteParams {
    fn project(&mut self, to: Revision) {
        if !to.has_completion_context() {
            self.context = None;
        }
        if let CompletionReference::Prompt(prompt) = &mut self.reference
            && !to.has_titles()
        {
            prompt.title = None;
        }
    }
}

impl Project for InitializeParams {
    fn project(&mut self, to: Revision) {
        self.capabilities.project(to);
        self.client_info.project(to);
    }
}

impl Project for InitializeResult {
    fn project(&mut self, to: Revision) {
        self.capabilities.project(to);
        self.server_info.project(to);
    }
}

impl Project for ProgressParams {
    fn project(&mut self, to: Revision) {
        if !to.has_progress_messages() {
            self.message = None;
        }
    }
}

impl Project for ReadResourceParams {
    fn project(&mut self, to: Revision) {
        if !to.has_input_responses() {
            self.input_responses = None;
            self.request_state = None;
        }
    }
}

impl Project for GetPromptParams {
    fn project(&mut self, to: Revision) {
        if !to.has_input_responses() {
            self.input_responses = None;
            self.request_state = None;
        }
    }
}

impl Project for InputRequiredResult {
    fn project(&mut self, to: Revision) {
        if let Some(requests) = &mut self.input_requests {
            for request in requests.values_mut() {
                request.project(to);
            }
        }
    }
}

impl Project for InputRequest {
    fn project(&mut self, to: Revision) {
        match self {
            Self::Elicit(params) => params.project(to),
            Self::CreateMessage(params) => params.project(to),
            Self::ListRoots(_) | Self::Unknown { .. } => {}
        }
    }
}
