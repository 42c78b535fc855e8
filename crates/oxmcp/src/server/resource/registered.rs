//! Registered resources and templates: the resources and templates in a server's registry, which requests can read.

use std::{pin::pin, sync::Arc};

use oxmcp_protocol::{
    CacheHint, CacheScope, ReadResourceResult, Resource as ResourceDefinition,
    ResourceTemplate as TemplateDefinition, Revision,
    internal::encode_result,
    uri_template::{Captures, Matcher},
};

use super::{
    Resource, ResourceTemplate,
    handler::{ErasedHandler, Held, Target},
    template::Lister,
};
use crate::{
    debug::opaque_debug,
    error::Result,
    logged::Logged,
    server::{
        completion::{Completers, Completes},
        definitions::options::{check_access, check_icons},
        registry::{Access, AskMode, Feature, Registry, impl_feature},
    },
    session::{
        connection::RequestContext,
        inbound::{
            body::{Body, Encode},
            inline_execution::InlineExecution,
            run::Work,
            watchdog::{Watched, watched},
        },
    },
};

/// A resource in a server's registry. It is immutable.
pub(crate) struct RegisteredResource {
    definition: ResourceDefinition,
    reader: Arc<Reader>,
    access: Access,
}

/// A template in a server's registry. It is immutable.
pub(crate) struct RegisteredTemplate {
    definition: TemplateDefinition,
    matcher: Matcher,
    completers: Completers,
    reader: Arc<Reader>,
    access: Access,
    lister: Option<Lister>,
}

impl_feature! {
    RegisteredResource("resource"): Resource by uri,
    ListResources -> ListResourcesResult.resources, with_resources_list_changed
}

impl_feature! {
    RegisteredTemplate("resource template"): ResourceTemplate by uri_template,
    ListResourceTemplates -> ListResourceTemplatesResult.resource_templates, with_resources_list_changed
}

impl RegisteredResource {
    /// # Errors
    /// The first mistake in the definition.
    pub(crate) fn new(resource: Resource) -> Result<Arc<Self>> {
        let Resource {
            definition,
            handler,
            cache,
            access,
            ask_mode,
            mistake,
        } = resource;
        if let Some(mistake) = mistake {
            return Err(mistake);
        }
        check_icons::<Self>(&definition.uri, &definition.icons)?;
        check_access::<Self>(&definition.uri, &access)?;
        let reader = Reader {
            name: definition.uri.as_str().into(),
            handler,
            mime_type: definition.mime_type.clone(),
            cache,
            ask_mode,
            is_restricted: access.is_restricted(),
            inline: Arc::new(InlineExecution::new()),
        };
        Ok(Arc::new(Self {
            definition,
            reader: Arc::new(reader),
            access,
        }))
    }

    pub(crate) fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }
}

impl RegisteredTemplate {
    /// # Errors
    /// The first mistake in the definition.
    pub(crate) fn new(template: ResourceTemplate) -> Result<Arc<Self>> {
        let ResourceTemplate {
            definition,
            matcher,
            completers,
            handler,
            cache,
            access,
            ask_mode,
            lister,
        } = template;
        check_icons::<Self>(&definition.uri_template, &definition.icons)?;
        check_access::<Self>(&definition.uri_template, &access)?;
        let reader = Reader {
            name: definition.uri_template.as_str().into(),
            handler,
            mime_type: definition.mime_type.clone(),
            cache,
            ask_mode,
            is_restricted: access.is_restricted(),
            inline: Arc::new(InlineExecution::new()),
        };
        Ok(Arc::new(Self {
            definition,
            matcher: matcher?,
            completers,
            reader: Arc::new(reader),
            access,
            lister,
        }))
    }

    /// The record of the handler's speed.
    pub(crate) fn inline_execution(&self) -> &Arc<InlineExecution> {
        &self.reader.inline
    }

    pub(crate) fn has_list(&self) -> bool {
        self.lister.is_some()
    }

    /// The resources that the template lists for a caller.
    ///
    /// # Errors
    /// The errors of the listing function.
    pub(crate) async fn list(&self, cx: RequestContext) -> Result<Vec<ResourceDefinition>> {
        let Some(lister) = &self.lister else {
            return Ok(Vec::new());
        };
        let mut listed = lister(cx).await?;
        listed.retain(|resource| {
            let fits = self.matcher.captures(&resource.uri).is_some();
            if !fits {
                tracing::warn!(template = self.definition.uri_template, uri = %Logged(&resource.uri), "omitting a listed resource whose URI does not match its template");
            }
            fits
        });
        Ok(listed)
    }

    pub(crate) fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }
}

impl Completes for RegisteredTemplate {
    fn completers(&self) -> &Completers {
        &self.completers
    }
}

