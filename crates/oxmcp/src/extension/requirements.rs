//! The requirements of extensions on their own side, their checks of the features of a server, and the revisions of an extension
//! that a peer may declare.

use std::sync::Arc;

use oxmcp_protocol::JsonObject;
use serde::Serialize;
use serde_json::Value;

use crate::{
    error::{Error, Result},
    extension::{
        definition::{Extension, REVISION, Requirement},
        registry::Extensions,
    },
};
#[cfg(feature = "server")]
use crate::{extension::feature_check::ServedFeatures, session::connection::RequestContext};

impl Extensions {
    /// Records the requirements that are not met. `capabilities` are those that this side declares.
    pub(crate) fn note_unmet(&mut self, capabilities: &impl Serialize) {
        self.unmet.clear();
        if self.all.iter().all(|it| it.requirements.is_empty()) {
            return;
        }
        // Types of the protocol are always JSON.
        let capabilities = serde_json::to_value(capabilities).unwrap_or_default();
        let mut unmet = Vec::new();
        for extension in &self.all {
            let mut requirements = extension.requirements.iter();
            if let Some(problem) = requirements.find_map(|it| self.lacks(it, &capabilities)) {
                let id = Arc::clone(&extension.id);
                let problem = format!("the extension {id} requires {problem}");
                unmet.push((id, problem));
            }
        }
        self.unmet = unmet;
    }

    /// The [state](Extension::state) of an extension. `None` if there is no such extension, or its state is of another type.
    #[cfg(feature = "server")]
    pub(crate) fn state<T: Send + Sync + 'static>(&self, id: &str) -> Option<Arc<T>> {
        let extension = self.all.iter().find(|it| *it.id == *id)?;
        Arc::clone(extension.state.as_ref()?).downcast().ok()
    }

    /// Checks that the request declares an extension.
    ///
    /// # Errors
    /// The extension that the client must declare. Also if this side has no such extension.
    #[cfg(feature = "server")]
    pub(crate) fn expect(&self, cx: &RequestContext, id: &str) -> Result<()> {
        let Some(extension) = self.all.iter().find(|it| *it.id == *id) else {
            return Err(Error::misuse(format!(
                "the server does not have the extension {id}; add it with `Server::extension`"
            )));
        };
        extension.expect_declared(cx)
    }

    /// Whether there is an extension of this identifier.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.all.iter().any(|it| *it.id == *id)
    }

    /// Describes the requirement if it is not met.
    fn lacks(&self, requirement: &Requirement, capabilities: &Value) -> Option<String> {
        match requirement {
            Requirement::Extension(id) => {
                (!self.has(id)).then(|| format!("the extension {id}, which was not added"))
            }
            Requirement::Capability(path) => {
                let found = path
                    .split('.')
                    .try_fold(capabilities, |found, name| found.get(name));
                let is_declared = found.is_some_and(|it| *it != Value::Bool(false));
                (!is_declared).then(|| format!("the capability {path}, which is not declared"))
            }
        }
    }

    /// Checks that the requirements of all extensions are met.
    ///
    /// # Errors
    /// The first unmet requirement, and the extension that has it.
    pub(crate) fn check_requirements(&self) -> Result<()> {
        let mut unmet = self.unmet.iter();
        let problem = unmet.next().map(|(_, problem)| problem.clone());
        problem.map_or(Ok(()), |problem| Err(Error::misuse(problem)))
    }

    /// Checks that the requirements of an extension are met, before its handlers run.
    ///
    /// # Errors
    /// The unmet requirement, as an internal error.
    pub(crate) fn check_met(&self, extension: &Extension) -> Result<()> {
        let mut unmet = self.unmet.iter();
        let problem = unmet.find(|(id, _)| *id == extension.id);
        problem.map_or(Ok(()), |(_, problem)| Err(Error::internal(problem.clone())))
    }
}

impl Extension {
    /// Whether a peer has declared the extension, in a revision of it that this side knows.
    pub(crate) fn is_declared(&self, declared: Option<&JsonObject>) -> bool {
        let settings = declared.and_then(|declared| declared.get(&*self.id));
        settings.is_some_and(|settings| match settings.get(REVISION) {
            Some(member) => member.is_string() && self.accepts(revision(Some(member))),
            None => self.accepts(None),
        })
    }

    fn accepts(&self, declared: Option<&str>) -> bool {
        match &self.accepted {
            Some(accepts) => accepts(declared),
            None => declared == revision(self.settings.get(REVISION)),
        }
    }

    /// The settings that a rejected peer must declare.
    pub(crate) fn required_settings(&self) -> JsonObject {
        let named = self.settings.get(REVISION);
        let named = named.map(|it| (REVISION.to_owned(), it.clone()));
        named.into_iter().collect()
    }
}

fn revision(member: Option<&Value>) -> Option<&str> {
    member.and_then(Value::as_str)
}

#[cfg(feature = "server")]
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

#[cfg(feature = "server")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capability_declared_false_is_absent() {
        let capabilities = serde_json::json!({"a": {"yes": true, "no": false, "with": {}}});
        for (path, is_there) in [
            ("a", true),
            ("a.yes", true),
            ("a.with", true),
            ("a.no", false),
            ("a.none", false),
            ("a.yes.more", false),
            ("b", false),
        ] {
            let requirement = Requirement::Capability(path.into());
            let lacks = Extensions::default().lacks(&requirement, &capabilities);
            assert_eq!(lacks.is_none(), is_there, "{path}: {lacks:?}");
        }
    }
}
