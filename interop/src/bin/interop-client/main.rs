//! The client for third-party servers: `interop-client TASK... -- COMMAND ARGS...` starts a server, and
//! `interop-client TASK... -- http URL` reaches a running server, as does `login URL` with the login of `--login`.
//!
//! Tasks are run in order, and the first that does not have its expected outcome ends the program with status 1:
//!
//! | task                             | what must happen                                                        |
//! |----------------------------------|-------------------------------------------------------------------------|
//! | `--list TOOL`                    | the tool is among those listed                                          |
//! | `--call TOOL ARGS TEXT`          | the call succeeds, and its result contains the text                     |
//! | `--many N TOOL ARGS TEXT`         | N such calls at once succeed, each with the text in its result          |
//! | `--fail TOOL ARGS TEXT`          | a tool error, or an error of the protocol, that contains the text       |
//! | `--progress TOOL ARGS N`         | the call succeeds, after N progress notifications                       |
//! | `--changed TOOL ARGS`            | the call succeeds, and the server notifies that its tools have changed  |
//! | `--cancel TOOL ARGS`             | the call is dropped after the first progress                            |
//! | `--ask TOOL ARGS ANSWERS TEXT`   | as `--call`; the user is asked, and gives these answers, and no others  |
//! | `--decline TOOL ARGS`            | as `--fail`; the user is asked, and declines                            |
//! | `--log TOOL ARGS LEVEL TEXT`     | the call succeeds, and a log message of that level contains the text    |
//! | `--prompt NAME ARGS TEXT`        | the prompt is listed, and its messages contain the text                 |
//! | `--read URI TEXT`                | the contents of the resource contain the text                           |
//! | `--listed URI`                   | the resource or the template is among those listed                      |
//! | `--complete NAME ARG VALUE TEXT` | the argument of a prompt, or of a template, is completed to the text    |
//! | `--trace TOOL`                   | the result of the tool is the id of the trace that the call is made in  |
//! | `--updated URI TOOL ARGS`        | the call succeeds, and the resource that is watched has changed         |
//! | `--held TOOL ARGS NOTES TEXT`    | a task has one of the notes (`A|B`) as a status; detached and resumed, its result contains the text |
//! | `--cancelled TOOL ARGS`          | the call becomes a task, and is cancelled                               |
//! | `--skill URI FILE TEXT`          | the skill is listed and verified, and a file of it contains the text    |
//! | `--lie URI ERROR`                | the skill is listed, and not verified because of its size, digest or frontmatter |
//! | `--wait SECONDS`                 | nothing; the client waits                                               |
//! | `--logins N`                     | the user has logged in N times                                          |
//! | `--replay URL TOOL ARGS TEXT`    | a copy of the tokens is refused once they were refreshed; then `--call`, after one login |
//! | `--revoke ISSUER TOOL ARGS TEXT` | the tokens were revoked; then `--call`, after one login                 |
//!
//! `--revision REVISION`, before the tasks, restricts the client to that revision. `--login HOW ISSUER` there logs in; see
//! `login.rs`. `--follow` there lets the server run calls as tasks of the protocol, which the client follows.
//!
//! ARGS are a JSON object, ANSWERS a JSON array. The client's model repeats its input, and the client has one root. At the end it
//! prints one line of JSON.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

mod call;
mod held;
mod login;
mod person;
mod skills;
mod task;

use std::{env, process::ExitCode};

use oxmcp::{Command, Revision, http::Endpoint, tasks::ClientTasks};
use serde_json::{Value, json};

use call::Outcome;
use person::Person;
use task::Task;

#[tokio::main]
async fn main() -> ExitCode {
    match run(env::args().skip(1)).await {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("interop-client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(mut args: impl Iterator<Item = String>) -> Outcome<Value> {
    let mut tasks = Vec::new();
    let mut revisions = Revision::ALL.to_vec();
    let person = Person::default();
    let (mut login, mut follows) = (None, false);
    while let Some(flag) = args.next().filter(|flag| flag != "--") {
        if flag == "--revision" {
            revisions = vec![args.next().ok_or("no revision")?.parse()?];
            continue;
        }
        if flag == "--login" {
            let how = args.next().ok_or("missing HOW after `--login`")?;
            login = Some(login::login(
                &how,
                &args.next().ok_or("no issuer")?,
                &person,
            )?);
            continue;
        }
        if flag == "--follow" {
            follows = true;
            continue;
        }
        tasks.push(Task::parse(&flag, &mut args)?);
    }
    let command = args.next().ok_or("missing command after `--`")?;

    oxmcp_interop::install()?;
    let client = person.client().revisions(revisions);
    let client = if follows { client.tasks() } else { client };
    let session = match (&*command, args.next()) {
        // The client detects which of the two transports the server has.
        ("http" | "sse", Some(url)) => client.connect(Endpoint::new(url)).await?,
        ("login", Some(url)) => {
            let login = login.ok_or("no `--login`")?;
            client.connect(Endpoint::new(url).login(login)).await?
        }
        (_, first) => {
            client
                .connect(Command::new(command).args(first).args(args))
                .await?
        }
    };
    for task in &tasks {
        task.run(&session, &person)
            .await
            .map_err(|error| format!("{}: {error}", task.name()))?;
    }
    let report = json!({ "revision": session.revision().as_str(), "tasks": tasks.len() });
    session.close().await?;
    Ok(report)
}
