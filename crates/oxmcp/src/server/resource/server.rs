//! Methods of a server to add and remove resources and resource templates.

use std::{future::Future, sync::Arc};

use oxmcp_protocol::CacheHint;

use super::{
    FileResources, IntoResourceResult, Reader, RegisteredResource, RegisteredTemplate, Resource,
    ResourceTemplate, Routes, handler::erase_fallback,
};
use crate::{
    error::Result,
    server::{
        registry::{AskMode, Feature, IntoFeature},
        server::Server,
    },
    session::{
        connection::RequestContext,
        handler::state_scope::{OfState, StateScope},
    },
};

impl Server {
    /// Adds a resource. The URIs of a server's resources must be unique.
    ///
    /// Mistakes in the resource are reported by [`check`](Self::check), and when the server begins to serve.
    ///
    /// ```
    /// use oxmcp::{Resource, Server};
    ///
    /// let server = Server::new("library", "1.0.0")
    ///     .resource(Resource::text("docs://license", "license", "Do what you like."));
    /// # let _ = server;
    /// ```
    #[must_use]
    #[doc(alias("resources/list", "resources/read"))]
    pub fn resource(self, resource: impl IntoFeature<Resource>) -> Self {
        self.resources([resource.into_feature()])
    }

    /// Adds resources, like [`resource`](Self::resource). Clients list them sorted by URI. `resources([])` declares the
    /// capability without any resources, so that they can be added later.
    #[must_use]
    pub fn resources(self, resources: impl IntoIterator<Item = Resource>) -> Self {
        self.extended(registered(resources))
    }

    /// Adds resources to a server that may be running, and notifies connected clients. Replaces resources with the same URIs.
    ///
    /// # Errors
    /// If a URI is not absolute. Then no resource is added.
    ///
    /// ```
    /// use oxmcp::{Resource, Server};
    ///
    /// let server = Server::new("library", "1.0.0");
    /// // … and later, while it serves:
    /// server.add_resources([Resource::text("docs://license", "license", "Do what you like.")])?;
    /// server.remove_resources(["docs://license"]);
    ///
    /// let error = server.add_resources([Resource::text("license.txt", "license", "")]).unwrap_err();
    /// assert!(error.to_string().contains("missing scheme"));
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    pub fn add_resources(&self, resources: impl IntoIterator<Item = Resource>) -> Result<()> {
        self.add(registered(resources)?)
    }

    /// Removes resources by URI, and notifies connected clients of the change. Unknown URIs are ignored.
    pub fn remove_resources<U: AsRef<str>>(&self, uris: impl IntoIterator<Item = U>) {
        self.remove::<RegisteredResource>(uris);
    }

    /// Returns the URIs of all resources, also of those that only some callers see.
    #[must_use]
    pub fn resource_uris(&self) -> Vec<String> {
        self.ids::<RegisteredResource>()
    }

    /// Notifies connected clients that the listing of resources has changed.
    ///
    /// Call it when the resources that [templates list](ResourceTemplate::list) have changed;
    /// [`add_resources`](Self::add_resources) and similar methods notify clients themselves.
    pub fn resources_changed(&self) {
        self.changed(RegisteredResource::list_changed());
    }

