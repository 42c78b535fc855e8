//! The driver of a server over stdio, through its pipes.

use std::{
    io::{self, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use bench_support::{Era, Latencies, Lines, Load, Options, Phase, Report, own_cpu, process_cpu};

use crate::process::Result;

pub(crate) fn measure(options: &Options) -> Result<Report> {
    let mut server = Server::start(&options.server)?;
    server.open(options.era)?;
    let mut load = Load::new(options.call.clone(), options.era, options.conc);
    server.run(&mut load, options.warm_up())?;
    let (own_before, server_before) = (own_cpu(), server.cpu()?);
    server.run(&mut load, options.measured())?;
    let (latencies, wall) = load.end();
    let (own, served) = (own_cpu() - own_before, server.cpu()? - server_before);
    server.stop()?;
    Ok(Report::new(latencies, wall, own, served))
}

/// Starts the server again and again, and counts the CPU time that it has used by its first answer.
pub(crate) fn start(options: &Options) -> Result<Report> {
    let (begun, mut latencies) = (Instant::now(), Latencies::default());
    let (own_before, mut served) = (own_cpu(), Duration::ZERO);
    for started in 0.. {
        let since = Instant::now();
        if !options
            .measured()
            .goes_on(since.duration_since(begun), started)
        {
            break;
        }
        let mut server = Server::start(&options.server)?;
        server.open(options.era)?;
        latencies.push(since.elapsed());
        served += server.cpu()?;
        server.stop()?;
    }
    Ok(Report::new(
        latencies,
        begun.elapsed(),
        own_cpu() - own_before,
        served,
    ))
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
        let (program, args) = command.split_first().ok_or("missing the server")?;
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
            return Err(format!("the server does not support {}: {answer}", era.revision()).into());
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
            Err(format!("the server exited with {status}").into())
        }
    }
}
