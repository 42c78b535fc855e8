//! Prompt definition: the name, arguments and handler of a prompt.

use std::{collections::HashSet, future::Future};

use oxmcp_protocol::{OrderedMap, Prompt as Definition, PromptArgument};
use oxmcp_schema::internal::{StringFields, quote_text};

use super::{
    IntoPromptResult, PromptArguments,
    handler::{ErasedHandler, erase, erase_dynamic},
};
use crate::{
    error::Error,
    server::{
        completion::{Completer, Completers, IntoCompleter},
        definitions::options::{entry, options},
        registry::{Access, AskMode},
    },
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerFuture},
    },
};

/// A prompt: its definition for clients, and the function that makes its messages.
///
/// [`new`](Self::new) infers the arguments from the type that the function takes; [`dynamic`](Self::dynamic) takes them as a
/// list. Mistakes are reported by [`Server::add_prompts`](crate::Server::add_prompts), or when the server begins to serve.
///
/// This is the type for servers. Clients read the entries of a listing as [`protocol::Prompt`](crate::protocol::Prompt).
/// See [prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#prompt).
///
/// # Arguments
/// On the wire, every argument is a string; the function gets values of the types of its fields (see
/// [`PromptInput`](crate::traits::PromptInput)). A request fails with
/// [`ErrorCode::INVALID_PARAMS`](crate::ErrorCode::INVALID_PARAMS) if an argument is missing, is not a number where one is
/// required, or is not a variant of an enum; the message names the argument and the expected values. For an optional argument
/// that has no empty value, an empty string means that it was omitted: many forms send empty fields. Unknown arguments are
/// ignored, since the client may know another version of the prompt; `#[serde(deny_unknown_fields)]` refuses them.
///
/// Values of enums and booleans are completed while they are typed. [`complete`](Self::complete) adds completion to other
/// arguments.
///
/// ```
/// use oxmcp::{JsonSchema, Prompt};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Review {
///     /// the code to review
///     code: String,
///     /// how strict to be
///     severity: Option<Severity>,
///     /// the team whose rules apply
///     team: Option<String>,
/// }
///
/// #[derive(Debug, serde::Deserialize, JsonSchema)]
/// #[serde(rename_all = "lowercase")]
/// enum Severity { Kind, Harsh }
///
/// let prompt = Prompt::new("review", "Review code", |Review { code, severity, .. }: Review| async move {
///     format!("Review this code, and be {:?}:\n{code}", severity.unwrap_or(Severity::Kind))
/// })
/// .title("Code review")
/// .complete("team", ["core", "docs", "web"]);
/// # let _ = prompt;
/// ```
pub struct Prompt {
    pub(crate) definition: Definition,
    pub(crate) completers: Completers,
    pub(crate) handler: ErasedHandler,
    pub(crate) access: Access,
    pub(crate) ask_mode: AskMode,
    /// The first mistake in the definition.
    pub(crate) mistake: Option<Error>,
}

impl Prompt {
    /// Creates a prompt whose arguments are the fields of the handler's input. The attribute
    /// [`#[oxmcp::prompt]`](macro@crate::prompt) generates this call, and the struct, for a free function.
    pub fn new<Arguments, H>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<Arguments>,
        Arguments: PromptArguments,
        H::Returned: HandlerFuture<Output: IntoPromptResult> + Send + 'static,
    {
        let (fields, mistake) = match Arguments::schema().map(StringFields::new).transpose() {
            Ok(fields) => (fields, None),
            Err(error) => (None, Some(error)),
        };
        let known = || fields.iter().flat_map(StringFields::iter);
        let arguments = known().map(|field| {
            let mut argument = PromptArgument::new(&field.name);
            argument.title.clone_from(&field.title);
            argument.description.clone_from(&field.description);
            argument.required = field.is_required;
            argument
        });
        let arguments = arguments.collect();
        let listed = known().filter(|field| !field.values.is_empty());
        let listed = listed.map(|field| (field.name.clone(), Completer::new(&*field.values)));
        let listed: Vec<_> = listed.collect();
        let handler = erase(fields, handler);
        let is_reply = <H::Returned as HandlerFuture>::Output::IS_REPLY;
        let mode = AskMode::of(true, is_reply);
        let mut prompt = Self::assemble(name.into(), description.into(), arguments, handler, mode);
        for (name, completer) in listed {
            prompt = prompt.complete(&name, completer);
        }
        if let Some(error) = mistake {
            prompt.note(error.message());
        }
        prompt
    }

