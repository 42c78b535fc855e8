//! The features of a client that an upstream learns of: those that the client in front of the gateway has.

use std::sync::Arc;

use oxmcp::{
    Extension, RequestContext,
    protocol::{JsonObject, Meta},
    tasks,
};
use serde_json::Value;

/// The longest text of declared extensions with which clients share a session.
const MAX_SHARED: usize = 4 << 10;

/// The features of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Offers {
    features: u8,
    /// The extensions with their settings, as a JSON object. Empty if there are none.
    extensions: Arc<str>,
}

impl Offers {
    pub(super) const FORM: u8 = 1;
    pub(super) const URL: u8 = 2;
    pub(super) const SAMPLING: u8 = 4;
    pub(super) const SAMPLING_TOOLS: u8 = 8;
    pub(super) const SAMPLING_CONTEXT: u8 = 16;
    pub(super) const ROOTS: u8 = 32;
    /// Calls can be tasks, or become some.
    pub(super) const TASKS: u8 = 64;

    /// The features of the client that makes a request.
    pub(super) fn of(cx: &RequestContext) -> Self {
        let declared = cx.client_capabilities();
        let elicitation = declared.elicitation.as_ref();
        let sampling = declared.sampling.as_ref();
        let extensions = declared.extensions.as_ref();
        let is_declared = extensions.is_some_and(|it| it.contains_key(tasks::ID));
        let revision = cx.revision();
        // In 2025-11-25 a client decides for each call, and all its calls belong in one session.
        let has_tasks = revision.has_tasks() || is_declared && revision.is_modern();
        let all = [
            (Self::FORM, elicitation.is_some_and(|it| it.has_form())),
            (Self::URL, elicitation.is_some_and(|it| it.has_url())),
            (Self::SAMPLING, sampling.is_some()),
            (
                Self::SAMPLING_TOOLS,
                sampling.is_some_and(|it| it.tools.is_some()),
            ),
            (
                Self::SAMPLING_CONTEXT,
                sampling.is_some_and(|it| it.context.is_some()),
            ),
            (Self::ROOTS, declared.roots.is_some()),
            (Self::TASKS, has_tasks),
        ];
        let extensions: JsonObject = extensions
            .into_iter()
            .flatten()
            .filter(|(id, _)| *id != tasks::ID)
            .map(|(id, settings)| (id.clone(), settings.clone()))
            .collect();
        Self {
            features: all
                .iter()
                .filter(|(_, has)| *has)
                .fold(0, |bits, (bit, _)| bits | bit),
            extensions: match extensions.is_empty() {
                true => Arc::default(),
                false => serde_json::to_string(&extensions)
                    .unwrap_or_default()
                    .into(),
            },
        }
    }

    pub(super) fn has(&self, bit: u8) -> bool {
        self.features & bit != 0
    }

    /// Whether clients with these features may share a session: what they declare must not fill the memory.
    pub(super) fn is_shareable(&self) -> bool {
        self.extensions.len() <= MAX_SHARED
    }

    /// The extensions, as those of the client of an upstream.
    pub(super) fn extensions(&self) -> impl Iterator<Item = Extension> + use<> {
        let declared: JsonObject = serde_json::from_str(&self.extensions).unwrap_or_default();
        declared_extensions(declared)
    }
}

/// Whether somebody can declare an extension: its identifier has a prefix and a name, and its settings are an object.
pub(super) fn is_declarable(id: &str, settings: &Value) -> bool {
    let name = id.split_once('/').map_or("", |(_, name)| name);
    Meta::is_valid_key(id) && !name.is_empty() && settings.is_object()
}

/// Extensions that are only declared, in any of their revisions. Identifiers and settings that nobody can declare are left out.
pub(super) fn declared_extensions(declared: JsonObject) -> impl Iterator<Item = Extension> {
    let named = declared
        .into_iter()
        .filter(|(id, settings)| is_declarable(id, settings));
    named.map(|(id, settings)| {
        Extension::new(id)
            .settings(settings)
            .accepts_revision(|_| true)
    })
}
