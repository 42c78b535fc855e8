//! Tasks of the client, and the outcome that each must have.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::future::join_all;
use oxmcp::{
    ClientSession,
    protocol::{ElicitAction, ElicitResult, LoggingLevel},
};
use serde_json::{Map, Value};
use tokio::{sync::Notify, time::timeout};
use tracing::Instrument;

use crate::{
    call::{Outcome, TIME_LIMIT, call, ensure, is_error, read},
    held, login,
    person::Person,
    skills,
};

/// A task, with its arguments.
pub(crate) struct Task {
    flag: String,
    words: Vec<String>,
}

/// The tasks, with the number of arguments of each.
const TASKS: [(&str, usize); 24] = [
    ("--list", 1),
    ("--call", 3),
    ("--many", 4),
    ("--fail", 3),
    ("--progress", 3),
    ("--changed", 2),
    ("--cancel", 2),
    ("--ask", 4),
    ("--decline", 2),
    ("--log", 4),
    ("--prompt", 3),
    ("--read", 2),
    ("--listed", 1),
    ("--complete", 4),
    ("--trace", 1),
    ("--updated", 3),
    ("--held", 4),
    ("--cancelled", 2),
    ("--skill", 3),
    ("--lie", 2),
    ("--wait", 1),
    ("--logins", 1),
    ("--replay", 4),
    ("--revoke", 4),
];

impl Task {
    pub(crate) fn parse(flag: &str, words: &mut impl Iterator<Item = String>) -> Outcome<Self> {
        let known = TASKS.iter().find(|(name, _)| *name == flag);
        let (_, count) = known.ok_or_else(|| format!("unknown task `{flag}`"))?;
        let words: Vec<_> = words.take(*count).collect();
        if words.len() < *count {
            return Err(format!("`{flag}` needs {count} arguments").into());
        }
        Ok(Self {
            flag: flag.to_owned(),
            words,
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.flag, self.words.join(" "))
    }

    pub(crate) async fn run(&self, session: &ClientSession, person: &Person) -> Outcome {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match (&*self.flag, &*words) {
            ("--list", [tool]) => {
                let tools = session.tools().all().await?;
                let listed: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
                ensure(listed.contains(tool), &listed.join(", "))
            }
            ("--call", [tool, args, text]) => call(session, tool, args, text).await,
            ("--many", [count, tool, args, text]) => {
                let calls = (0..count.parse()?).map(|_| call(session, tool, args, text));
                join_all(calls).await.into_iter().collect()
            }
            ("--fail", [tool, args, text]) => fail(session, tool, args, text).await,
            ("--progress", [tool, args, count]) => {
                progress(session, tool, args, count.parse()?).await
            }
            ("--changed", [tool, args]) => {
                call(session, tool, args, "").await?;
                Ok(timeout(TIME_LIMIT, person.hears_of_change()).await?)
            }
            ("--cancel", [tool, args]) => cancel(session, tool, args).await,
            ("--ask", [tool, args, answers, text]) => {
                person.will_answer(read::<Vec<ElicitResult>>(answers)?);
                call(session, tool, args, text).await?;
                ensure(person.unasked() == 0, "questions that were not asked")
            }
            ("--skill", [uri, file, text]) => skills::load(session, uri, file, text).await,
            ("--lie", [uri, error]) => skills::refuse(session, uri, error).await,
            ("--decline", [tool, args]) => {
                person.will_answer(vec![ElicitResult::new(ElicitAction::Decline)]);
                fail(session, tool, args, "").await?;
                ensure(person.unasked() == 0, "a question that was not asked")
            }
            ("--log", [tool, args, level, text]) => {
                let level: LoggingLevel = read(&format!("{level:?}"))?;
                session.set_log_level(level).await?;
                call(session, tool, args, "").await?;
                let heard = person.hears(|log| log.level == level && log.data.get().contains(text));
                Ok(timeout(TIME_LIMIT, heard).await?)
            }
            ("--prompt", [name, args, text]) => prompt(session, name, args, text).await,
            ("--read", [uri, text]) => holds(
                &session.read_resource(*uri).timeout(TIME_LIMIT).await?,
                text,
            ),
            ("--listed", [uri]) => listed(session, uri).await,
            ("--complete", [of, argument, value, text]) => {
                let call = if of.contains(':') {
                    session.complete_resource(*of, *argument, *value)
                } else {
                    session.complete_prompt(*of, *argument, *value)
                };
                holds(&call.timeout(TIME_LIMIT).await?, text)
            }
            ("--trace", [tool]) => {
                let span = tracing::info_span!("task");
                let id = span.in_scope(oxmcp_interop::current_id);
                call(session, tool, "{}", &id).instrument(span).await
            }
            ("--updated", [uri, tool, args]) => {
                let mut watch = session.watch_resource(*uri).await?;
                call(session, tool, args, "").await?;
                let update = timeout(TIME_LIMIT, watch.next()).await?;
                ensure(update.is_some_and(|update| update.uri == *uri), "the end")
            }
            (flag @ ("--held" | "--cancelled"), words) => held::run((flag, words), session).await,
            (flag, words) => login::run((flag, words), session, person).await,
        }
    }
}

async fn prompt(session: &ClientSession, name: &str, args: &str, text: &str) -> Outcome {
    let prompts = session.prompts().all().await?;
    let listed: Vec<_> = prompts.iter().map(|prompt| &*prompt.name).collect();
    ensure(listed.contains(&name), &listed.join(", "))?;
    let args: Map<String, Value> = read(args)?;
    let args = args
        .into_iter()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default().to_owned()));
    let prompt = session.get_prompt(name, args).timeout(TIME_LIMIT).await?;
    holds(&prompt, text)
}

async fn fail(session: &ClientSession, tool: &str, args: &str, text: &str) -> Outcome {
    let args: Value = read(args)?;
    match session.call_tool(tool, args).timeout(TIME_LIMIT).await {
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
    }
}

async fn progress(session: &ClientSession, tool: &str, args: &str, count: usize) -> Outcome {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let call = session
        .call_tool(tool, read::<Value>(args)?)
        .timeout(TIME_LIMIT)
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

async fn cancel(session: &ClientSession, tool: &str, args: &str) -> Outcome {
    let begun = Arc::new(Notify::new());
    let notify = Arc::clone(&begun);
    let call = session
        .call_tool(tool, read::<Value>(args)?)
        .timeout(TIME_LIMIT)
        .on_progress(move |_progress| notify.notify_one());
    tokio::select! {
        result = call.into_future() => Err(format!("the call was not cancelled: {result:?}").into()),
        () = begun.notified() => Ok(()),
    }
}

async fn listed(session: &ClientSession, uri: &str) -> Outcome {
    let resources = session
        .resources()
        .all()
        .await?
        .into_iter()
        .map(|it| it.uri);
    let templates = session.resource_templates().all().await?;
    let templates = templates.into_iter().map(|it| it.uri_template);
    let listed: Vec<_> = resources.chain(templates).collect();
    ensure(listed.iter().any(|it| it == uri), &listed.join(", "))
}

fn holds(result: &impl serde::Serialize, text: &str) -> Outcome {
    let result = serde_json::to_string(result)?;
    ensure(result.contains(text), &result)
}
