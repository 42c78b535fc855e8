//! `rmcp-server stdio [rt=multi|current] [io=tokio|pipes] [form=field|readme]`

use std::process::ExitCode;

use bench_rmcp::Tools;
use rmcp::{ServerHandler, ServiceExt, transport};
use tokio::runtime::Builder;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) != Some("stdio") {
        eprintln!(
            "usage: rmcp-server stdio [rt=multi|current] [io=tokio|pipes] [form=field|readme]"
        );
        return ExitCode::FAILURE;
    }
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
            let pipes = has("io=pipes");
            if has("form=readme") {
                runtime.block_on(serve(Tools::<false>::default(), pipes))
            } else {
                runtime.block_on(serve(Tools::<true>::default(), pipes))
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

async fn serve<const KEPT: bool>(tools: Tools<KEPT>, pipes: bool) -> Result<()>
where
    Tools<KEPT>: ServerHandler,
{
    let service = if pipes {
        tools.serve(transport::io::stdio_pipes()).await?
    } else {
        tools.serve(transport::stdio()).await?
    };
    service.waiting().await?;
    Ok(())
}
