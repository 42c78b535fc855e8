use std::{fmt, sync::Arc};

use super::{
    Prompt,
    handler::{ErasedHandler, Given},
};
use crate::{
    Error, Result,
    json::Text,
    protocol::Prompt as Definition,
    schema::{nearest, quote_text},
    server::{ask::Asks, completion::Completers, registry::Visibility},
    session::{Body, BoxFuture, Pace, RequestContext, Work},
};

/// A prompt in a server's registry: nothing about it changes any more.
pub(crate) struct RegisteredPrompt {
    pub(crate) definition: Definition,
    pub(super) completers: Completers,
    handler: ErasedHandler,
    pub(super) visibility: Option<Visibility>,
    pub(super) asks: Asks,
    pace: Arc<Pace>,
}

impl RegisteredPrompt {
    pub(crate) fn new(prompt: Prompt) -> Result<Arc<Self>> {
        let Prompt {
            definition,
            completers,
            handler,
            visibility,
            asks,
            problem,
        } = prompt;
        if let Some(problem) = problem {
            return Err(problem);
        }
        Ok(Arc::new(Self {
            definition,
            completers,
            handler,
            visibility,
            asks,
            pace: Arc::new(Pace::new()),
        }))
    }

    /// Makes the messages.
    pub(crate) fn get(self: &Arc<Self>, context: RequestContext, arguments: Text<'_>) -> Work {
        let now = |context| self.begin(context, arguments);
        let later = |context| -> BoxFuture<Result<Body>> {
            let prompt = Arc::clone(self);
            let arguments: Box<str> = arguments.get().into();
            Box::pin(async move { prompt.begin(context, Text::checked(&arguments)).await })
        };
        Work::paced(&self.pace, context.is_alone(), context, now, later)
    }

    /// Begins the handler with the `arguments` of the request. It may be begun again with the same.
    fn begin(
        self: &Arc<Self>,
        context: RequestContext,
        arguments: Text<'_>,
    ) -> BoxFuture<Result<Body>> {
        let begun = given(arguments)
            .and_then(|given| self.check_required(&given).map(|()| given))
            .and_then(|given| (self.handler)(context, given));
        match begun {
            Ok(running) => {
                let prompt = Arc::clone(self);
                Box::pin(async move {
                    let mut result = running.await?;
                    let description = &prompt.definition.description;
                    if result.description.is_none() {
                        result.description.clone_from(description);
                    }
                    Ok(Body::of(result))
                })
            }
            Err(wrong) => {
                let name = &self.definition.name;
                let message = format!("The arguments of {name} are not valid.\n{wrong}");
                Box::pin(async { Err(Error::invalid_params(message)) })
            }
        }
    }

    /// Names all that is missing, a line for each.
    fn check_required(&self, given: &Given) -> Result<(), String> {
        /// Names that were given beyond this are not looked at: nobody misspells so many.
        const SEARCHED: usize = 64;
        let arguments = &self.definition.arguments;
        let strangers: Vec<_> = given
            .iter()
            .take(SEARCHED)
            .map(|(name, _)| name)
            .filter(|name| arguments.iter().all(|argument| argument.name != *name))
            .collect();
        let missing = arguments
            .iter()
            .filter(|argument| argument.required && given.get(&argument.name).is_none());
        let lines: Vec<_> = missing
            .map(|argument| {
                let hint = nearest(&argument.name, strangers.iter().copied())
                    .map(|stranger| format!("; {} is not its name", quote_text(stranger)));
                let hint = hint.unwrap_or_default();
                format!("{} is missing{hint}", quote_text(&argument.name))
            })
            .collect();
        if lines.is_empty() {
            Ok(())
        } else {
            Err(lines.join("\n"))
        }
    }
}

/// The arguments of a request.
fn given(arguments: Text<'_>) -> Result<Given, String> {
    if !arguments.is_object() {
        return Err("\"arguments\" must be an object of strings".to_owned());
    }
    for (name, value) in arguments.members() {
        if value.as_str().is_none() {
            let name = name.as_str().unwrap_or_default();
            return Err(format!(
                "{}: expected a string, as all arguments of prompts are; put the value in quotes, or leave it out",
                quote_text(&name)
            ));
        }
    }
    let read = arguments.parse();
    read.map_err(|error| format!("\"arguments\" cannot be read: {error}"))
}

impl fmt::Debug for RegisteredPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredPrompt")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}
