//! Projection of capabilities, of params and results whose parts are projected elsewhere, and of those that are the
//! same in every revision.

use crate::{
    mrtr::requests::{InputRequest, InputRequiredResult},
    revision::{
        projection::{
            content::described,
            project::{Project, part_meta},
        },
        version::Revision,
    },
    types::{
        base::{CancelledParams, EmptyParams, EmptyResult, NotificationParams},
        caching::CacheScope,
        capabilities::{
            ClientCapabilities, ElicitationCapability, SamplingCapability, ServerCapabilities,
        },
        completion::{CompleteParams, CompleteResult, Completion, CompletionReference},
        elicitation::params::ElicitationCompleteParams,
        lifecycle::{DiscoverResult, Implementation, InitializeParams, InitializeResult},
        logging::{LoggingMessageParams, SetLevelParams},
        pagination::PaginatedParams,
        progress::ProgressParams,
        prompts::{GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument},
        resources::{
            ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams,
            ReadResourceResult, ResourceUpdatedParams, SubscribeParams,
        },
        roots::{ListRootsResult, Root},
        subscriptions::{AcknowledgedParams, ListenParams, ListenResult},
        tasks::{CreateTaskResult, ListTasksResult, Task, TaskParams, TaskPayload},
        tools::ListToolsResult,
    },
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

/// Sets the caching members if the revision has them, which then are mandatory, and removes them otherwise.
fn cached(ttl_ms: &mut Option<u64>, scope: &mut Option<CacheScope>, to: Revision) {
    if to.has_caching() {
        ttl_ms.get_or_insert(0);
        scope.get_or_insert_default();
    } else {
        *ttl_ms = None;
        *scope = None;
    }
}

/// Implements [`Project`] for results with caching members, each with the member that must be projected, too.
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

impl Project for ClientCapabilities {
    fn project(&mut self, to: Revision) {
        if let Some(roots) = &mut self.roots
            && !to.has_roots_list_changed()
        {
            roots.list_changed = false;
        }
        if !to.has_sampling_tools()
            && let Some(sampling) = &mut self.sampling
        {
            *sampling = SamplingCapability::default();
        }
        self.project_elicitation(to);
        if !to.has_tasks() {
            self.tasks = None;
        }
    }
}

impl ClientCapabilities {
    /// Revisions without modes have forms only, so a client without forms must not declare the capability there.
    fn project_elicitation(&mut self, to: Revision) {
        if to.has_elicitation_modes() {
            return;
        }
        let shows_forms = |elicitation: &ElicitationCapability| elicitation.has_form();
        self.elicitation = self
            .elicitation
            .take()
            .filter(|elicitation| to.has_elicitation() && shows_forms(elicitation))
            .map(|_| ElicitationCapability::default());
    }
}

impl Project for ServerCapabilities {
    fn project(&mut self, to: Revision) {
        if !to.has_completions_capability() {
            self.completions = None;
        }
        if !to.has_tasks() {
            self.tasks = None;
        }
    }
}

impl Project for Implementation {
    fn project(&mut self, to: Revision) {
        described(&mut self.title, &mut self.icons, to);
        if !to.has_implementation_details() {
            self.description = None;
            self.website_url = None;
        }
    }
}
