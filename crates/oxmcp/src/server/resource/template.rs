//! Resource template definition: a pattern of URIs, and the handler of the resources that match it.

use std::{future::Future, sync::Arc};

use oxmcp_protocol::{
    CacheHint, Resource as ResourceDefinition, ResourceTemplate as Definition,
    uri_template::{Matcher, UriTemplate},
};
use oxmcp_schema::internal::{StringFields, list, nearest, quote_text};

use super::{
    IntoResourceResult, TemplateArguments, TemplateVariables,
    handler::{ErasedHandler, erase_dynamic, erase_typed},
};
use crate::{
    error::{Error, Result},
    server::{
        completion::{Completer, Completers, IntoCompleter},
        definitions::options::{entry, resource_options},
        registry::{Access, AskMode},
    },
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerFuture, IntoError},
        task::BoxFuture,
    },
};

/// A resource template: a pattern of URIs, and a handler that reads all resources whose URIs match it.
///
/// The pattern is a URI template ([RFC 6570](https://www.rfc-editor.org/rfc/rfc6570)). [`new`](Self::new) deserializes the
/// variables to the fields of a struct; [`dynamic`](Self::dynamic) passes them as strings. Mistakes in a template, and mismatches
/// with the struct, are reported by [`Server::add_resource_templates`](crate::Server::add_resource_templates), or when the
/// server begins to serve.
/// See [resource templates](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-templates).
///
/// # Matching
/// A resource with exactly the requested URI takes precedence. Then the templates are tried: those with the most literal
/// characters first, and among equals, those with the fewest variables. Only the first matching template reads the resource,
/// even if it does not find it.
///
/// | expression | matches |
/// |---|---|
/// | `{x}` | one or more characters, except `/`, `?` and `#`; in a query also except `&` |
/// | `{x,y}`, `{x*}` | several values between commas; the last ones may be missing |
/// | `{+x}` | one or more characters, including slashes; no `?` or `#` if the template has one after it |
/// | `{/x}`, `{/x,y}`, `{/x*}` | nothing, or values that each begin with a slash |
/// | `{.x}`, `{#x}` | nothing, or a value after a dot or after `#` |
/// | `{?x,y}`, `{&x,y}`, `{;x,y}` | values with their names, in any order; each may be missing |
/// | `{x:3}` | like `{x}`, at most three characters |
///
/// Text that two variables could match goes to the second: `{name}.{ext}` reads `a.tar.gz` as `a` and `tar.gz`. Templates that
/// are still ambiguous are refused. Values are decoded, so a plain `{x}` can contain a slash (`%2F`) or be `..`: do not use it
/// as a path. To serve files, use [`file_resources`](crate::server::file_resources).
///
/// If a value does not match the type of its field (`abc` for a number), the resource does not exist; the client gets the
/// reason.
///
/// This is the type for servers. Clients read the entries of a listing as
/// [`protocol::ResourceTemplate`](crate::protocol::ResourceTemplate).
///
/// ```
/// use oxmcp::{JsonSchema, ResourceTemplate};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Row {
///     table: Table,
///     id: u32,
/// }
///
/// #[derive(Debug, serde::Deserialize, JsonSchema)]
/// #[serde(rename_all = "lowercase")]
/// enum Table { Users, Orders }
///
/// // `None` means that the row does not exist.
/// async fn read(Row { table, id }: Row) -> Option<String> {
///     (id < 100).then(|| format!("{table:?} {id}"))
/// }
///
/// let row = ResourceTemplate::new("db://{table}/{id}", "row", read)
///     .description("A row of a table")
///     .mime_type("text/plain")
///     .complete("id", ["1", "2", "3"]);
/// # let _ = row;
/// ```
pub struct ResourceTemplate {
    pub(crate) definition: Definition,
    /// The matcher, or the first mistake in the definition.
    pub(crate) matcher: Result<Matcher>,
    pub(crate) completers: Completers,
    pub(crate) handler: ErasedHandler,
    pub(crate) cache: Option<CacheHint>,
    pub(crate) access: Access,
    pub(crate) ask_mode: AskMode,
    pub(crate) lister: Option<Lister>,
}

