//! A host that shows apps in the browser: a page on one port of this machine, and the sandbox of the apps on another.

mod view;
mod web;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use oxmcp::{
    ClientSession,
    protocol::{Implementation, JsonObject, Tool},
};
use oxmcp_apps::host::{
    AppBridge, AppPage, DisplayMode, HostCapabilities, HostContext, Modalities, Platform, ToolInfo,
};
use tokio::{net::TcpListener, task::JoinHandle};

use self::view::View;
use crate::AnyError;

/// The most views that are open at once.
const MAX_VIEWS: usize = 16;

/// A host that shows apps in the browser, until it is dropped.
#[derive(Debug)]
pub struct AppHost {
    url: String,
    serving: [JoinHandle<std::io::Result<()>>; 2],
}

/// The state of the host.
struct Shared {
    session: ClientSession,
    tools: Vec<Tool>,
    /// The secret that the page got with its URL: other programs of this machine cannot use the host.
    token: String,
    /// The origins of the page and of the sandbox.
    page: String,
    sandbox: String,
    views: Mutex<HashMap<String, Arc<View>>>,
}

impl AppHost {
    /// Starts the host for the server of a session.
    ///
    /// # Errors
    /// If no port is free, or the system has no randomness.
    pub async fn start(session: ClientSession, tools: Vec<Tool>) -> Result<Self, AnyError> {
        let listeners = [
            TcpListener::bind("127.0.0.1:0").await?,
            TcpListener::bind("127.0.0.1:0").await?,
        ];
        let origin = |it: &TcpListener| it.local_addr().map(|it| format!("http://{it}"));
        let [page, sandbox] = [origin(&listeners[0])?, origin(&listeners[1])?];
        let token = secret()?;
        let url = format!("{page}/#{token}");
        let shared = Arc::new(Shared {
            session,
            tools,
            token,
            page,
            sandbox,
            views: Mutex::default(),
        });
        let [for_page, for_sandbox] = listeners;
        let routers = [web::page(&shared), web::sandbox(&shared)];
        let [pages, sandboxes] = routers;
        let serving = [
            tokio::spawn(axum::serve(for_page, pages).into_future()),
            tokio::spawn(axum::serve(for_sandbox, sandboxes).into_future()),
        ];
        Ok(Self { url, serving })
    }

    /// Returns the URL of the page. It contains a secret.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for AppHost {
    fn drop(&mut self) {
        for serving in &self.serving {
            serving.abort();
        }
    }
}

impl Shared {
    /// Opens the app of a tool, and calls the tool. Returns the key of the view.
    async fn open(
        &self,
        name: &str,
        arguments: JsonObject,
    ) -> Result<(String, Arc<View>), AnyError> {
        let mut tools = self.tools.iter();
        let tool = tools
            .find(|it| it.name == name)
            .ok_or("there is no such tool")?;
        let page = AppPage::open(&self.session, tool).await?;
        let page = page.ok_or("the tool has no app")?;
        let mut context = HostContext::default();
        context.tool_info = Some(ToolInfo::new(tool.clone()));
        context.display_mode = Some(DisplayMode::Inline);
        context.platform = Some(Platform::Web);
        let me = Implementation::new("app-host", "1.0.0");
        let bridge = AppBridge::new(me, capabilities())
            .context(context)
            .tools(self.tools.clone())
            .page(page.clone());
        let view = View::new(self.session.clone(), bridge, page);
        let key = secret()?;
        {
            let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
            views.retain(|_, view| view.is_open());
            if views.len() >= MAX_VIEWS {
                return Err("too many views are open; close one".into());
            }
            views.insert(key.clone(), Arc::clone(&view));
        }
        tokio::spawn(Arc::clone(&view).call(name.to_owned(), arguments));
        Ok((key, view))
    }

    fn view(&self, key: &str) -> Option<Arc<View>> {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.get(key).cloned()
    }
}

fn capabilities() -> HostCapabilities {
    let mut capabilities = HostCapabilities::default();
    capabilities.open_links = true;
    capabilities.server_tools = true;
    capabilities.server_resources = true;
    capabilities.logging = true;
    capabilities.message = Some(Modalities::TEXT);
    capabilities.update_model_context = Some(Modalities::ALL);
    capabilities
}

/// A secret that cannot be guessed.
fn secret() -> Result<String, AnyError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes.iter().map(|it| format!("{it:02x}")).collect())
}
