//! `bench-client stdio|http [secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026] [rt=multi|current] URL|-- SERVER ARGS...`:
//! keeps calls of `add` in flight and prints one line of JSON.

use std::{error::Error, process::ExitCode};

use bench_support::{Era, Options, Report, keep_in_flight};
use oxmcp::{Client, Command, Revision, http::Endpoint};
use serde::Serialize;

#[derive(Serialize)]
struct Add {
    a: u64,
    b: u64,
}

fn main() -> ExitCode {
    bench_support::client(measure)
}

async fn measure(options: Options) -> Result<Report, Box<dyn Error + Send + Sync>> {
    let revision = match options.era {
        Era::Legacy => Revision::V2025_11_25,
        Era::Modern => Revision::V2026_07_28,
    };
    let client = Client::new("bench", "1.0.0").revisions([revision]);
    let session = if let Some(url) = &options.url {
        client.connect(Endpoint::new(url)).await?
    } else {
        let (program, args) = options.server.split_first().ok_or("missing the server")?;
        client.connect(Command::new(program).args(args)).await?
    };
    let report = keep_in_flight(&options, |mut worker| {
        let session = session.clone();
        async move {
            while let Some(a) = worker.next() {
                let result = session.call_tool("add", Add { a, b: 7 }).await?;
                worker.answered(result.as_text().unwrap_or_default())?;
            }
            Ok(worker)
        }
    })
    .await?;
    session.close().await?;
    Ok(report)
}
