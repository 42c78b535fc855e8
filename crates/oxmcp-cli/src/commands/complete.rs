//! `oxmcp complete`: completes an argument.

use oxmcp::protocol::{CompleteParams, CompletionReference};

use crate::{
    args::{Complete, pairs::Variable},
    failure::{Failure, Result},
    output, session,
    target::Server,
    terminal::Terminal,
};

pub(crate) async fn run(args: Complete, as_json: bool, terminal: &Terminal) -> Result<()> {
    let server = Server::find(args.target, terminal)?;
    let [of, argument, others @ ..] = server.words.as_slice() else {
        return Err(Failure::usage(
            "expected a prompt or a URI template, then `argument=start`",
        ));
    };
    let reference = if of.contains("://") {
        CompletionReference::resource(of)
    } else {
        CompletionReference::prompt(of)
    };
    let Variable { name, value } = pair(argument)?;
    let mut params = CompleteParams::new(reference, name, value);
    for other in others {
        let Variable { name, value } = pair(other)?;
        params = params.resolved(name, value);
    }
    let session = session::connect(&server, &args.connection, terminal).await?;
    let completed = session.complete(params).await;
    session::close(&session).await;
    let completed = completed?;
    if as_json {
        return output::json(&completed.completion);
    }
    completed
        .completion
        .values
        .iter()
        .try_for_each(|it| output::text(it))
}

fn pair(word: &str) -> Result<Variable> {
    let parsed = word.parse();
    parsed.map_err(|_| {
        Failure::usage(format!(
            "invalid argument {word:?}: expected `argument=start`"
        ))
    })
}
