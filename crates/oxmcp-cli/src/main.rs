//! The command `oxmcp`: inspect, call, check and watch any MCP server.

mod answers;
mod args;
mod arguments;
mod commands;
mod escape;
mod failure;
mod hosts;
mod output;
mod session;
mod signature;
mod target;
mod terminal;
mod trace;
mod ui;

use std::{io::Write, process::ExitCode};

use anstream::ColorChoice;
use clap::Parser;

use crate::{
    args::{Cli, Color, Command},
    failure::{Failure, Reason},
    terminal::Terminal,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.global.color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
    .write_global();
    let terminal = Terminal::new(&cli.global);
    trace::init(&terminal);
    let as_json = cli.global.json;
    // These commands end their servers themselves.
    let ends_itself = matches!(
        cli.command,
        Command::Bridge(_) | Command::Record(_) | Command::Replay(_) | Command::Ui(_)
    );
    let command = commands::run(cli.command, as_json, &terminal);
    let outcome = tokio::select! {
        outcome = command => outcome,
        // The future of the command is dropped, which cancels its call and ends the process of the server.
        _ = tokio::signal::ctrl_c(), if !ends_itself => Err(Failure::new(Reason::Interrupted, "interrupted")),
    };
    let Err(mut failure) = outcome else {
        return ExitCode::SUCCESS;
    };
    if failure.reason() == Reason::Refused && terminal.lacked_person() {
        failure = failure.because(Reason::PersonNeeded);
    }
    terminal.end_progress();
    if let Some(line) = failure.line(as_json) {
        // There is no other place for it.
        let _ = writeln!(anstream::stderr(), "{line}");
    }
    failure.exit_code()
}
