use std::{fmt, future::Future, sync::Arc};

use serde_json::Value;

use super::{
    ErasedHandler, IntoResourceResult, TemplateArguments, TemplateVariables,
    handler::{erase_dynamic, erase_typed},
    options::options,
};
use crate::{
    Error, Result,
    codec::uri_template::{Matcher, UriTemplate},
    protocol::{Annotations, CacheHint, Icon, ResourceTemplate as Definition},
    schema::{StringFields, list, nearest, quote_text},
    server::{
        ask::Asks,
        completion::{Completer, Completers, IntoCompleter},
        handler::{Handler, HandlerFuture},
        registry::Visibility,
    },
    session::RequestContext,
};

/// Many resources with one handler: a pattern of URIs, and a function of what the variables in it stand for.
///
/// The pattern is a URI template by [RFC 6570](https://www.rfc-editor.org/rfc/rfc6570). [`new`](Self::new) reads the
/// variables as the fields of a struct; [`dynamic`](Self::dynamic) hands them over as they come. What is wrong with a
/// template, or where it and the struct do not fit each other, is reported when it is added to a server with
/// [`Server::add_resource_templates`](crate::Server::add_resource_templates), or when the server begins to serve.
/// See [resource templates](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-templates).
///
/// # Which URIs are its own
/// A resource whose URI is the one that is read comes first. Then the templates are asked, those with the most literal
/// characters first, of these those with the fewest variables; the first that matches reads, and no other, also where it
/// finds nothing.
///
/// | | matches |
/// |---|---|
/// | `{x}` | one or more characters, without `/`, `?` and `#`; in a query without `&`, too |
/// | `{x,y}`, `{x*}` | several values between commas; the last ones may be missing |
/// | `{+x}` | one or more characters, slashes too; no `?` or `#` where the template has one behind it |
/// | `{/x}`, `{/x,y}`, `{/x*}` | nothing, or values that begin with a slash each |
/// | `{.x}`, `{#x}` | nothing, or what is behind a dot or behind `#` |
/// | `{?x,y}`, `{&x,y}`, `{;x,y}` | values with their names, in any order; each may be missing |
/// | `{x:3}` | as `{x}`, at most three characters |
///
/// What two variables could take goes to the second: `{name}.{ext}` reads `a.tar.gz` as `a` and `tar.gz`. Where even that
/// would leave a doubt, the template is refused. Values are decoded, so that a plain `{x}` can hold a slash (`%2F`) or be
/// `..`: do not make a path of it. To serve files there is [`file_resources`](crate::file_resources).
///
/// A value that its field cannot have (`abc` for a number) means that there is no such resource; the client is told why.
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
/// // `None` is no such row.
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
    pub(super) definition: Definition,
    /// What it matches, or the first thing that is wrong.
    pub(super) matcher: Result<Matcher>,
    pub(super) completers: Completers,
    pub(super) handler: ErasedHandler,
    pub(super) hint: Option<CacheHint>,
    pub(super) visibility: Option<Visibility>,
    pub(super) asks: Asks,
}

