use std::{fmt, sync::Arc};

use super::{Resource, ResourceTemplate, reader::Reader};
use crate::{
    Result,
    codec::uri_template::Matcher,
    protocol::{
        ListResourceTemplatesResult, ListResourcesResult, Resource as ResourceDefinition,
        ResourceTemplate as TemplateDefinition, SubscriptionFilter,
    },
    server::{
        completion::{Completers, Completes},
        features::Features,
        registry::{Feature, Registry, Visibility},
    },
    session::Pace,
};

/// A resource in a server's registry: nothing about it changes any more.
pub(crate) struct RegisteredResource {
    definition: ResourceDefinition,
    pub(super) reader: Arc<Reader>,
    visibility: Option<Visibility>,
}

/// A template in a server's registry.
pub(crate) struct RegisteredTemplate {
    definition: TemplateDefinition,
    pub(super) matcher: Matcher,
    completers: Completers,
    pub(super) reader: Arc<Reader>,
    visibility: Option<Visibility>,
}

impl RegisteredResource {
    pub(crate) fn new(resource: Resource) -> Result<Arc<Self>> {
        let Resource {
            definition,
            handler,
            hint,
            visibility,
            asks,
            problem,
        } = resource;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let reader = Reader {
            handler,
            mime_type: definition.mime_type.clone(),
            hint,
            asks,
            is_restricted: visibility.is_some(),
            pace: Arc::new(Pace::new()),
        };
        Ok(Arc::new(Self {
            definition,
            reader: Arc::new(reader),
            visibility,
        }))
    }
}

impl RegisteredTemplate {
    pub(crate) fn new(template: ResourceTemplate) -> Result<Arc<Self>> {
        let ResourceTemplate {
            definition,
            matcher,
            completers,
            handler,
            hint,
            visibility,
            asks,
        } = template;
        let reader = Reader {
            handler,
            mime_type: definition.mime_type.clone(),
            hint,
            asks,
            is_restricted: visibility.is_some(),
            pace: Arc::new(Pace::new()),
        };
        Ok(Arc::new(Self {
            definition,
            matcher: matcher?,
            completers,
            reader: Arc::new(reader),
            visibility,
        }))
    }
}

impl Feature for RegisteredResource {
    type Definition = ResourceDefinition;
    type Page = ListResourcesResult;

    fn id(&self) -> &str {
        &self.definition.uri
    }

    fn definition(&self) -> &ResourceDefinition {
        &self.definition
    }

    fn visibility(&self) -> Option<&Visibility> {
        self.visibility.as_ref()
    }

    fn changed() -> SubscriptionFilter {
        SubscriptionFilter::default().with_resources_list_changed(true)
    }

    fn registry(features: &Features) -> &Registry<Self> {
        &features.resources
    }

    fn registry_mut(features: &mut Features) -> &mut Registry<Self> {
        &mut features.resources
    }
}

impl Feature for RegisteredTemplate {
    type Definition = TemplateDefinition;
    type Page = ListResourceTemplatesResult;

    fn id(&self) -> &str {
        &self.definition.uri_template
    }

    fn definition(&self) -> &TemplateDefinition {
        &self.definition
    }

    fn visibility(&self) -> Option<&Visibility> {
        self.visibility.as_ref()
    }

    fn changed() -> SubscriptionFilter {
        RegisteredResource::changed()
    }

    fn registry(features: &Features) -> &Registry<Self> {
        &features.templates
    }

    fn registry_mut(features: &mut Features) -> &mut Registry<Self> {
        &mut features.templates
    }
}

impl Completes for RegisteredTemplate {
    const KIND: &'static str = "resource template";

    fn completers(&self) -> &Completers {
        &self.completers
    }
}

impl fmt::Debug for RegisteredResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegisteredResource")
            .field(&self.definition.uri)
            .finish()
    }
}

impl fmt::Debug for RegisteredTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegisteredTemplate")
            .field(&self.definition.uri_template)
            .finish()
    }
}
