//! Workers: tasks of a client that keep calls in flight.

use std::{
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

use tokio::{runtime::Builder, task::JoinSet};

use crate::{
    Call, Latencies, Options, Phase, Report, Runtime, TIME_LIMIT, children_cpu, give_up_after,
    own_cpu,
};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// The `main` of a client that is written on an SDK: reads the options, runs `measure` on the selected runtime, and prints the
/// report.
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
    give_up_after(TIME_LIMIT);
    if options.call != Call::Add {
        return Err("this client supports only `call=add`".into());
    }
    let mut builder = match options.runtime {
        Runtime::Multi => Builder::new_multi_thread(),
        Runtime::Current => Builder::new_current_thread(),
    };
    builder.enable_all().build()?.block_on(measure(options))
}

/// Warms up, then measures: `worker` calls `add` again and again, as one of `conc` concurrent tasks.
///
/// # Errors
/// Returns the first error of a call, or an error if a sum is wrong.
pub async fn keep_in_flight<F>(options: &Options, worker: impl Fn(Worker) -> F) -> Result<Report>
where
    F: Future<Output = Result<Worker>> + Send + 'static,
{
    phase(options.warm_up(), options.conc, &worker).await?;
    let (own_before, server_before) = (own_cpu(), children_cpu());
    let (latencies, wall) = phase(options.measured(), options.conc, &worker).await?;
    let (own, served) = (
        own_cpu() - own_before,
        children_cpu().saturating_sub(server_before),
    );
    Ok(Report::new(latencies, wall, own, served))
}

async fn phase<F>(
    phase: Phase,
    conc: usize,
    worker: &impl Fn(Worker) -> F,
) -> Result<(Latencies, Duration)>
where
    F: Future<Output = Result<Worker>> + Send + 'static,
{
    let begun = Instant::now();
    let mut workers = JoinSet::new();
    let conc = conc as u64;
    for first in 0..conc {
        workers.spawn(worker(Worker {
            phase,
            begun,
            workers: conc,
            call: first,
            next: first,
            since: begun,
            latencies: Latencies::default(),
        }));
    }
    let mut all = Latencies::default();
    while let Some(worker) = workers.join_next().await {
        all.append(worker??.latencies);
    }
    Ok((all, begun.elapsed()))
}

/// One of the tasks that call `add`. It takes the [`next`](Self::next) number, has the sum of that number and 7
/// [checked](Self::answered), and repeats this until there is no next number; then it returns the worker.
#[derive(Debug)]
pub struct Worker {
    phase: Phase,
    begun: Instant,
    /// The number of workers, by which the numbers of each worker are spaced.
    workers: u64,
    call: u64,
    next: u64,
    /// The start of the current call, which is the time of the previous answer.
    since: Instant,
    latencies: Latencies,
}

impl Worker {
    /// The next number, to which the task adds 7. `None` if the phase is over.
    #[expect(
        clippy::should_implement_trait,
        reason = "each number is followed by an answer"
    )]
    pub fn next(&mut self) -> Option<u64> {
        self.call = self.next;
        self.next += self.workers;
        let elapsed = self.since.duration_since(self.begun);
        self.phase.goes_on(elapsed, self.call).then_some(self.call)
    }

    /// Checks an answer and records its latency.
    ///
    /// # Errors
    /// If the sum is wrong.
    pub fn answered(&mut self, sum: &str) -> Result<()> {
        if sum.parse() != Ok(self.call + 7) {
            return Err(format!("{} + 7 is not {sum}", self.call).into());
        }
        let now = Instant::now();
        self.latencies.push(now.duration_since(self.since));
        self.since = now;
        Ok(())
    }
}
