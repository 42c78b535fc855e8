use super::{Completer, Completing, completer::Completed};
use crate::{
    Error, Result,
    protocol::{CompleteParams, CompleteResult, CompletionReference, Method, OrderedMap, method},
    schema::{list, nearest, quote_text},
    server::{
        methods::{Call, Served, unknown},
        prompt::RegisteredPrompt,
        registry::{Feature, Registry},
        resource::RegisteredTemplate,
    },
};

/// Features whose arguments can be completed.
pub(crate) trait Completes: Feature {
    /// What it is, in words.
    const KIND: &'static str;

    fn completers(&self) -> &Completers;
}

/// The arguments of something, in their order, and how each is completed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Completers(OrderedMap<Option<Completer>>);

impl Completers {
    /// Arguments that nothing completes yet.
    pub(crate) fn of(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(|name| (name.into(), None));
        Self(names.collect())
    }

    /// Has an argument completed.
    ///
    /// # Errors
    /// Where there is no argument of that name, with those that there are.
    pub(crate) fn set(&mut self, name: &str, completer: Completer) -> Result<(), String> {
        self.check(name)?;
        self.0.insert(name, Some(completer));
        Ok(())
    }

    /// Refuses the name of an argument that does not exist.
    ///
    /// # Errors
    /// The names that there are.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        if self.0.get(name).is_some() {
            return Ok(());
        }
        let names = || self.0.iter().map(|(name, _)| name);
        let near =
            nearest(name, names()).map(|near| format!(", did you mean {}?", quote_text(near)));
        let near = near.unwrap_or_default();
        let name = quote_text(name);
        Err(if self.0.is_empty() {
            format!("there is no argument {name}; there are none here")
        } else {
            let known = list(names().map(quote_text));
            format!("there is no argument {name}{near} (the arguments are {known})")
        })
    }

    /// Whether any argument can be completed.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|(_, completer)| completer.is_some())
    }

    fn get(&self, name: &str) -> Option<&Completer> {
        self.0.get(name)?.as_ref()
    }
}

/// Whether any of the features can be completed.
pub(crate) fn can_complete<T: Completes>(registry: &Registry<T>) -> bool {
    registry
        .after(None)
        .any(|feature| feature.completers().any())
}

/// See [requesting completions](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#requesting-completions).
#[expect(
    clippy::needless_pass_by_value,
    reason = "all rows of the table of methods have one signature"
)]
pub(in crate::server) fn complete(call: Call<'_>) -> Result<Served> {
    if !call.features.completes {
        return Err(Error::method_not_found(method::Complete::NAME));
    }
    let params: CompleteParams = call.read(method::Complete::NAME)?;
    let argument = params.argument;
    let completer = match &params.reference {
        CompletionReference::Prompt(prompt) => {
            find::<RegisteredPrompt>(&call, &prompt.name, &argument.name)
        }
        CompletionReference::Resource(template) => {
            find::<RegisteredTemplate>(&call, &template.uri, &argument.name)
        }
        _ => Err(Error::invalid_params(
            "the \"type\" of \"ref\" must be \"ref/prompt\" or \"ref/resource\"",
        )),
    }?;
    let Some(completer) = completer else {
        return call.answer(CompleteResult::default());
    };
    let arguments = params.context.and_then(|context| context.arguments);
    let completing = Completing {
        argument: argument.name,
        value: argument.value,
        arguments: arguments.unwrap_or_default(),
    };
    match completer.complete(call.cx.clone(), completing) {
        Completed::Now(completion) => call.answer(CompleteResult::from(completion)),
        Completed::Later(work) => Ok(Served::Later(work)),
    }
}

/// What completes an argument of the feature of that id. `None` where nothing does.
fn find<T: Completes>(call: &Call<'_>, id: &str, argument: &str) -> Result<Option<Completer>> {
    let registry = T::registry(call.features);
    let Some(feature) = registry.get(id, &call.cx) else {
        let message = unknown(T::KIND, registry, &call.cx, id);
        return Err(Error::invalid_params(message));
    };
    let completers = feature.completers();
    let of_feature =
        |wrong| Error::invalid_params(format!("{} {}: {wrong}", T::KIND, quote_text(id)));
    completers.check(argument).map_err(of_feature)?;
    Ok(completers.get(argument).cloned())
}
