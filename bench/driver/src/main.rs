//! The neutral driver: puts the same load on any MCP server, checks every answer, and prints the server's CPU time in the
//! measured window as one line of JSON.
//!
//! - `bench-driver stdio [secs=2] [warm=0.3] [conc=1] [calls=N] [era=2025|2026] [call=add] -- SERVER ARGS...`
//! - `bench-driver http ...`, the same over HTTP: in ARGS `{address}` stands for the address to listen on.
//! - `bench-driver http [era=2025|2026] work=connect -- SERVER ARGS...` opens sessions instead of calling tools. `work=idle:N`,
//!   `work=get:N` and `work=listen:N` keep N sessions open and print the memory that each takes.
//! - `bench-driver http work=update:N ...` calls the tool `update`, of which N listeners are notified. With `work=fanout:N` half of
//!   them are at a second server, and `work=restore` calls a tool at the second server in sessions that were opened at the first.
//!   The servers must share their state by themselves.
//! - `bench-driver stdio work=start -- SERVER ARGS...` starts the server and waits for the answer to the opening request, again and
//!   again.
//! - `bench-driver host SERVER ARGS... -- CLIENT ARGS...` starts a server over HTTP and runs a client, in whose ARGS `{url}` stands
//!   for the server's URL.
//! - `bench-driver pin PROGRAM ARGS...` pins itself to one CPU and becomes the program, whose children inherit it.
//!
//! The driver blocks on its pipes and sockets, so that on the CPU that it shares with the server exactly one of them runs.

mod host;
mod http;
mod process;
mod sessions;
mod stdio;
mod updates;

use std::{
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use bench_support::{Options, Runtime, TIME_LIMIT, Transport, Work, give_up_after};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

use process::Result;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.split_first() {
        Some((first, rest)) if first == "pin" => pin(rest),
        Some((first, rest)) if first == "host" => host(rest),
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

fn pin(command: &[String]) -> Result<()> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this)?;
    let mut cpus = (0..CpuSet::count()).rev();
    let last = cpus.find(|cpu| allowed.is_set(*cpu) == Ok(true));
    let mut one = CpuSet::new();
    one.set(last.ok_or("no CPU to run on")?)?;
    sched_setaffinity(this, &one)?;
    let usage = "usage: bench-driver pin PROGRAM ARGS...";
    let (program, args) = command.split_first().ok_or(usage)?;
    Err(Command::new(program).args(args).exec().into())
}

fn host(words: &[String]) -> Result<()> {
    give_up_after(TIME_LIMIT);
    host::run(words)
}

fn measure() -> Result<()> {
    let options = Options::from_env(Runtime::Current)?;
    give_up_after(TIME_LIMIT);
    let report = match (options.transport, options.work) {
        (Transport::Stdio, Work::Calls) => stdio::measure(&options)?,
        (Transport::Http, Work::Calls) => http::measure(&options)?,
        (Transport::Http, Work::Connect) => sessions::connect(&options)?,
        (Transport::Http, Work::Hold(held, count)) => {
            let memory = sessions::hold(&options, held, count)?;
            println!(r#"{{"kib_per_session":{memory}}}"#);
            return Ok(());
        }
        (Transport::Http, Work::Update(count)) => updates::measure(&options, 1, count)?,
        (Transport::Http, Work::FanOut(count)) => updates::measure(&options, 2, count)?,
        (Transport::Http, Work::Restore) => sessions::restore(&options)?,
        (Transport::Stdio, Work::Start) => stdio::start(&options)?,
        (Transport::Http, Work::Start) => {
            return Err("`work=start` needs stdio".into());
        }
        (Transport::Stdio, _) => {
            return Err("this `work` needs HTTP: stdio has only one session".into());
        }
    };
    println!("{}", report.to_json());
    Ok(())
}