impl ResourceTemplate {
    /// A template whose variables are the fields of what the handler takes. Values of enums and booleans are completed
    /// while they are typed.
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
        let uri_template = uri_template.into();
        let fields = StringFields::with_lists(Arguments::schema())
            .map_err(|error| error.message().to_owned());
        let read = fields.and_then(|fields| {
            let (template, matcher) = read(&uri_template)?;
            check_fields(&template, &fields)?;
            Ok((fields, template, matcher))
        });
        let (fields, template, matcher) = match read {
            Ok(read) => read,
            Err(problem) => return Self::wrong(uri_template, name.into(), &problem),
        };
        let mut completers = Completers::of(template.variables().map(|(name, _)| name));
        for field in fields.iter().filter(|field| !field.values.is_empty()) {
            // Each field has its variable, so this does not fail.
            let _ = completers.set(&field.name, Completer::new(&*field.values));
        }
        let handler = erase_typed(fields, handler);
        let matcher = Ok(matcher);
        let mut template = Self::assemble(uri_template, name.into(), matcher, completers, handler);
        let by_hand = <H::Returned as HandlerFuture>::Output::asks_by_hand();
        template.asks = Asks::of(true, by_hand);
        template
    }

    /// A template whose handler takes the variables as they come. For templates that are known only at run time: from a
    /// file, from another server.
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
        let handler = erase_dynamic(handler);
        let mut template = Self::erased(uri_template.into(), name.into(), handler);
        template.asks = Asks::of(true, Fut::Output::asks_by_hand());
        template
    }

    pub(in crate::server) fn erased(
        uri_template: String,
        name: String,
        handler: ErasedHandler,
    ) -> Self {
        match read(&uri_template) {
            Ok((template, matcher)) => {
                let completers = Completers::of(template.variables().map(|(name, _)| name));
                Self::assemble(uri_template, name, Ok(matcher), completers, handler)
            }
            Err(problem) => Self::wrong(uri_template, name, &problem),
        }
    }

    fn assemble(
        uri_template: String,
        name: String,
        matcher: Result<Matcher>,
        completers: Completers,
        handler: ErasedHandler,
    ) -> Self {
        Self {
            definition: Definition::new(uri_template, name),
            matcher,
            completers,
            handler,
            hint: None,
            visibility: None,
            asks: Asks::WithContext,
        }
    }

    fn wrong(uri_template: String, name: String, problem: &str) -> Self {
        let error = of_template(&uri_template, problem);
        Self::unfit(uri_template, name, error)
    }

    /// One that no server will take.
    pub(in crate::server) fn unfit(uri_template: String, name: String, error: Error) -> Self {
        let handler: ErasedHandler =
            Arc::new(|_, target| Err(Error::resource_not_found(&target.uri)));
        let completers = Completers::default();
        Self::assemble(uri_template, name, Err(error), completers, handler)
    }

    /// Has a variable, which must exist, completed while it is typed: by a list, or by a function.
    /// See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
    #[must_use]
    pub fn complete<Marker>(
        mut self,
        variable: &str,
        completer: impl IntoCompleter<Marker>,
    ) -> Self {
        let set = self.completers.set(variable, completer.into_completer());
        if let (Ok(_), Err(problem)) = (&self.matcher, set) {
            self.matcher = Err(of_template(&self.definition.uri_template, &problem));
        }
        self
    }

    /// The pattern.
    #[must_use]
    pub fn uri_template(&self) -> &str {
        &self.definition.uri_template
    }
}

options!(ResourceTemplate);

fn of_template(uri_template: &str, problem: &str) -> Error {
    Error::misuse(format!("resource template {uri_template:?}: {problem}"))
}

fn read(uri_template: &str) -> Result<(UriTemplate, Matcher), String> {
    let template = UriTemplate::parse(uri_template)?;
    template.check_scheme()?;
    let matcher = Matcher::new(&template)?;
    Ok((template, matcher))
}

/// Checks that each field is a variable, and each variable a field.
fn check_fields(template: &UriTemplate, fields: &StringFields) -> Result<(), String> {
    let names = || template.variables().map(|(name, _)| name);
    for field in fields.iter().map(|field| &*field.name) {
        if !names().any(|name| name == field) {
            let known = list(names().map(quote_text));
            let near = nearest(field, names());
            let near = near.map(|near| format!(", did you mean {}?", quote_text(near)));
            return Err(format!(
                "the input has a field {}, which is no variable of the template{} (its variables are {known})",
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
                    "the input has no field for the variable {quoted}; add one, or take the variable out"
                ));
            }
            Some(field) if is_list && !field.is_list() => {
                return Err(format!(
                    "the variable {quoted} is a list, for it ends with \"*\", and its field is none; let it be a Vec, or leave the \"*\" out"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate")
            .field("uri_template", &self.definition.uri_template)
            .field("problem", &self.matcher.as_ref().err())
            .finish_non_exhaustive()
    }
}