/// A function that lists the resources of a template for a caller.
pub(crate) type Lister =
    Arc<dyn Fn(RequestContext) -> BoxFuture<Result<Vec<ResourceDefinition>>> + Send + Sync>;

impl ResourceTemplate {
    /// Creates a template whose variables are the fields of the handler's input. Values of enums and booleans are completed
    /// while they are typed.
    ///
    /// The attribute [`#[oxmcp::resource("db://{table}")]`](macro@crate::resource) generates this call, and the struct, for a
    /// free function.
    pub fn new<Arguments, H>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<Arguments>,
        Arguments: TemplateArguments,
        H::Returned: HandlerFuture<Output: IntoResourceResult> + Send + 'static,
    {
        let (uri_template, name) = (uri_template.into(), name.into());
        let fields = StringFields::with_lists(Arguments::schema())
            .map_err(|error| error.message().to_owned());
        let parsed = fields.and_then(|fields| {
            let parsed = parse(&uri_template)?;
            check_fields(&parsed.0, &fields)?;
            Ok((fields, parsed))
        });
        let (fields, parsed) = match parsed {
            Ok(parsed) => parsed,
            Err(mistake) => return Self::wrong(uri_template, name, &mistake),
        };
        let mut completers = Completers::of(parsed.0.variables().map(|(name, _)| name));
        for field in fields.iter().filter(|field| !field.values.is_empty()) {
            // Every field has a variable, so this does not fail.
            let _ = completers.set(&field.name, Completer::new(&*field.values));
        }
        let is_reply = <H::Returned as HandlerFuture>::Output::IS_REPLY;
        Self {
            completers,
            ask_mode: AskMode::of(true, is_reply),
            ..Self::assemble(
                uri_template,
                name,
                Ok(parsed.1),
                erase_typed(fields, handler),
            )
        }
    }

