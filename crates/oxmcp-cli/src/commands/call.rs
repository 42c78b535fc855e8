//! `oxmcp call`: calls a tool.

use std::io::Write;

use oxmcp::{ClientSession, protocol::Tool};
use serde_json::{Map, Value};

use crate::{
    args::Call,
    arguments, escape,
    failure::{Failure, Reason, Result},
    output, session,
    signature::signature,
    target::Server,
    terminal::Terminal,
};

pub(crate) async fn run(args: Call, as_json: bool, terminal: &Terminal) -> Result<()> {
    let server = Server::find(args.target, terminal)?;
    let (name, words) = server.words.split_first().ok_or_else(|| {
        Failure::usage("no tool given; `oxmcp inspect` shows the tools of the server")
    })?;
    // The server does not wait for stdin.
    let all = match &args.args {
        Some(text) => arguments::object(text).await?,
        None => Map::new(),
    };
    let session = session::connect(&server, &args.connection, terminal).await?;
    let outcome = call(&session, name, words, all, terminal).await;
    session::close(&session).await;
    let result = outcome?;
    if as_json {
        output::json(&result)?;
    } else if args.structured && !result.is_error {
        let structured = result.structured_content.as_ref().ok_or_else(|| {
            Failure::new(
                Reason::Refused,
                format!("tool {name:?} returned no structured content"),
            )
        })?;
        output::json(structured)?;
    } else if result.is_error {
        // The reason of a failure is not a result.
        let mut stderr = anstream::stderr();
        writeln!(
            stderr,
            "oxmcp: tool failed: {}",
            escape::block(&result.to_text())
        )?;
    } else {
        output::content(&result.content, args.output.as_deref(), terminal)?;
    }
    if result.is_error {
        return Err(Failure::shown(Reason::Refused));
    }
    Ok(())
}

async fn call(
    session: &ClientSession,
    name: &str,
    words: &[String],
    all: Map<String, Value>,
    terminal: &Terminal,
) -> Result<oxmcp::protocol::CallToolResult> {
    let tool = find(session, name).await?;
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let mut arguments = arguments::read(words, all, &schema)?;
    let missing = missing(&schema, &arguments);
    if let [first, ..] = missing.as_slice() {
        if !terminal.has_person() {
            let expected = signature(name, &schema, None);
            return Err(Failure::usage(format!(
                "missing argument `{first}`; expected {expected}"
            )));
        }
        for name in missing {
            let text: String = dialoguer::Input::new()
                .with_prompt(escape::line(&name))
                .interact_text()
                .map_err(|_| Failure::new(Reason::Interrupted, "interrupted"))?;
            let word = format!("{name}={text}");
            arguments.extend(arguments::read(&[word], Map::new(), &schema)?);
        }
    }
    let progress = terminal.clone();
    let call = session.call_tool(name, arguments);
    let result = call
        .on_progress(move |it| progress.progress(&it.to_string()))
        .await;
    terminal.end_progress();
    Ok(result?)
}

/// Finds a tool. Lists are read only as far as needed.
async fn find(session: &ClientSession, name: &str) -> Result<Tool> {
    let mut tools = session.tools();
    let mut names = Vec::new();
    while let Some(tool) = tools.next().await {
        let tool = tool?;
        if tool.name == name {
            return Ok(tool);
        }
        names.push(tool.name);
    }
    names.sort_by_key(|it| distance(it, name));
    names.truncate(3);
    let hint = match names.as_slice() {
        [] => "it offers no tools at all".to_owned(),
        names => format!("did you mean {}?", names.join(", ")),
    };
    Err(Failure::new(
        Reason::Refused,
        format!("the server has no tool {name:?}; {hint}"),
    ))
}

/// The required arguments that are not given.
fn missing(schema: &Value, arguments: &Map<String, Value>) -> Vec<String> {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let missing = names.filter(|it| !arguments.contains_key(*it));
    missing.map(str::to_owned).collect()
}

/// How unlike two names are: the number of characters of each that the other lacks.
fn distance(a: &str, b: &str) -> usize {
    let lacks = |a: &str, b: &str| a.chars().filter(|it| !b.contains(*it)).count();
    lacks(a, b) + lacks(b, a) + a.len().abs_diff(b.len())
}
