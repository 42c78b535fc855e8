//! `rmcp-client stdio|http [secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026] [rt=multi|current] URL|-- SERVER ARGS...`

use std::{error::Error, process::ExitCode};

use bench_support::{Era, Options, Report, keep_in_flight};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt,
    model::{CallToolRequestParams, ProtocolVersion},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use tokio::process::Command;

fn main() -> ExitCode {
    bench_support::client(measure)
}

async fn measure(options: Options) -> Result<Report, Box<dyn Error + Send + Sync>> {
    let lifecycle = match options.era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let service = if let Some(url) = &options.url {
        let transport = StreamableHttpClientTransport::from_uri(url.as_str());
        ().serve_with_lifecycle(transport, lifecycle).await?
    } else {
        let (program, args) = options.server.split_first().ok_or("missing the server")?;
        let mut command = Command::new(program);
        command.args(args);
        ().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle)
            .await?
    };
    let report = keep_in_flight(&options, |mut worker| {
        let peer = service.peer().clone();
        async move {
            while let Some(a) = worker.next() {
                let arguments = serde_json::json!({"a": a, "b": 7})
                    .as_object()
                    .cloned()
                    .unwrap_or_default();
                let result = peer
                    .call_tool(CallToolRequestParams::new("add").with_arguments(arguments))
                    .await?;
                let text = result.content.first().and_then(|block| block.as_text());
                worker.answered(text.map(|text| text.text.as_str()).unwrap_or_default())?;
            }
            Ok(worker)
        }
    })
    .await?;
    service.cancel().await?;
    Ok(report)
}
