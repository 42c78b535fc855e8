//! The features of a server, as the checks of extensions see them before the server begins to serve.

use std::{fmt, sync::Arc};

use oxmcp_protocol::{Resource, ResourceTemplate, Tool};

/// A check of a server's features, which returns the first problem.
pub(crate) type FeatureCheck = Arc<dyn Fn(&ServedFeatures<'_>) -> Result<(), String> + Send + Sync>;

/// The tools, resources and templates of a server, as entries of its listings, for
/// [`Extension::check_features`](crate::Extension::check_features).
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