/// The handler of a resource or a template, and the parts of the definition that are added to its results.
pub(crate) struct Reader {
    /// The URI or the template.
    name: Box<str>,
    handler: ErasedHandler,
    mime_type: Option<String>,
    cache: Option<CacheHint>,
    ask_mode: AskMode,
    /// Whether only some callers may read the resource.
    is_restricted: bool,
    inline: Arc<InlineExecution>,
}

opaque_debug!(Reader, |it| { name: it.name });

impl Watched for Reader {
    fn label(&self) -> String {
        format!("resource {}", self.name)
    }
}

impl Reader {
    /// The reader of all URIs that a server does not list.
    pub(crate) fn fallback(handler: ErasedHandler, ask_mode: AskMode) -> Self {
        Self {
            name: "without an entry".into(),
            handler,
            mime_type: None,
            cache: None,
            ask_mode,
            is_restricted: false,
            inline: Arc::new(InlineExecution::new()),
        }
    }

    pub(crate) fn ask_mode(&self) -> AskMode {
        self.ask_mode
    }

    /// The work of one request. It may be called again, with the same target.
    pub(crate) fn call(self: &Arc<Self>, context: RequestContext, target: Target) -> Work {
        let is_alone = context.is_alone();
        let reader = Arc::clone(self);
        let future = Box::pin(async move {
            let reading = pin!(reader.read(context, target));
            watched(&reader, reading).await
        });
        Work::of(&self.inline, is_alone, future)
    }

    async fn read(&self, context: RequestContext, target: Target) -> Result<Body> {
        let uri = Arc::clone(&target.uri);
        let held = Arc::clone(&target.held);
        let mut result = (self.handler)(context, target)?.await?;
        self.fill_in(&mut result, &uri);
        Ok(Body::of(Holding {
            result,
            _held: held,
        }))
    }

    /// Adds members of the definition that the handler has omitted.
    fn fill_in(&self, result: &mut ReadResourceResult, uri: &str) {
        for contents in &mut result.contents {
            if contents.uri.is_empty() {
                uri.clone_into(&mut contents.uri);
            }
            // Contents with another URI belong to another resource, which may be of another type.
            if contents.mime_type.is_none() && contents.uri == uri {
                contents.mime_type.clone_from(&self.mime_type);
            }
        }
        if let Some(mut hint) = self.cache {
            if self.is_restricted {
                hint.scope = CacheScope::Private;
            }
            result.ttl_ms.get_or_insert_with(|| hint.ttl_ms());
            result.cache_scope.get_or_insert(hint.scope);
        }
    }
}

/// A result, and the permit that is held until the result has been encoded.
#[derive(Debug)]
struct Holding {
    result: ReadResourceResult,
    _held: Held,
}

impl Encode for Holding {
    fn encode(&mut self, out: &mut Vec<u8>, revision: Revision, info: Option<&str>) -> Result<()> {
        Ok(encode_result(out, &mut self.result, revision, info)?)
    }
}

/// The templates in the order of matching: by the most literal characters, then the fewest variables, then their text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes(Arc<[Arc<RegisteredTemplate>]>);

impl Routes {
    pub(crate) fn of(templates: &Registry<RegisteredTemplate>) -> Self {
        let mut sorted: Vec<_> = templates.after(None).cloned().collect();
        // The registry is sorted by their text, and the sort is stable.
        sorted.sort_by_cached_key(|template| template.matcher.rank());
        Self(sorted.into())
    }

    /// The first template that matches the URI and that the caller sees.
    pub(crate) fn find(
        &self,
        uri: &str,
        cx: &RequestContext,
    ) -> Option<(&Arc<RegisteredTemplate>, Captures)> {
        let mut seen = self.0.iter().filter(|template| template.is_visible(cx));
        seen.find_map(|template| Some((template, template.matcher.captures(uri)?)))
    }

    /// The templates that match the URI. The first one that the caller sees serves the request.
    #[cfg(all(feature = "auth", feature = "http-server"))]
    pub(crate) fn candidates(&self, uri: &str) -> impl Iterator<Item = &RegisteredTemplate> {
        let all = self.0.iter().map(|template| &**template);
        all.filter(move |template| template.matcher.captures(uri).is_some())
    }

    /// Whether a template matches the URI.
    pub(crate) fn has_match(&self, uri: &str) -> bool {
        let mut all = self.0.iter();
        all.any(|template| template.matcher.captures(uri).is_some())
    }

    /// Whether the URI matches templates, but none that the caller sees.
    pub(crate) fn hides(&self, uri: &str, cx: &RequestContext) -> bool {
        let mut of_uri = self.0.iter();
        let mut of_uri = of_uri
            .by_ref()
            .filter(|template| template.matcher.captures(uri).is_some());
        let is_hidden = of_uri.next().is_some_and(|first| !first.is_visible(cx));
        is_hidden && of_uri.all(|template| !template.is_visible(cx))
    }
}
