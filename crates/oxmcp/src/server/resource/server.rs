//! Resources and templates of a server: adding and removing them.

use oxmcp_protocol::CacheHint;

use super::{FileResources, RegisteredResource, RegisteredTemplate, Resource, ResourceTemplate};
use crate::{error::Result, server::server::Server};

impl Server {
    /// Adds a resource, in place of one with the same URI.
    ///
    /// What is wrong with it is reported by [`run`](Self::run) and [`connect`](Self::connect).
    ///
    /// ```
    /// use oxmcp::{Resource, Server};
    ///
    /// let server = Server::new("library", "1.0.0")
    ///     .resource(Resource::text("docs://licence", "licence", "Do what you like."));
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn resource(self, resource: Resource) -> Self {
        self.resources([resource])
    }

    /// Adds resources, as [`resource`](Self::resource) does. With none, `resources([])` tells clients that there may be
    /// resources later.
    #[must_use]
    pub fn resources(self, resources: impl IntoIterator<Item = Resource>) -> Self {
        self.note(self.add_resources(resources));
        self
    }

    /// Adds resources to a server that may be serving already, each in place of one with the same URI. Connected clients
    /// are notified that the list has changed.
    ///
    /// # Errors
    /// Where a URI is not absolute. Then none of them is added.
    ///
    /// ```
    /// use oxmcp::{Resource, Server};
    ///
    /// let server = Server::new("library", "1.0.0");
    /// // … and later, while it serves:
    /// server.add_resources([Resource::text("docs://licence", "licence", "Do what you like.")])?;
    /// server.remove_resources(["docs://licence"]);
    ///
    /// let error = server.add_resources([Resource::text("licence.txt", "licence", "")]).unwrap_err();
    /// assert!(error.to_string().contains("must begin with a scheme"));
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    pub fn add_resources(&self, resources: impl IntoIterator<Item = Resource>) -> Result<()> {
        let resources = resources
            .into_iter()
            .map(RegisteredResource::new)
            .collect::<Result<Vec<_>>>()?;
        self.add(resources);
        Ok(())
    }

    /// Removes resources by URI; those that are unknown are ignored. Connected clients are notified if the list has changed.
    pub fn remove_resources<U: AsRef<str>>(&self, uris: impl IntoIterator<Item = U>) {
        self.remove::<RegisteredResource>(uris);
    }

    /// Sets the cache hint of the list of resources: how long it stays fresh, and whether it may be shared. Where some of them are
    /// [for some callers only](Resource::visible_to), it is private, whatever the hint says.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_resources(self, hint: CacheHint) -> Self {
        self.with(|features| features.resources.cache = hint)
    }

    /// Adds a resource template, in place of one with the same pattern.
    ///
    /// What is wrong with it is reported by [`run`](Self::run) and [`connect`](Self::connect).
    #[must_use]
    pub fn resource_template(self, template: ResourceTemplate) -> Self {
        self.resource_templates([template])
    }

    /// Adds resource templates, as [`resource_template`](Self::resource_template) does.
    #[must_use]
    pub fn resource_templates(self, templates: impl IntoIterator<Item = ResourceTemplate>) -> Self {
        self.note(self.add_resource_templates(templates));
        self
    }

    /// Adds resource templates to a server that may be serving already, each in place of one with the same pattern.
    /// Connected clients are notified that the list of resources has changed: there is no other notification for it.
    ///
    /// # Errors
    /// Where something is wrong with a template. Then none of them is added.
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
    /// assert!(error.to_string().contains("a field \"row\", which is no variable of the template"));
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    pub fn add_resource_templates(
        &self,
        templates: impl IntoIterator<Item = ResourceTemplate>,
    ) -> Result<()> {
        let templates = templates
            .into_iter()
            .map(RegisteredTemplate::new)
            .collect::<Result<Vec<_>>>()?;
        self.add(templates);
        Ok(())
    }

    /// Removes resource templates by their patterns; those that are unknown are ignored. Connected clients are notified if
    /// the list has changed.
    pub fn remove_resource_templates<U: AsRef<str>>(
        &self,
        uri_templates: impl IntoIterator<Item = U>,
    ) {
        self.remove::<RegisteredTemplate>(uri_templates);
    }

    /// Sets the cache hint of the list of resource templates, as [`cache_resources`](Self::cache_resources) does for resources.
    #[must_use]
    pub fn cache_resource_templates(self, hint: CacheHint) -> Self {
        self.with(|features| features.templates.cache = hint)
    }

    /// Serves the files of a directory. See [`file_resources`](crate::server::file_resources).
    ///
    /// What is wrong with it is reported by [`run`](Self::run) and [`connect`](Self::connect).
    #[must_use]
    pub fn files(self, files: FileResources) -> Self {
        if files.listed > 0 {
            let listed = files.list(files.listed);
            self.note(listed.and_then(|listed| self.add_resources(listed)));
        }
        self.resource_template(files.into())
    }
}