    /// Creates a prompt from a list of arguments, and a handler that takes them as strings.
    ///
    /// It is for prompts that are known only at run time, from a file or from another server. The handler is called only if all
    /// required arguments are present.
    ///
    /// ```
    /// use oxmcp::{Prompt, protocol::PromptArgument};
    ///
    /// let arguments = [
    ///     PromptArgument::new("topic").with_description("what to explain").required(),
    ///     PromptArgument::new("audience"),
    /// ];
    /// let prompt = Prompt::dynamic("explain", "Explain something", arguments, |_cx, given| async move {
    ///     let topic = given.get("topic").map_or("", String::as_str);
    ///     let audience = given.get("audience").map_or("everyone", String::as_str);
    ///     format!("Explain {topic} to {audience}.")
    /// });
    /// # let _ = prompt;
    /// ```
    pub fn dynamic<F, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        arguments: impl IntoIterator<Item = PromptArgument>,
        handler: F,
    ) -> Self
    where
        F: Fn(RequestContext, OrderedMap<String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoPromptResult> + Send + 'static,
    {
        let arguments = arguments.into_iter().collect();
        let handler = erase_dynamic(handler);
        let mode = AskMode::of(true, Fut::Output::IS_REPLY);
        Self::assemble(name.into(), description.into(), arguments, handler, mode)
    }

    fn assemble(
        name: String,
        description: String,
        arguments: Vec<PromptArgument>,
        handler: ErasedHandler,
        ask_mode: AskMode,
    ) -> Self {
        let completers = Completers::of(arguments.iter().map(|argument| &argument.name));
        let mut definition = Definition::new(name).with_description(description);
        definition.arguments = arguments;
        let mut prompt = Self {
            definition,
            completers,
            handler,
            access: Access::default(),
            ask_mode,
            mistake: None,
        };
        prompt.check();
        prompt
    }

    /// Records a missing name, and duplicate arguments.
    fn check(&mut self) {
        if self.definition.name.is_empty() {
            self.note("missing name");
        }
        let mut names = HashSet::new();
        let mut arguments = self.definition.arguments.iter();
        if let Some(twice) = arguments.find(|argument| !names.insert(&argument.name)) {
            let name = quote_text(&twice.name);
            self.note(&format!(
                "duplicate argument {name}; give each argument a unique name"
            ));
        }
    }

    /// Sets options of an existing argument, which override those from the type of its field.
    ///
    /// ```
    /// use oxmcp::{JsonSchema, Prompt};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Deploy { service: String }
    ///
    /// let prompt = Prompt::new("deploy", "Deploy a service", |Deploy { service }: Deploy| async move {
    ///     format!("Deploy {service}.")
    /// })
    /// .argument("service", |a| a.title("Service").description("what is deployed"));
    /// # let _ = prompt;
    /// ```
    #[must_use]
    pub fn argument(
        mut self,
        name: &str,
        options: impl FnOnce(ArgumentOptions) -> ArgumentOptions,
    ) -> Self {
        if let Err(mistake) = self.completers.check(name) {
            self.note(&mistake);
        }
        let options = options(ArgumentOptions::default());
        let mut arguments = self.definition.arguments.iter_mut();
        if let Some(argument) = arguments.find(|argument| argument.name == name) {
            options.apply(argument);
        }
        self
    }

    /// Sets the completer of an existing argument: a list of strings, or an async function of a
    /// [`CompletionInput`](crate::CompletionInput). It replaces the completer inferred from an enum or a boolean.
    /// See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
    ///
    /// ```
    /// use oxmcp::{CompletionInput, JsonSchema, Prompt};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Deploy { service: String, version: String }
    ///
    /// async fn versions(completing: CompletionInput) -> Vec<String> {
    ///     match completing.resolved("service") {
    ///         Some(service) => vec![format!("{service}-1.0"), format!("{service}-1.1")],
    ///         None => vec![],
    ///     }
    /// }
    ///
    /// let prompt = Prompt::new("deploy", "Deploy a service", |d: Deploy| async move {
    ///     format!("Deploy {} {}.", d.service, d.version)
    /// })
    /// .complete("service", ["shop", "search"])
    /// .complete("version", versions);
    /// # let _ = prompt;
    /// ```
    #[must_use]
    pub fn complete<Marker>(
        mut self,
        argument: &str,
        completer: impl IntoCompleter<Marker>,
    ) -> Self {
        let set = self.completers.set(argument, completer.into_completer());
        if let Err(mistake) = set {
            self.note(&mistake);
        }
        self
    }

    /// Returns the name of the prompt.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    fn note(&mut self, mistake: &str) {
        let name = &self.definition.name;
        self.mistake
            .get_or_insert_with(|| Error::misuse(format!("prompt {name:?}: {mistake}")));
    }
}

entry!(Prompt of Definition by name: "prompt");

options! {
    Prompt by name: "prompt",
    /// Sets a function that decides which callers can list and get the prompt. For the others, the prompt does not exist, and its
    /// arguments are not completed. The function is called for each request, and must be quick.
    visible_to
}

/// Options of an argument of a [`Prompt`] that its type cannot express; see [`Prompt::argument`](crate::Prompt::argument).
#[derive(Debug, Default)]
#[must_use = "return the options from the closure"]
pub struct ArgumentOptions {
    title: Option<String>,
    description: Option<String>,
}

impl ArgumentOptions {
    /// Sets the title: the name displayed to people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Overwrites the title and the description of an argument, if they are set.
    fn apply(self, argument: &mut PromptArgument) {
        if let Some(title) = self.title {
            argument.title = Some(title);
        }
        if let Some(description) = self.description {
            argument.description = Some(description);
        }
    }
}
