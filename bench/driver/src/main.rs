//! The neutral driver: puts the same load on any MCP server over stdio, checks every answer, and prints the server's CPU
//! time in the measured window as one line of JSON.
//!
//! - `bench-driver stdio [secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026] [call=add] -- SERVER ARGS...`
//! - `bench-driver pin PROGRAM ARGS...` pins itself to one CPU and becomes the program, whose children inherit it.
//!
//! It blocks on its pipes, so that on the CPU that it shares with the server exactly one of them runs.

use std::{
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    time::Duration,
};

use bench_support::{
    Era, Lines, Load, Options, PATIENCE, Phase, Report, Runtime, give_up_after, own_cpu,
    process_cpu,
};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("pin") => pin(std::env::args().skip(2)),
        _ => measure(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bench-driver: {e}");
            ExitCode::FAILURE
        }
    }
}

fn pin(mut command: impl Iterator<Item = String>) -> Result<()> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this)?;
    let mut cpus = (0..CpuSet::count()).rev();
    let last = cpus.find(|cpu| allowed.is_set(*cpu) == Ok(true));
    let mut one = CpuSet::new();
    one.set(last.ok_or("there is no CPU to run on")?)?;
    sched_setaffinity(this, &one)?;
    let program = command
        .next()
        .ok_or("usage: bench-driver pin PROGRAM ARGS...")?;
    Err(Command::new(program).args(command).exec().into())
}

fn measure() -> Result<()> {
    let options = Options::from_env(Runtime::Current)?;
    give_up_after(PATIENCE);
    let mut server = Server::start(&options.server)?;
    server.open(options.era)?;
    let mut load = Load::new(options.call.clone(), options.era, options.conc);
    server.run(&mut load, options.warm_up())?;
    let (own_before, server_before) = (own_cpu(), server.cpu()?);
    server.run(&mut load, options.measured())?;
    let (latencies, wall) = load.end();
    let (own, served) = (own_cpu() - own_before, server.cpu()? - server_before);
    println!("{}", Report::new(latencies, wall, own, served).to_json());
    server.stop()
}

struct Server {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    chunk: Vec<u8>,
    lines: Lines,
}

impl Server {
    fn start(command: &[String]) -> Result<Self> {
        let (program, args) = command.split_first().ok_or("no server")?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{program}: {e}"))?;
        let input = child.stdin.take().ok_or("the child has no stdin")?;
        let output = child.stdout.take().ok_or("the child has no stdout")?;
        Ok(Self {
            child,
            input,
            output,
            chunk: vec![0; 64 * 1024],
            lines: Lines::default(),
        })
    }

    fn open(&mut self, era: Era) -> Result<()> {
        self.input.write_all(era.opening().as_bytes())?;
        let answer = loop {
            self.read()?;
            if let Some(line) = self.lines.next_line() {
                break String::from_utf8_lossy(line).into_owned();
            }
        };
        if !answer.contains(r#""result""#) || !answer.contains(era.revision()) {
            return Err(format!("the server does not speak {}: {answer}", era.revision()).into());
        }
        Ok(self.input.write_all(era.confirmation().as_bytes())?)
    }

    fn run(&mut self, load: &mut Load, phase: Phase) -> Result<()> {
        let mut out = Vec::new();
        load.begin(phase, &mut out);
        loop {
            self.input.write_all(&out)?;
            out.clear();
            if load.is_idle() {
                return Ok(());
            }
            self.read()?;
            while let Some(line) = self.lines.next_line() {
                load.receive(line, &mut out)?;
            }
        }
    }

    /// Reads once, as much as a pipe holds.
    fn read(&mut self) -> Result<()> {
        let read = self.output.read(&mut self.chunk)?;
        self.lines
            .room()
            .extend_from_slice(self.chunk.get(..read).unwrap_or_default());
        if read == 0 {
            Err("the server closed its stdout".into())
        } else {
            Ok(())
        }
    }

    fn cpu(&self) -> io::Result<Duration> {
        process_cpu(self.child.id())
    }

    fn stop(self) -> Result<()> {
        let Self {
            mut child,
            input,
            mut output,
            ..
        } = self;
        drop(input);
        io::copy(&mut output, &mut io::sink())?;
        let status = child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the server ended with {status}").into())
        }
    }
}
