use std::{
    error::Error,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{runtime::Builder, task::JoinSet};

use crate::{
    Call, Latencies, Options, PATIENCE, Phase, Report, Runtime, children_cpu, give_up_after,
    own_cpu,
};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// The `main` of a client that is written on an SDK: reads the options, runs `measure` on the runtime that they name,
/// and prints the report.
pub fn client<F: Future<Output = Result<Report>>>(measure: impl FnOnce(Options) -> F) -> ExitCode {
    match run(measure) {
        Ok(report) => {
            println!("{}", report.to_json());
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn run<F: Future<Output = Result<Report>>>(measure: impl FnOnce(Options) -> F) -> Result<Report> {
    let options = Options::from_env(Runtime::Multi)?;
    give_up_after(PATIENCE);
    if options.call != Call::Add {
        return Err("this client calls nothing but add".into());
    }
    let mut builder = match options.runtime {
        Runtime::Multi => Builder::new_multi_thread(),
        Runtime::Current => Builder::new_current_thread(),
    };
    builder.enable_all().build()?.block_on(measure(options))
}

/// Warms up, then measures: `add` asks for the sum of a number and 7, as one of `conc` tasks that do so.
///
/// # Errors
/// The first error of a call, or that a sum is wrong.
pub async fn keep_in_flight<F>(
    options: &Options,
    add: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<Report>
where
    F: Future<Output = Result<String>> + Send,
{
    phase(options.warm_up(), options.conc, &add).await?;
    let (own_before, server_before) = (own_cpu(), children_cpu());
    let (latencies, wall) = phase(options.measured(), options.conc, &add).await?;
    let (own, served) = (
        own_cpu() - own_before,
        children_cpu().saturating_sub(server_before),
    );
    Ok(Report::new(latencies, wall, own, served))
}

async fn phase<F>(
    phase: Phase,
    conc: usize,
    add: &(impl Fn(u64) -> F + Clone + Send + 'static),
) -> Result<(Latencies, Duration)>
where
    F: Future<Output = Result<String>> + Send,
{
    let started = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut lanes = JoinSet::new();
    for _ in 0..conc {
        let (add, started) = (add.clone(), Arc::clone(&started));
        lanes.spawn(async move {
            let mut latencies = Latencies::default();
            loop {
                let since = Instant::now();
                let call = started.fetch_add(1, Ordering::Relaxed);
                if !phase.goes_on(since.duration_since(begun), call) {
                    return Ok(latencies);
                }
                let sum = add(call).await?;
                if sum.parse() != Ok(call + 7) {
                    return Err(format!("{call} + 7 is not {sum}").into());
                }
                latencies.push(since.elapsed());
            }
        });
    }
    let mut all = Latencies::default();
    while let Some(lane) = lanes.join_next().await {
        let latencies: Result<Latencies> = lane?;
        all.append(latencies?);
    }
    Ok((all, begun.elapsed()))
}