    /// Creates a template whose handler takes the variables as strings, for templates that are known only at run time, from a
    /// file or from another server.
    ///
    /// ```
    /// use oxmcp::ResourceTemplate;
    ///
    /// let notes = ResourceTemplate::dynamic("notes://{+path}{?lang}", "note", |_cx, variables| async move {
    ///     let language = variables.get("lang").unwrap_or("en");
    ///     variables.get("path").map(|path| format!("the note {path} in {language}"))
    /// });
    /// # let _ = notes;
    /// ```
    pub fn dynamic<F, Fut>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: F,
    ) -> Self
    where
        F: Fn(RequestContext, TemplateVariables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoResourceResult> + Send + 'static,
    {
        Self {
            ask_mode: AskMode::of(true, Fut::Output::IS_REPLY),
            ..Self::erased(uri_template.into(), name.into(), erase_dynamic(handler))
        }
    }

    pub(crate) fn erased(uri_template: String, name: String, handler: ErasedHandler) -> Self {
        match parse(&uri_template) {
            Ok((template, matcher)) => Self {
                completers: Completers::of(template.variables().map(|(name, _)| name)),
                ..Self::assemble(uri_template, name, Ok(matcher), handler)
            },
            Err(mistake) => Self::wrong(uri_template, name, &mistake),
        }
    }

    fn assemble(
        uri_template: String,
        name: String,
        matcher: Result<Matcher>,
        handler: ErasedHandler,
    ) -> Self {
        Self {
            definition: Definition::new(uri_template, name),
            matcher,
            completers: Completers::default(),
            handler,
            cache: None,
            access: Access::default(),
            ask_mode: AskMode::Context,
            lister: None,
        }
    }

    fn wrong(uri_template: String, name: String, mistake: &str) -> Self {
        let error = of_template(&uri_template, mistake);
        Self::refused(uri_template, name, error)
    }

    /// Creates a template that servers reject with this error.
    pub(crate) fn refused(uri_template: String, name: String, error: Error) -> Self {
        let handler: ErasedHandler =
            Arc::new(|_, target| Err(Error::resource_not_found(&target.uri)));
        Self::assemble(uri_template, name, Err(error), handler)
    }

    /// Sets the completer of an existing variable: a list, or a function.
    /// See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
    #[must_use]
    pub fn complete<Marker>(
        mut self,
        variable: &str,
        completer: impl IntoCompleter<Marker>,
    ) -> Self {
        let set = self.completers.set(variable, completer.into_completer());
        if let (Ok(_), Err(mistake)) = (&self.matcher, set) {
            self.matcher = Err(of_template(&self.definition.uri_template, &mistake));
        }
        self
    }

    /// Sets a function that lists the resources of the template.
    ///
    /// The listing of resources then includes them. Resources whose URIs do not match the pattern are omitted, with a warning in
    /// the log. The function is called for each page of the listing, and must be quick. Notify clients of changes with
    /// [`Server::resources_changed`](crate::Server::resources_changed).
    ///
    /// ```
    /// use oxmcp::{ResourceTemplate, protocol::Resource};
    ///
    /// let notes = ResourceTemplate::dynamic("notes://{name}", "note", |_cx, variables| async move {
    ///     variables.get("name").map(|name| format!("the note {name}"))
    /// })
    /// .list(|_cx| async {
    ///     Ok::<_, oxmcp::Error>(vec![Resource::new("notes://today", "today"), Resource::new("notes://later", "later")])
    /// });
    /// # let _ = notes;
    /// ```
    #[must_use]
    pub fn list<F, Fut, E>(mut self, handler: F) -> Self
    where
        F: Fn(RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<ResourceDefinition>, E>> + Send + 'static,
        E: IntoError,
    {
        self.lister = Some(Arc::new(move |cx| {
            let listing = handler(cx);
            Box::pin(async move { listing.await.map_err(IntoError::into_error) })
        }));
        self
    }

    /// Returns the URI template.
    #[must_use]
    pub fn uri_template(&self) -> &str {
        &self.definition.uri_template
    }
}

resource_options!(ResourceTemplate by uri_template: "template");
entry!(ResourceTemplate of Definition by uri_template: "template");

fn of_template(uri_template: &str, mistake: &str) -> Error {
    Error::misuse(format!("resource template {uri_template:?}: {mistake}"))
}

fn parse(uri_template: &str) -> Result<(UriTemplate, Matcher), String> {
    let template = UriTemplate::parse(uri_template)?;
    template.check_scheme()?;
    let matcher = Matcher::new(&template)?;
    Ok((template, matcher))
}

/// Checks that each field is a variable, and that each variable is a field.
fn check_fields(template: &UriTemplate, fields: &StringFields) -> Result<(), String> {
    let names = || template.variables().map(|(name, _)| name);
    for field in fields.iter().map(|field| &*field.name) {
        if !names().any(|name| name == field) {
            let known = list(names().map(quote_text));
            let near = nearest(field, names());
            let near = near.map(|near| format!("; did you mean {}?", quote_text(near)));
            return Err(format!(
                "field {} is not a variable of the template{} (variables: {known})",
                quote_text(field),
                near.unwrap_or_default()
            ));
        }
    }
    for (name, is_list) in template.variables() {
        let quoted = quote_text(name);
        match fields.iter().find(|field| field.name == name) {
            None if !fields.is_open() => {
                return Err(format!(
                    "no field for the variable {quoted}; add one, or remove the variable"
                ));
            }
            Some(field) if is_list && !field.is_list() => {
                return Err(format!(
                    "variable {quoted} is a list because of its \"*\", but its field is not; use a `Vec`, or remove the \"*\""
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
