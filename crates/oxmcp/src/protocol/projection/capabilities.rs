//! Who a side is, and what it can do.

use super::{Project, content::described};
use crate::protocol::{
    ClientCapabilities, ElicitationCapability, Implementation, Revision, SamplingCapability,
    ServerCapabilities,
};

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
    /// A revision without modes has forms only: who shows none has nothing to declare there.
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
