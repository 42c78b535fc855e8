//! The server's side: an app, the tools that it shows, and the extension that declares it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use oxmcp::{
    Error, Extension, RequestContext, Resource, Result, Server, Tool,
    extension::ServedFeatures,
    protocol::{ResourceBody, ResourceContents},
};
use serde_json::{Value, json};

use crate::{
    ID, MIME_TYPE,
    metadata::{AppMeta, FLAT_URI, Permission, ToolUi, UI, Visibility},
    rules::{Finding, Rule, check_html, check_resource, check_tool},
};

/// The document of an app.
#[derive(Clone)]
enum Html {
    Fixed(ResourceBody),
    Handler(HtmlHandler),
}

type HtmlFuture = Pin<Box<dyn Future<Output = Result<String>> + Send>>;
type HtmlHandler = Arc<dyn Fn(RequestContext) -> HtmlFuture + Send + Sync>;

/// The document of an app as text or as bytes, for [`App::new`].
#[derive(Clone, Debug)]
pub struct AppHtml(ResourceBody);

/// Conversions of text and bytes to the document of an app.
macro_rules! html {
    ($($type:ty => $body:ident),+ $(,)?) => {$(
        impl From<$type> for AppHtml {
            fn from(html: $type) -> Self {
                Self(ResourceBody::$body(html.into()))
            }
        }
    )+};
}

