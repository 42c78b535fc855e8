//! Registered prompt: a prompt in a server's registry.

use std::{borrow::Cow, pin::pin, sync::Arc};

use oxmcp_json::Text;
use oxmcp_protocol::{Method, Prompt as Definition, lenient::Leniency, method};
use oxmcp_schema::internal::{nearest, quote_text};

use super::{
    Prompt,
    handler::{ErasedHandler, Faults, Given, PendingPrompt},
};
use crate::{
    error::{Error, Result},
    logged::Logged,
    server::{
        completion::{Completers, Completes},
        definitions::options::{check_access, check_icons},
        registry::{
            Access, AskMode, Callable, duplicate_key, impl_feature, replace_lone_surrogates,
        },
    },
    session::{
        connection::RequestContext,
        inbound::{
            body::Body,
            inline_execution::InlineExecution,
            run::Work,
            watchdog::{Watched, watched},
        },
    },
};

/// A prompt in a server's registry. It is immutable.
pub(crate) struct RegisteredPrompt {
    definition: Definition,
    completers: Completers,
    handler: ErasedHandler,
    access: Access,
    ask_mode: AskMode,
    inline: Arc<InlineExecution>,
}

impl_feature! {
    RegisteredPrompt("prompt"): Prompt by name,
    ListPrompts -> ListPromptsResult.prompts, with_prompts_list_changed
}

impl RegisteredPrompt {
    /// # Errors
    /// The first mistake in the definition.
    pub(crate) fn new(prompt: Prompt) -> Result<Arc<Self>> {
        let Prompt {
            definition,
            completers,
            handler,
            access,
            ask_mode,
            mistake,
        } = prompt;
        if let Some(mistake) = mistake {
            return Err(mistake);
        }
        check_icons::<Self>(&definition.name, &definition.icons)?;
        check_access::<Self>(&definition.name, &access)?;
        Ok(Arc::new(Self {
            definition,
            completers,
            handler,
            access,
            ask_mode,
            inline: Arc::new(InlineExecution::new()),
        }))
    }

    async fn get(&self, context: RequestContext, arguments: &str) -> Result<Body> {
        let definition = &self.definition;
        let begun = self.begin(context, Text::checked(arguments));
        let running = begun.map_err(|faults| self.invalid(&faults))?;
        let mut result = running.await?;
        if result.description.is_none() {
            result.description.clone_from(&definition.description);
        }
        Ok(Body::of(result))
    }

    fn invalid(&self, faults: &str) -> Error {
        let name = &self.definition.name;
        Error::invalid_params(format!("The arguments of {name} are not valid.\n{faults}"))
    }

    fn begin(&self, context: RequestContext, arguments: Text<'_>) -> PendingPrompt {
        if let Some(fault) = duplicate_key(arguments) {
            return Err(fault);
        }
        let given = given(arguments).or_else(|fault| {
            let mended = mended(arguments).filter(|_| !context.has_strict_arguments());
            let (mended, leniency) = mended.ok_or(fault)?;
            tracing::debug!(prompt = %Logged(&self.definition.name), leniency = leniency.name(), "repaired the arguments of a prompt");
            Ok::<_, Faults>(mended)
        })?;
        self.check_required(&given)?;
        (self.handler)(context, given)
    }

    /// Lists all missing arguments, one per line.
    fn check_required(&self, given: &Given) -> Result<(), Faults> {
        /// The number of given names to search for misspellings.
        const MAX_SEARCHED: usize = 64;
        let arguments = &self.definition.arguments;
        let unknown: Vec<_> = given
            .iter()
            .take(MAX_SEARCHED)
            .map(|(name, _)| name)
            .filter(|name| arguments.iter().all(|argument| argument.name != *name))
            .collect();
        let missing = arguments
            .iter()
            .filter(|argument| argument.required && given.get(&argument.name).is_none());
        let lines: Vec<_> = missing
            .map(|argument| {
                let hint = nearest(&argument.name, unknown.iter().copied())
                    .map(|given| format!("; found {} instead", quote_text(given)));
                let hint = hint.unwrap_or_default();
                format!("{} is missing{hint}", quote_text(&argument.name))
            })
            .collect();
        match lines.as_slice() {
            [] => Ok(()),
            lines => Err(lines.join("\n")),
        }
    }
}

impl Callable for RegisteredPrompt {
    const METHOD: &'static str = method::GetPrompt::NAME;

    fn ask_mode(&self) -> AskMode {
        self.ask_mode
    }

    fn refuse(&self, fault: &str) -> Result<Body> {
        Err(self.invalid(fault))
    }

    fn call(self: &Arc<Self>, context: RequestContext, arguments: Text<'_>) -> Work {
        let is_alone = context.is_alone();
        let prompt = Arc::clone(self);
        let arguments: Box<str> = arguments.get().into();
        let future = Box::pin(async move {
            let getting = pin!(prompt.get(context, &arguments));
            watched(&prompt, getting).await
        });
        Work::of(&self.inline, is_alone, future)
    }
}

impl Watched for RegisteredPrompt {
    fn label(&self) -> String {
        format!("prompt {}", self.definition.name)
    }
}

impl Completes for RegisteredPrompt {
    fn completers(&self) -> &Completers {
        &self.completers
    }
}

/// The arguments without nulls, and with numbers and booleans as text. `None` if there are values of other types.
fn mended(arguments: Text<'_>) -> Option<(Given, Leniency)> {
    let text = replace_lone_surrogates(arguments)?;
    let arguments = Text::checked(&text);
    let leniency = match text {
        Cow::Borrowed(_) => Leniency::PromptArgument,
        Cow::Owned(_) => Leniency::LoneSurrogate,
    };
    if arguments.is_str("") || arguments.get() == "[]" {
        return Some((Given::default(), leniency));
    }
    let members = arguments.is_object().then(|| arguments.members())?;
    let given = members.filter(|(_, value)| !value.is_null());
    let given = given.map(|(name, value)| Some((name.as_str()?.into_owned(), text_of(value)?)));
    given.collect::<Option<_>>().map(|given| (given, leniency))
}

/// The text of a string, a number or a boolean.
fn text_of(value: Text<'_>) -> Option<String> {
    match value.as_str() {
        Some(text) => Some(text.into_owned()),
        None if value.get().starts_with(['{', '[']) => None,
        None => Some(value.get().to_owned()),
    }
}

/// The arguments of a request, which must all be strings.
fn given(arguments: Text<'_>) -> Result<Given, Faults> {
    if !arguments.is_object() {
        return Err("\"arguments\" must be an object of strings".to_owned());
    }
    for (name, value) in arguments.members() {
        if value.as_str().is_none() {
            let name = name.as_str().unwrap_or_default();
            return Err(format!(
                "{}: expected a string, as for all prompt arguments; put the value in quotes, or omit it",
                quote_text(&name)
            ));
        }
    }
    let read = arguments.parse();
    read.map_err(|error| format!("could not read \"arguments\": {error}"))
}
