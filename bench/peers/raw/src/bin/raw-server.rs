//! `raw-server stdio [rt=current|multi] [io=pipes|tokio] [tools=COUNT]`, or `raw-server http ADDRESS [rt=current|multi]`. COUNT is
//! the number of tools that only fill the list, which is a hundred by default.

use std::{io, process::ExitCode};

use bench_raw::{
    http,
    pipes::{self, Stdio},
    serve,
};
use tokio::runtime::Builder;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let address = match (args.first().map(String::as_str), args.get(1)) {
        (Some("stdio"), _) => None,
        (Some("http"), Some(address)) => Some(address.clone()),
        _ => {
            eprintln!(
                "usage: raw-server stdio|http ADDRESS [rt=current|multi] [io=pipes|tokio] [tools=COUNT]"
            );
            return ExitCode::FAILURE;
        }
    };
    let has = |option: &str| args.iter().any(|arg| arg == option);
    let count = args.iter().find_map(|arg| arg.strip_prefix("tools="));
    // All other tools are always there.
    let dummies = count.and_then(|count| count.parse().ok()).unwrap_or(100);
    let multi = has("rt=multi");
    let mut builder = if multi {
        Builder::new_multi_thread()
    } else {
        Builder::new_current_thread()
    };
    let outcome = builder.enable_io().build().and_then(|runtime| {
        let blocking = has("io=tokio");
        let served = async move {
            match address {
                Some(address) => http::serve(&address).await,
                None => stdio(blocking, dummies).await,
            }
        };
        // On the main thread of a multi-threaded runtime, a worker would have to hand over each message.
        if multi {
            runtime.block_on(async { tokio::spawn(served).await.map_err(io::Error::other)? })
        } else {
            runtime.block_on(served)
        }
    });
    if let Err(e) = &outcome {
        eprintln!("raw-server: {e}");
    }
    if outcome.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn stdio(blocking: bool, dummies: usize) -> io::Result<()> {
    match if blocking {
        pipes::blocking()
    } else {
        pipes::stdio()
    } {
        Stdio::Pipes(input, output) => serve(input, output, dummies).await,
        Stdio::Sockets(input, output) => serve(input, output, dummies).await,
        Stdio::Blocking(input, output) => serve(input, output, dummies).await,
    }
}
