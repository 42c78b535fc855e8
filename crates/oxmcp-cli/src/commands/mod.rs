//! The commands, each in a file.

mod auth;
mod bridge;
mod call;
mod check;
mod complete;
mod config;
mod inspect;
mod install;
mod project;
mod prompt;
mod read;
mod transcript;
mod watch;

pub(crate) use check::findings;
use clap::CommandFactory;

use crate::{
    args::{Auth, Cli, Command, Config},
    failure::Result,
    terminal::Terminal,
    ui,
};

/// Runs a command.
///
/// # Errors
/// The failure decides about the exit code.
pub(crate) async fn run(command: Command, as_json: bool, terminal: &Terminal) -> Result<()> {
    match command {
        Command::Inspect(args) => inspect::run(args, as_json, terminal).await,
        Command::Call(args) => call::run(args, as_json, terminal).await,
        Command::Read(args) => read::run(args, as_json, terminal).await,
        Command::Prompt(args) => prompt::run(args, as_json, terminal).await,
        Command::Complete(args) => complete::run(args, as_json, terminal).await,
        Command::Watch(args) => watch::run(args, terminal).await,
        Command::Check(args) => check::run(args, as_json, terminal).await,
        Command::Bridge(args) => bridge::run(args, terminal).await,
        Command::Record(args) => transcript::record(args, terminal).await,
        Command::Replay(args) => transcript::replay(args, terminal).await,
        Command::Install(args) => install::install(&args, as_json, terminal),
        Command::Uninstall(args) => install::uninstall(&args, as_json, terminal),
        Command::Package(args) => project::package(&args, as_json, terminal),
        Command::New(args) => project::new(&args, terminal),
        Command::Ui(args) => ui::run(args, as_json, terminal).await,
        Command::Login(args) => auth::login(&args.url, terminal).await,
        Command::Logout(args) => auth::logout(&args.url, terminal).await,
        Command::Auth(Auth::List) => auth::list(as_json).await,
        Command::Config(Config::List) => config::list(as_json, terminal),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "oxmcp", &mut std::io::stdout());
            Ok(())
        }
        Command::Man => Ok(clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?),
    }
}
