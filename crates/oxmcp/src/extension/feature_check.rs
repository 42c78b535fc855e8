//! The check that an extension makes of the features of its server, before the server begins to serve.

use std::{fmt, sync::Arc};

use oxmcp_protocol::{Resource, ResourceTemplate, Tool};

use crate::{
    error::{Error, Result},
    extension::{definition::Extension, registry::Extensions},
};

/// A check of a server's features, which returns the first problem.
pub(crate) type FeatureCheck =
    Arc<dyn Fn(&ServedFeatures<'_>) -> std::result::Result<(), String> + Send + Sync>;

/// The tools, resources and templates of a server, as entries of its listings, for [`Extension::check_features`].
pub struct ServedFeatures<'a> {
    pub(crate) tools: Vec<&'a Tool>,
    pub(crate) resources: Vec<&'a Resource>,
    pub(crate) templates: Vec<&'a ResourceTemplate>,
    /// Whether a template matches a URI.
    pub(crate) matches: &'a dyn Fn(&str) -> bool,
}

impl<'a> ServedFeatures<'a> {
    /// Returns the tools, sorted by name.
    #[must_use]
    pub fn tools(&self) -> &[&'a Tool] {
        &self.tools
    }

    /// Returns the resources, sorted by URI.
    #[must_use]
    pub fn resources(&self) -> &[&'a Resource] {
        &self.resources
    }

    /// Returns the resource templates, sorted by their text.
    #[must_use]
    pub fn resource_templates(&self) -> &[&'a ResourceTemplate] {
        &self.templates
    }

    /// Returns whether a resource has this URI, or a template matches it.
    #[must_use]
    pub fn has_resource(&self, uri: &str) -> bool {
        self.resources.iter().any(|it| it.uri == uri) || (self.matches)(uri)
    }
}

impl fmt::Debug for ServedFeatures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedFeatures")
            .field("tools", &self.tools.len())
            .field("resources", &self.resources.len())
            .field("resource_templates", &self.templates.len())
            .finish_non_exhaustive()
    }
}

impl Extension {
    /// For servers: adds a check of the server's tools and resources. The server refuses to serve if the check returns a
    /// problem, and [`Server::check`](crate::Server::check) reports it. The check runs before the server begins to serve;
    /// features that are added later are not checked.
    ///
    /// ```
    /// use oxmcp::{Extension, Server, Tool};
    ///
    /// let titled = || Extension::new("com.example/titled").check_features(|features| {
    ///     match features.tools().iter().find(|tool| tool.title.is_none()) {
    ///         Some(tool) => Err(format!("tool {:?} has no title; set one with `.title(…)`", tool.name)),
    ///         None => Ok(()),
    ///     }
    /// });
    /// let now = || Tool::new("now", "Tell the time", || async { "ten past two" });
    /// let error = Server::new("clock", "1.0.0").extension(titled()).tool(now()).check().unwrap_err();
    /// assert!(error.message().contains("has no title"));
    /// assert!(Server::new("clock", "1.0.0").extension(titled()).tool(now().title("Time")).check().is_ok());
    /// ```
    #[must_use]
    pub fn check_features(
        mut self,
        check: impl Fn(&ServedFeatures<'_>) -> std::result::Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.feature_checks.push(Arc::new(check));
        self
    }
}

impl Extensions {
    /// Runs the checks that extensions make of the server's features.
    ///
    /// # Errors
    /// The first problem, and the extension that reports it.
    pub(crate) fn check_features(&self, features: &ServedFeatures<'_>) -> Result<()> {
        for extension in &self.all {
            for check in &extension.feature_checks {
                check(features).map_err(|problem| {
                    let id = &extension.id;
                    Error::misuse(format!("the extension {id}: {problem}"))
                })?;
            }
        }
        Ok(())
    }

    /// Whether an extension checks the server's features.
    pub(crate) fn checks_features(&self) -> bool {
        self.all.iter().any(|it| !it.feature_checks.is_empty())
    }
}
