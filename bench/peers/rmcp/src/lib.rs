//! The tools of the benchmark on rmcp, in the two forms that its documentation shows.
#![expect(
    missing_docs,
    reason = "the macros of rmcp make public items without documentation"
)]

use bench_support::Adder;
use rmcp::{
    ErrorData, Json, Peer, RoleServer, ServerHandler,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{
        ProgressNotificationParam, RequestMetaObject, ResourceUpdatedNotificationParam,
        ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    },
    schemars,
    service::{RequestContext, SubscriptionContext},
    tool, tool_handler, tool_router,
};
use tokio::{select, sync::broadcast};

bench_support::order_types!(schemars::JsonSchema);

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

/// The tools. `KEPT` says whether the router is built once and kept, or built anew for each request.
#[derive(Clone)]
pub struct Tools<const KEPT: bool> {
    router: ToolRouter<Self>,
    adder: Adder,
    updates: broadcast::Sender<String>,
}

/// The tools in addition to `add`, `echo` and `stream`.
#[derive(Clone, Copy)]
pub struct Set {
    /// Whether to add `quote`, `wait` and `update`.
    pub more: bool,
    /// The number of tools that only fill the list.
    pub dummies: usize,
}

impl Default for Set {
    fn default() -> Self {
        Self {
            more: false,
            dummies: 100,
        }
    }
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
}

#[tool_router(router = more_router)]
impl<const KEPT: bool> Tools<KEPT> {
    #[tool(description = "Say what an order costs")]
    fn quote(&self, Parameters(order): Parameters<Order>) -> Json<Quote> {
        Json(order.quote())
    }

    #[tool(description = "Let another task add two integers")]
    async fn wait(&self, Parameters(Pair { a, b }): Parameters<Pair>) -> Result<String, ErrorData> {
        let sum = self.adder.add(a, b).await;
        let sum = sum.ok_or_else(|| ErrorData::internal_error("the adder has stopped", None))?;
        Ok(sum.to_string())
    }

    #[tool(description = "Update a resource")]
    fn update(&self) -> String {
        // There may be no listener.
        let _ = self.updates.send("bench://watched".to_owned());
        "updated".to_owned()
    }
}

impl<const KEPT: bool> Tools<KEPT> {
    /// The tools of a set.
    #[must_use]
    pub fn new(set: Set) -> Self {
        Self {
            router: Self::full_router(set),
            adder: Adder::start(),
            updates: broadcast::Sender::new(16),
        }
    }

    fn full_router(Set { more, dummies }: Set) -> ToolRouter<Self> {
        let add = Self::add_tool_attr();
        let mut router = Self::tool_router();
        if more {
            router.merge(Self::more_router());
        }
        (0..dummies).fold(router, |router, i| {
            let dummy = Tool::new(
                format!("dummy_{i:03}"),
                "Add two integers",
                add.input_schema.clone(),
            );
            router.with_route((dummy, Self::add))
        })
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

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut updates = self.updates.subscribe();
        loop {
            select! {
                () = context.cancelled() => return Ok(()),
                Ok(uri) = updates.recv() => {
                    let sent = context.sink().notify_resource_updated(uri).await;
                    sent.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
                }
            }
        }
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (mut updates, client) = (self.updates.subscribe(), context.peer);
        tokio::spawn(async move {
            while let Ok(uri) = updates.recv().await {
                let update = ResourceUpdatedNotificationParam::new(uri);
                if client.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        });
        Ok(())
    }
}

/// The form that the macro writes by default: each request builds the router, of the plain set.
#[tool_handler(router = Self::full_router(Set::default()))]
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
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_subscribe();
    ServerConfig::new(capabilities.build())
}
