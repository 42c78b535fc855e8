//! `rmcp-server stdio [rt=multi|current] [io=tokio|pipes] [form=field|readme] [tools=more|COUNT]`, or
//! `rmcp-server http ADDRESS ...`. Over HTTP `io=pipes` disables Nagle's algorithm.

use std::process::ExitCode;

use axum::{Router, serve::ListenerExt};
use bench_rmcp::{Set, Tools};
use rmcp::{
    ServerHandler, ServiceExt,
    transport::{
        self, StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use tokio::{net::TcpListener, runtime::Builder};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let address = match (args.first().map(String::as_str), args.get(1)) {
        (Some("stdio"), _) => None,
        (Some("http"), Some(address)) => Some(address.as_str()),
        _ => {
            eprintln!(
                "usage: rmcp-server stdio|http ADDRESS [rt=multi|current] [io=tokio|pipes] [form=field|readme] [tools=more|COUNT]"
            );
            return ExitCode::FAILURE;
        }
    };
    let has = |option: &str| args.iter().any(|arg| arg == option);
    let mut builder = if has("rt=current") {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    let outcome = builder
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| {
            let quick = has("io=pipes");
            let mut set = Set {
                more: has("tools=more"),
                ..Set::default()
            };
            let count = args.iter().find_map(|arg| arg.strip_prefix("tools="));
            if let Some(count) = count.and_then(|count| count.parse().ok()) {
                set.dummies = count;
            }
            let _entered = runtime.enter();
            if has("form=readme") {
                runtime.block_on(serve(Tools::<false>::new(set), address, quick))
            } else {
                runtime.block_on(serve(Tools::<true>::new(set), address, quick))
            }
        });
    if let Err(e) = &outcome {
        eprintln!("rmcp-server: {e}");
    }
    if outcome.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn serve<const KEPT: bool>(
    tools: Tools<KEPT>,
    address: Option<&str>,
    quick: bool,
) -> Result<()>
where
    Tools<KEPT>: ServerHandler,
{
    if let Some(address) = address {
        return http(tools, address, quick).await;
    }
    let service = if quick {
        tools.serve(transport::io::stdio_pipes()).await?
    } else {
        tools.serve(transport::stdio()).await?
    };
    service.waiting().await?;
    Ok(())
}

async fn http<const KEPT: bool>(tools: Tools<KEPT>, address: &str, quick: bool) -> Result<()>
where
    Tools<KEPT>: ServerHandler,
{
    let service = StreamableHttpService::new(
        move || Ok(tools.clone()),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let app = Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind(address).await?;
    if quick {
        let listener = listener.tap_io(|socket| {
            let _ = socket.set_nodelay(true);
        });
        axum::serve(listener, app).await?;
    } else {
        axum::serve(listener, app).await?;
    }
    Ok(())
}
