//! The tools of the benchmark on rmcp, in the two forms that its documentation shows.
#![expect(
    missing_docs,
    reason = "the macros of rmcp make public items without documentation"
)]

use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{
        ProgressNotificationParam, RequestMetaObject, ServerCapabilities, ServerConfig,
        SubscriptionFilter, Tool,
    },
    schemars, tool, tool_handler, tool_router,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Pair {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Count {
    n: u64,
}

/// The tools. `KEPT` says whether the router is built once and kept, or anew for each request.
#[derive(Clone)]
pub struct Tools<const KEPT: bool> {
    router: ToolRouter<Self>,
}

#[tool_router]
impl<const KEPT: bool> Tools<KEPT> {
    #[tool(description = "Add two integers")]
    fn add(&self, Parameters(Pair { a, b }): Parameters<Pair>) -> String {
        a.saturating_add(b).to_string()
    }

    #[tool(description = "Give the text back")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Report progress n times")]
    async fn stream(
        &self,
        meta: RequestMetaObject,
        client: Peer<RoleServer>,
        Parameters(Count { n }): Parameters<Count>,
    ) -> Result<String, ErrorData> {
        if let Some(token) = meta.get_progress_token() {
            for i in 1..=n {
                let progress =
                    ProgressNotificationParam::new(token.clone(), i as f64).with_total(n as f64);
                let sent = client.notify_progress(progress).await;
                sent.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
            }
        }
        Ok("done".into())
    }

    /// The router with the hundred tools that only fill the list.
    fn full_router() -> ToolRouter<Self> {
        let add = Self::add_tool_attr();
        (0..100).fold(Self::tool_router(), |router, i| {
            let dummy = Tool::new(
                format!("dummy_{i:03}"),
                "Add two integers",
                add.input_schema.clone(),
            );
            router.with_route((dummy, Self::add))
        })
    }
}

impl<const KEPT: bool> Default for Tools<KEPT> {
    fn default() -> Self {
        Self {
            router: Self::full_router(),
        }
    }
}

/// The better of the documented forms.
#[tool_handler(router = self.router)]
impl ServerHandler for Tools<true> {
    fn get_info(&self) -> ServerConfig {
        config()
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
}

/// What the macro writes by default: each request builds the router.
#[tool_handler(router = Self::full_router())]
impl ServerHandler for Tools<false> {
    fn get_info(&self) -> ServerConfig {
        config()
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
}

fn config() -> ServerConfig {
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed();
    ServerConfig::new(capabilities.build())
}
