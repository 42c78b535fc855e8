//! `raw-client stdio|http [secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026] [rt=current|multi] URL|-- SERVER ARGS...`

use std::{
    process::{ExitCode, Stdio},
    time::Duration,
};

use bench_raw::http_client;
use bench_support::{
    Era, Lines, Load, Options, Phase, Report, Runtime, TIME_LIMIT, give_up_after, own_cpu,
    process_cpu,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    runtime::Builder,
};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            println!("{}", report.to_json());
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("raw-client: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Report> {
    let options = Options::from_env(Runtime::Current)?;
    give_up_after(TIME_LIMIT);
    match options.runtime {
        Runtime::Current => Builder::new_current_thread()
            .enable_io()
            .build()?
            .block_on(measure(options)),
        Runtime::Multi => Builder::new_multi_thread()
            .enable_io()
            .build()?
            .block_on(async { tokio::spawn(measure(options)).await? }),
    }
}

async fn measure(options: Options) -> Result<Report> {
    if let Some(url) = &options.url {
        return http_client::measure(&options, url).await;
    }
    let mut server = Server::start(&options.server)?;
    server.open(options.era).await?;
    let mut load = Load::new(options.call.clone(), options.era, options.conc);
    server.run(&mut load, options.warm_up()).await?;
    let (own_before, server_before) = (own_cpu(), server.cpu());
    server.run(&mut load, options.measured()).await?;
    let (latencies, wall) = load.end();
    let (own, served) = (
        own_cpu() - own_before,
        server.cpu().saturating_sub(server_before),
    );
    drop(server.input);
    server.child.wait().await?;
    Ok(Report::new(latencies, wall, own, served))
}

struct Server {
    child: Child,
    pid: u32,
    input: ChildStdin,
    output: ChildStdout,
    lines: Lines,
}

impl Server {
    fn start(command: &[String]) -> Result<Self> {
        let (program, args) = command.split_first().ok_or("missing the server")?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{program}: {e}"))?;
        let pid = child.id().ok_or("the server has ended")?;
        let input = child.stdin.take().ok_or("the child has no stdin")?;
        let output = child.stdout.take().ok_or("the child has no stdout")?;
        Ok(Self {
            child,
            pid,
            input,
            output,
            lines: Lines::default(),
        })
    }

    async fn open(&mut self, era: Era) -> Result<()> {
        self.input.write_all(era.opening().as_bytes()).await?;
        while self.lines.next_line().is_none() {
            self.read().await?;
        }
        Ok(self.input.write_all(era.confirmation().as_bytes()).await?)
    }

    async fn run(&mut self, load: &mut Load, phase: Phase) -> Result<()> {
        let mut out = Vec::new();
        load.begin(phase, &mut out);
        loop {
            self.input.write_all(&out).await?;
            out.clear();
            if load.is_idle() {
                return Ok(());
            }
            self.read().await?;
            while let Some(line) = self.lines.next_line() {
                load.receive(line, &mut out)?;
            }
        }
    }

    async fn read(&mut self) -> Result<()> {
        match self.output.read_buf(self.lines.room()).await? {
            0 => Err("the server closed its stdout".into()),
            _ => Ok(()),
        }
    }

    /// The CPU time of the server; zero if the system does not provide it.
    fn cpu(&self) -> Duration {
        process_cpu(self.pid).unwrap_or_default()
    }
}