html!(&str => Text, String => Text, &'static [u8] => Blob, Vec<u8> => Blob, Bytes => Blob);

/// A user interface that a server offers: an HTML document that hosts show in a sandbox, together with the result of a tool.
///
/// By default the document may load nothing from elsewhere: everything that it needs is in it. Add the origins that it may use.
///
/// ```
/// use oxmcp::{Server, Tool};
/// use oxmcp_apps::{App, ServerExt, ToolExt};
///
/// let view = App::new("ui://clock/view.html", "<!doctype html><p id=time></p><script>/* … */</script>")
///     .connect("https://time.example.com")
///     .border(true);
/// let now = Tool::new("now", "Tell the time", || async { "ten past two" }).app(&view);
/// let wind = Tool::new("wind", "Wind the clock", || async { "wound" }).app_only(&view);
/// let server = Server::new("clock", "1.0.0").tools([now, wind]).app(view);
/// assert!(server.check().is_ok());
/// ```
///
/// Mistakes are reported before the server begins to serve, and by [`Server::check`], with the [rule](crate::rules::Rule) that
/// is broken.
#[derive(Clone)]
#[must_use = "add the app to a server with `Server::app`"]
pub struct App {
    uri: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    html: Html,
    meta: AppMeta,
}

impl App {
    /// Creates an app with a fixed document. The URI begins with `ui://`, and should name the server and the view.
    pub fn new(uri: impl Into<String>, html: impl Into<AppHtml>) -> Self {
        Self::assemble(uri.into(), Html::Fixed(html.into().0))
    }

    /// Creates an app whose document a function returns for each request, from a file or a template.
    ///
    /// ```
    /// use oxmcp_apps::App;
    ///
    /// let view = App::dynamic("ui://clock/view.html", |cx| async move {
    ///     let client = cx.peer_info().map_or("you", |client| &client.name);
    ///     Ok(format!("<!doctype html><p>Hello {client}"))
    /// });
    /// ```
    pub fn dynamic<F, Fut>(uri: impl Into<String>, html: F) -> Self
    where
        F: Fn(RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String>> + Send + 'static,
    {
        let handler: HtmlHandler = Arc::new(move |cx| Box::pin(html(cx)));
        Self::assemble(uri.into(), Html::Handler(handler))
    }

    fn assemble(uri: String, html: Html) -> Self {
        let path = uri.strip_prefix("ui://").unwrap_or(&uri);
        Self {
            name: path.to_owned(),
            uri,
            title: None,
            description: None,
            html,
            meta: AppMeta::default(),
        }
    }

    /// Sets the name of the resource, for programs. The default is the URI without its scheme.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the title of the resource, for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description of the resource.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds an origin to which the document may send requests, as in `https://api.example.com`, or `wss://…` for WebSocket.
    pub fn connect(mut self, origin: impl Into<String>) -> Self {
        self.meta.csp.connect.push(origin.into());
        self
    }

    /// Adds an origin from which the document may load scripts, styles, images, fonts and media.
    pub fn resources(mut self, origin: impl Into<String>) -> Self {
        self.meta.csp.resources.push(origin.into());
        self
    }

    /// Adds an origin that the document may show in frames. Some hosts allow none.
    pub fn frames(mut self, origin: impl Into<String>) -> Self {
        self.meta.csp.frames.push(origin.into());
        self
    }

    /// Adds an origin that the document may use as its base URI.
    pub fn base_uri(mut self, origin: impl Into<String>) -> Self {
        self.meta.csp.base_uris.push(origin.into());
        self
    }

    /// Asks for a capability of the browser. The document must work without it, since a host may refuse it.
    pub fn permission(mut self, permission: Permission) -> Self {
        if !self.meta.permissions.contains(&permission) {
            self.meta.permissions.push(permission);
        }
        self
    }

    /// Asks for a border and a background around the view, or for none. Without it the host decides.
    pub fn border(mut self, border: bool) -> Self {
        self.meta.prefers_border = Some(border);
        self
    }

    /// Asks for an origin of the view. Each host has its own format, and hosts refuse to show an app whose domain has the
    /// format of another: set it only for one host that is known.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.meta.domain = Some(domain.into());
        self
    }

    /// Returns the URI.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Checks the app, as the server does before it begins to serve. A document of a function is not checked.
    ///
    /// ```
    /// use oxmcp_apps::App;
    ///
    /// let view = App::new("ui://clock/view.html", "<!doctype html><p>hi").connect("example.com");
    /// assert_eq!(
    ///     view.check().unwrap_err().message(),
    ///     "APP-009: resource \"ui://clock/view.html\": `csp.connectDomains`: \"example.com\" is not an origin; use a scheme \
    ///      and a host without a path, as in \"https://api.example.com\" or \"https://*.example.com\"",
    /// );
    /// ```
    ///
    /// # Errors
    /// The first rule that the app breaks.
    pub fn check(&self) -> Result<()> {
        self.finding()
            .map_or(Ok(()), |it| Err(Error::invalid_request(it.to_string())))
    }

    fn finding(&self) -> Option<Finding> {
        let mut entry = oxmcp::protocol::Resource::new(&*self.uri, &*self.name);
        entry.mime_type = Some(MIME_TYPE.to_owned());
        entry.meta.insert(UI, self.meta.to_json());
        let finding = check_resource(&entry).into_iter().next();
        finding.or_else(|| match &self.html {
            Html::Fixed(body) => check_html(&self.uri, body),
            Html::Handler(_) => None,
        })
    }

    /// Returns the resource that serves the app, to set options that only resources have, such as who sees it. Add it with
    /// [`Server::resource`], together with the [`extension`].
    ///
    /// ```
    /// use oxmcp::{Server, protocol::CacheHint};
    /// use oxmcp_apps::{App, extension};
    ///
    /// let view = App::new("ui://clock/view.html", "<!doctype html><p>hi");
    /// let server = Server::new("clock", "1.0.0")
    ///     .extension(extension())
    ///     .resource(view.into_resource().cache(CacheHint::default()));
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn into_resource(self) -> Resource {
        let Self { uri, name, .. } = self;
        let meta = self.meta.to_json();
        let size = match &self.html {
            Html::Fixed(ResourceBody::Text(text)) => Some(text.len()),
            Html::Fixed(ResourceBody::Blob(bytes)) => Some(bytes.len()),
            _ => None,
        };
        let (html, content_meta) = (self.html, meta.clone());
        let mut resource = Resource::new(uri, name, move |cx: RequestContext| {
            let html = html.clone();
            let meta = content_meta.clone();
            async move { Ok::<_, Error>(contents(read(html, cx).await?, meta)) }
        });
        resource = resource.mime_type(MIME_TYPE).meta(UI, meta);
        if let Some(size) = size {
            resource = resource.size(size as u64);
        }
        if let Some(title) = self.title {
            resource = resource.title(title);
        }
        match self.description {
            Some(description) => resource.description(description),
            None => resource,
        }
    }

    /// The metadata of a tool that this app shows.
    fn tool_meta(&self, visibility: Visibility) -> Value {
        json!({"resourceUri": self.uri, "visibility": visibility.to_json()})
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("uri", &self.uri)
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}

async fn read(html: Html, cx: RequestContext) -> Result<ResourceBody> {
    match html {
        Html::Fixed(body) => Ok(body),
        Html::Handler(handler) => handler(cx).await.map(ResourceBody::Text),
    }
}

fn contents(body: ResourceBody, meta: Value) -> ResourceContents {
    let mut contents = match body {
        ResourceBody::Blob(bytes) => ResourceContents::from(bytes),
        ResourceBody::Text(text) => ResourceContents::from(text),
        // No other body is made by `AppHtml`.
        _ => ResourceContents::from(""),
    };
    contents.meta.insert(UI, meta);
    contents
}

/// Methods of [`Tool`] that attach an app, which shows the results.
///
/// The result of the tool should have content all the same: the model reads it, and so do users of hosts that show no apps.
pub trait ToolExt: Sized {
    /// Shows the results in an app. The model and the view can call the tool.
    #[must_use]
    fn app(self, app: &App) -> Self;

    /// Offers the tool to the view of an app only: hosts hide it from the model. To the server, a call of the view is like any
    /// other: it must check the arguments just as well. Clients of revisions before 2025-06-18, in which tools have no metadata,
    /// do not have the tool in their listing.
    #[must_use]
    fn app_only(self, app: &App) -> Self;

    /// Shows the results in an app whose view must not call the tool.
    #[must_use]
    fn model_only(self, app: &App) -> Self;
}

impl ToolExt for Tool {
    fn app(self, app: &App) -> Self {
        attach(self, app, Visibility::BOTH)
    }

    fn app_only(self, app: &App) -> Self {
        // Without metadata, a host could not hide the tool from its model.
        attach(self, app, Visibility::APP).listed_to(|cx| cx.revision().has_entry_metadata())
    }

    fn model_only(self, app: &App) -> Self {
        attach(self, app, Visibility::MODEL)
    }
}

/// Writes both keys: hosts of before the specification was final read only the older one.
fn attach(tool: Tool, app: &App, visibility: Visibility) -> Tool {
    let tool = tool.meta(UI, app.tool_meta(visibility));
    tool.meta(FLAT_URI, app.uri.as_str()).requires(ID)
}

/// Methods of [`Server`] that add apps.
pub trait ServerExt: Sized {
    /// Adds an app: the resource with its document, and the declaration of the [extension](crate::ID).
    #[must_use]
    fn app(self, app: App) -> Self;

    /// Adds apps, like [`app`](Self::app).
    #[must_use]
    fn apps(self, apps: impl IntoIterator<Item = App>) -> Self {
        apps.into_iter().fold(self, Self::app)
    }
}

impl ServerExt for Server {
    fn app(self, app: App) -> Self {
        let problems = self.extension_state::<Problems>(ID);
        let (server, problems) = match problems {
            Some(problems) => (self, problems),
            None => {
                let problems = Arc::default();
                (self.extension(extension_with(&problems)), problems)
            }
        };
        if let Some(finding) = app.finding() {
            let mut first = problems.0.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(finding);
        }
        server.resource(app.into_resource())
    }
}

/// The first mistake in an app of a server.
#[derive(Default)]
struct Problems(Mutex<Option<Finding>>);

/// Returns the extension for servers, which declares that the server has apps and checks its tools and resources before it
/// begins to serve. [`ServerExt::app`] adds it; use this function for apps that are resources of another kind.
#[must_use]
pub fn extension() -> Extension {
    extension_with(&Arc::default())
}

fn extension_with(problems: &Arc<Problems>) -> Extension {
    let found = Arc::clone(problems);
    Extension::new(ID)
        .state(Arc::clone(problems))
        .check_features(move |features| {
            let first = found.0.lock().unwrap_or_else(PoisonError::into_inner);
            let first = first.clone().or_else(|| first_finding(features));
            first.map_or(Ok(()), |it| Err(it.to_string()))
        })
}

/// The first rule that the features of a server break, apart from warnings.
fn first_finding(features: &ServedFeatures<'_>) -> Option<Finding> {
    for tool in features.tools() {
        let mut findings = check_tool(tool).into_iter();
        if let Some(finding) = findings.find(|it| !it.rule.is_warning()) {
            return Some(finding);
        }
        let uri = ToolUi::of(tool).resource_uri;
        if let Some(uri) = uri.filter(|uri| !features.has_resource(uri)) {
            let problem = format!(
                "the server has no resource {uri:?}; add the app to the server with `.app(…)`"
            );
            return Some(Finding::of_tool(Rule::AppExists, &tool.name, problem));
        }
    }
    let mut resources = features.resources().iter();
    resources.find_map(|it| check_resource(it).into_iter().next())
}

/// Returns whether the client of a request has declared that it shows apps. Some hosts show them and declare nothing: attach
/// apps to tools for all clients, and ask this only where a tool makes no sense without its view.
///
/// ```
/// use oxmcp::{RequestContext, Tool};
/// use oxmcp_apps::client_shows_apps;
///
/// let draw = Tool::new("draw", "Draw a chart", |cx: RequestContext| async move {
///     match client_shows_apps(&cx) {
///         true => "The chart is shown to the user.",
///         false => "Monday 3, Tuesday 5, Wednesday 4",
///     }
/// });
/// # let _ = draw;
/// ```
#[must_use]
pub fn client_shows_apps(cx: &RequestContext) -> bool {
    let extensions = cx.client_capabilities().extensions.as_ref();
    let types = extensions.and_then(|all| all.get(ID)?.get("mimeTypes")?.as_array());
    types.is_some_and(|types| types.iter().any(|it| it == MIME_TYPE))
}
