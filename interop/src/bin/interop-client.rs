//! The client that starts servers of others: `interop-client TASK... -- COMMAND ARGS...`.
//!
//! Tasks are done in order, and the first that does not go as it says ends the program with status 1:
//!
//! | task                        | what must happen                                                      |
//! |-----------------------------|-----------------------------------------------------------------------|
//! | `--list TOOL`               | the tool is among those listed                                        |
//! | `--call TOOL ARGS TEXT`     | the call succeeds, and its result has the text in it                  |
//! | `--fail TOOL ARGS TEXT`     | a tool error, or an error of the protocol, that has the text in it    |
//! | `--progress TOOL ARGS N`    | the call succeeds, after N notifications of progress                  |
//! | `--changed TOOL ARGS`      | the call succeeds, and the server says that its tools have changed    |
//! | `--cancel TOOL ARGS`        | the call is dropped after the first progress                          |
//!
//! ARGS are a JSON object. In the end it prints one line of JSON.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::{
    env,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{Client, ClientSession, Command};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};

/// For one call; those that take longer are stuck.
const PATIENCE: Duration = Duration::from_secs(20);

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

enum Task {
    List {
        tool: String,
    },
    Call {
        tool: String,
        args: Value,
        text: String,
    },
    Fail {
        tool: String,
        args: Value,
        text: String,
    },
    Progress {
        tool: String,
        args: Value,
        count: usize,
    },
    Changed {
        tool: String,
        args: Value,
    },
    Cancel {
        tool: String,
        args: Value,
    },
}

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
    while let Some(flag) = args.next().filter(|flag| flag != "--") {
        tasks.push(Task::parse(&flag, &mut args)?);
    }
    let command = Command::new(args.next().ok_or("there is no command after `--`")?).args(args);

    let changed = Arc::new(Notify::new());
    let notify = Arc::clone(&changed);
    let session = Client::new("interop-client", "1.0.0")
        .on_tools_changed(move |_session| {
            notify.notify_one();
            std::future::ready(())
        })
        .connect(command)
        .await?;
    for task in &tasks {
        task.run(&session, &changed)
            .await
            .map_err(|error| format!("{}: {error}", task.name()))?;
    }
    let report = json!({ "revision": session.revision().as_str(), "tasks": tasks.len() });
    session.close().await?;
    Ok(report)
}

impl Task {
    fn parse(flag: &str, words: &mut impl Iterator<Item = String>) -> Outcome<Self> {
        let mut word = || {
            words
                .next()
                .ok_or_else(|| format!("`{flag}` needs more words"))
        };
        let tool = word()?;
        Ok(match flag {
            "--list" => Self::List { tool },
            "--call" => Self::Call {
                tool,
                args: word()?.parse()?,
                text: word()?,
            },
            "--fail" => Self::Fail {
                tool,
                args: word()?.parse()?,
                text: word()?,
            },
            "--progress" => Self::Progress {
                tool,
                args: word()?.parse()?,
                count: word()?.parse()?,
            },
            "--changed" => Self::Changed {
                tool,
                args: word()?.parse()?,
            },
            "--cancel" => Self::Cancel {
                tool,
                args: word()?.parse()?,
            },
            _ => return Err(format!("there is no task `{flag}`").into()),
        })
    }

    fn name(&self) -> String {
        match self {
            Self::List { tool } => format!("--list {tool}"),
            Self::Call { tool, args, text } => format!("--call {tool} {args} {text}"),
            Self::Fail { tool, args, text } => format!("--fail {tool} {args} {text}"),
            Self::Progress { tool, args, count } => format!("--progress {tool} {args} {count}"),
            Self::Changed { tool, args } => format!("--changed {tool} {args}"),
            Self::Cancel { tool, args } => format!("--cancel {tool} {args}"),
        }
    }

    async fn run(&self, session: &ClientSession, changed: &Notify) -> Outcome {
        match self {
            Self::List { tool } => {
                let listed = serde_json::to_value(session.list_tools(Default::default()).await?)?;
                let tools = listed.get("tools").and_then(Value::as_array);
                let named = |known: &Value| known.get("name").is_some_and(|name| name == tool);
                ensure(tools.is_some_and(|tools| tools.iter().any(named)), &listed)
            }
            Self::Call { tool, args, text } => {
                let result = serde_json::to_value(
                    session
                        .call_tool(tool, args.clone())
                        .timeout(PATIENCE)
                        .await?,
                )?;
                ensure(
                    !is_error(&result) && result.to_string().contains(text),
                    &result,
                )
            }
            Self::Fail { tool, args, text } => match session
                .call_tool(tool, args.clone())
                .timeout(PATIENCE)
                .await
            {
                Ok(result) => {
                    let result = serde_json::to_value(result)?;
                    ensure(
                        is_error(&result) && result.to_string().contains(text),
                        &result,
                    )
                }
                Err(error) => ensure(
                    error.is_protocol() && error.to_string().contains(text),
                    &error,
                ),
            },
            Self::Progress { tool, args, count } => progress(session, tool, args, *count).await,
            Self::Changed { tool, args } => {
                let call = session.call_tool(tool, args.clone()).timeout(PATIENCE);
                let result = serde_json::to_value(call.await?)?;
                ensure(!is_error(&result), &result)?;
                timeout(PATIENCE, changed.notified()).await?;
                Ok(())
            }
            Self::Cancel { tool, args } => cancel(session, tool, args).await,
        }
    }
}

async fn progress(session: &ClientSession, tool: &str, args: &Value, count: usize) -> Outcome {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let call = session
        .call_tool(tool, args.clone())
        .timeout(PATIENCE)
        .on_progress(move |_progress| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
    let result = serde_json::to_value(call.await?)?;
    let seen = seen.load(Ordering::Relaxed);
    ensure(
        !is_error(&result) && seen == count,
        &format!("{seen} notifications, then {result}"),
    )
}

async fn cancel(session: &ClientSession, tool: &str, args: &Value) -> Outcome {
    let begun = Arc::new(Notify::new());
    let notify = Arc::clone(&begun);
    let call = session
        .call_tool(tool, args.clone())
        .timeout(PATIENCE)
        .on_progress(move |_progress| notify.notify_one());
    tokio::select! {
        result = call.into_future() => Err(format!("it ended by itself: {result:?}").into()),
        () = begun.notified() => Ok(()),
    }
}

fn is_error(result: &Value) -> bool {
    result.get("isError").is_some_and(|flag| flag == true)
}

fn ensure(holds: bool, seen: &impl std::fmt::Display) -> Outcome {
    if holds {
        Ok(())
    } else {
        Err(format!("saw {seen}").into())
    }
}