    /// Sets the cache hint of the listing of resources: how long it stays fresh, and whether it may be shared. If some resources
    /// are [visible only to some callers](Resource::visible_to), the listing is private, regardless of the hint.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_resources(self, hint: CacheHint) -> Self {
        self.with(|features| features.resources.cache = hint)
    }

    /// Adds a resource template. The patterns of a server's templates must be unique.
    ///
    /// Mistakes are reported by [`check`](Self::check), and when the server begins to serve.
    #[must_use]
    #[doc(alias = "resources/templates/list")]
    pub fn resource_template(self, template: impl IntoFeature<ResourceTemplate>) -> Self {
        self.resource_templates([template.into_feature()])
    }

    /// Adds resource templates, like [`resource_template`](Self::resource_template).
    #[must_use]
    pub fn resource_templates(self, templates: impl IntoIterator<Item = ResourceTemplate>) -> Self {
        self.extended(registered_templates(templates))
    }

    /// Adds resource templates to a server that may be running. Replaces templates with the same patterns.
    ///
    /// Connected clients are notified that the listing of resources has changed, since the protocol has no notification for
    /// templates.
    ///
    /// # Errors
    /// If a template has a mistake. Then no template is added.
    ///
    /// ```
    /// use oxmcp::{JsonSchema, ResourceTemplate, Server};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Row { table: String, row: u32 }
    ///
    /// async fn read(Row { table, row }: Row) -> String {
    ///     format!("{table} {row}")
    /// }
    ///
    /// let server = Server::new("database", "1.0.0");
    /// server.add_resource_templates([ResourceTemplate::new("db://{table}/{row}", "row", read)])?;
    /// server.remove_resource_templates(["db://{table}/{row}"]);
    ///
    /// let wrong = ResourceTemplate::new("db://{table}/{id}", "row", read);
    /// let error = server.add_resource_templates([wrong]).unwrap_err();
    /// assert!(error.to_string().contains("field \"row\" is not a variable of the template"));
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    pub fn add_resource_templates(
        &self,
        templates: impl IntoIterator<Item = ResourceTemplate>,
    ) -> Result<()> {
        self.add(registered_templates(templates)?)
    }

    /// Removes resource templates by pattern, and notifies connected clients of the change. Unknown patterns are ignored.
    pub fn remove_resource_templates<U: AsRef<str>>(
        &self,
        uri_templates: impl IntoIterator<Item = U>,
    ) {
        self.remove::<RegisteredTemplate>(uri_templates);
    }

    /// Returns the patterns of all resource templates, also of those that only some callers see.
    #[must_use]
    pub fn resource_template_patterns(&self) -> Vec<String> {
        self.ids::<RegisteredTemplate>()
    }

    /// Returns a function that tells whether a template that the server has now matches a URI, also if only some callers see it.
    pub fn resource_template_matcher(&self) -> impl Fn(&str) -> bool + Send + Sync + use<> {
        let routes = self.peek(|features| Routes::of(&features.templates));
        move |uri| routes.has_match(uri)
    }

    /// Sets the cache hint of the listing of resource templates, like [`cache_resources`](Self::cache_resources) for resources.
    #[must_use]
    pub fn cache_resource_templates(self, hint: CacheHint) -> Self {
        self.with(|features| features.templates.cache = hint)
    }

    /// Sets the function that reads the URIs that no resource and no template has, for example those to which results of another
    /// server refer.
    ///
    /// It fails with [`Error::resource_not_found`](crate::Error::resource_not_found) for a URI that does not exist. Callers from
    /// which a template is [hidden](crate::Resource::visible_to) do not reach it with the URIs of that template.
    ///
    /// ```
    /// use oxmcp::{Error, RequestContext, Server};
    ///
    /// let server = Server::new("mirror", "1.0.0").resource_fallback(|_cx: RequestContext, uri: String| async move {
    ///     match uri.strip_prefix("mirror://") {
    ///         Some(path) => Ok(format!("the contents of {path}")),
    ///         None => Err(Error::resource_not_found(&uri)),
    ///     }
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn resource_fallback<F, Fut>(self, read: F) -> Self
    where
        F: Fn(RequestContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoResourceResult> + Send + 'static,
    {
        let mode = AskMode::of(true, Fut::Output::IS_REPLY);
        let reader = Arc::new(Reader::fallback(erase_fallback(read), mode));
        self.with(|features| {
            features.resource_fallback = Some(reader);
            features.resources.declare();
        })
    }

    /// Serves the files of a directory. See [`file_resources`](crate::server::file_resources).
    ///
    /// Mistakes are reported by [`check`](Self::check), and when the server begins to serve.
    #[must_use]
    pub fn files(self, files: FileResources) -> Self {
        let listed = match files.listed {
            0 => Ok(Vec::new()),
            listed => files.list(listed).and_then(registered),
        };
        self.extended(listed)
            .resource_template(ResourceTemplate::from(files))
    }
}

impl<State: Clone + Send + Sync + 'static> StateScope<Server, State> {
    /// Adds a resource: a [`Resource`], or a function like `query::resource` that makes one from the state. See
    /// [`Server::resource`].
    pub fn resource<Marker>(&self, resource: impl OfState<Resource, State, Marker>) -> &Self {
        self.role()
            .build(|server| server.resource(resource.of_state(self.state())));
        self
    }

    /// Adds resources, like [`resource`](Self::resource).
    pub fn resources<Marker, T: OfState<Resource, State, Marker>>(
        &self,
        resources: impl IntoIterator<Item = T>,
    ) -> &Self {
        for resource in resources {
            self.resource(resource);
        }
        self
    }

    /// Adds a resource template: a [`ResourceTemplate`], or a function like `query::template` that makes one from the state.
    /// See [`Server::resource_template`].
    pub fn resource_template<Marker>(
        &self,
        template: impl OfState<ResourceTemplate, State, Marker>,
    ) -> &Self {
        self.role()
            .build(|server| server.resource_template(template.of_state(self.state())));
        self
    }

    /// Adds resource templates, like [`resource_template`](Self::resource_template).
    pub fn resource_templates<Marker, T: OfState<ResourceTemplate, State, Marker>>(
        &self,
        templates: impl IntoIterator<Item = T>,
    ) -> &Self {
        for template in templates {
            self.resource_template(template);
        }
        self
    }
}

fn registered(
    resources: impl IntoIterator<Item = Resource>,
) -> Result<Vec<Arc<RegisteredResource>>> {
    resources.into_iter().map(RegisteredResource::new).collect()
}

fn registered_templates(
    templates: impl IntoIterator<Item = ResourceTemplate>,
) -> Result<Vec<Arc<RegisteredTemplate>>> {
    templates.into_iter().map(RegisteredTemplate::new).collect()
}
