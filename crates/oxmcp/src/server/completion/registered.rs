//! Registered completers: the completers of the arguments of a prompt or a resource template.

use oxmcp_protocol::OrderedMap;
use oxmcp_schema::internal::{list, nearest, quote_text};

use super::Completer;
use crate::server::registry::{Feature, Registry};

/// A feature whose arguments can be completed.
pub(crate) trait Completes: Feature {
    fn completers(&self) -> &Completers;
}

/// Arguments, in their order, and the completer of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Completers(OrderedMap<Option<Completer>>);

impl Completers {
    /// Arguments without completers.
    pub(crate) fn of(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(|name| (name.into(), None));
        Self(names.collect())
    }

    /// Sets the completer of an argument.
    ///
    /// # Errors
    /// If the argument does not exist; the message lists the existing ones.
    pub(crate) fn set(&mut self, name: &str, completer: Completer) -> Result<(), String> {
        self.check(name)?;
        self.0.insert(name, Some(completer));
        Ok(())
    }

    /// Checks that an argument exists.
    ///
    /// # Errors
    /// If it does not; the message lists the existing ones.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        if self.0.get(name).is_some() {
            return Ok(());
        }
        let names = || self.0.iter().map(|(name, _)| name);
        let near =
            nearest(name, names()).map(|near| format!("; did you mean {}?", quote_text(near)));
        let near = near.unwrap_or_default();
        let name = quote_text(name);
        Err(if self.0.is_empty() {
            format!("unknown argument {name}; there are no arguments")
        } else {
            let known = list(names().map(quote_text));
            format!("unknown argument {name}{near} (arguments: {known})")
        })
    }

    /// Whether any argument can be completed.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|(_, completer)| completer.is_some())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Completer> {
        self.0.get(name)?.as_ref()
    }
}

/// Whether any of the features can be completed.
pub(crate) fn can_complete<T: Completes>(registry: &Registry<T>) -> bool {
    registry
        .after(None)
        .any(|feature| feature.completers().any())
}
