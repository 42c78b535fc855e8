//! `oxmcp prompt`: gets a prompt.

use std::collections::BTreeMap;

use oxmcp::protocol::Role;

use crate::{
    args::{Prompt, pairs::Variable},
    failure::{Failure, Result},
    output, session,
    target::Server,
    terminal::Terminal,
};

pub(crate) async fn run(args: Prompt, as_json: bool, terminal: &Terminal) -> Result<()> {
    let server = Server::find(args.target, terminal)?;
    let (name, words) = server.words.split_first().ok_or_else(|| {
        Failure::usage("no prompt given; `oxmcp inspect` shows the prompts of the server")
    })?;
    let arguments = arguments(words)?;
    let session = session::connect(&server, &args.connection, terminal).await?;
    let prompt = session.get_prompt(name, arguments).await;
    session::close(&session).await;
    let prompt = prompt?;
    if as_json {
        return output::json(&prompt);
    }
    for message in &prompt.messages {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            _ => "other",
        };
        output::text(&format!("[{role}]"))?;
        output::content(std::slice::from_ref(&message.content), None, terminal)?;
    }
    Ok(())
}

fn arguments(words: &[String]) -> Result<BTreeMap<String, String>> {
    let parsed = words.iter().map(|word| {
        let Variable { name, value } = word.parse().map_err(|_| {
            Failure::usage(format!("invalid argument {word:?}: expected `name=text`"))
        })?;
        Ok((name, value))
    });
    parsed.collect()
}
