//! Handlers that ask the user or a model, or list the roots. Each is written once. A client of a legacy revision receives requests;
//! a modern client receives the questions as the result, and repeats its request with the answers.

use oxmcp::{
    JsonSchema, Prompt, Question, RequestContext, Result, Server, Tool,
    protocol::{CreateMessageParams, SamplingMessage},
};
use serde::Deserialize;

#[rustfmt::skip]
pub(crate) fn offer(server: Server) -> Server {
    let rounds = |name: &str| format!("test_input_required_result_{name}");
    server
        .tools([
            Tool::new("test_sampling", "Ask a model", ask_model),
            Tool::new("test_elicitation", "Ask the user who they are", ask_user),
            Tool::new("test_missing_capability", "Ask a model, which not every client has", capital),
            Tool::new("test_streaming_elicitation", "Ask the user for a name", name),
            Tool::new(rounds("elicitation"), "Ask the user for a name", name),
            Tool::new(rounds("sampling"), "Ask a model for a capital", capital),
            Tool::new(rounds("list_roots"), "Ask for the roots", roots),
            Tool::new(rounds("request_state"), "Ask the user to agree", agree),
            Tool::new(rounds("tampered_state"), "Ask the user to agree", agree),
            Tool::new(rounds("multiple_inputs"), "Ask three questions at once", three_at_once),
            Tool::new(rounds("multi_round"), "Ask two questions, one after the other", two_rounds),
            Tool::new(rounds("capabilities"), "Ask what the client can be asked", what_can_be_asked),
        ])
        .prompt(Prompt::new(rounds("prompt"), "Ask the user what it is about", context))
}

#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// The question to the model
    prompt: String,
}

async fn ask_model(cx: RequestContext, Ask { prompt }: Ask) -> Result<String> {
    let answer = cx.sample("answer", question(prompt)).await?;
    Ok(format!("LLM response: {}", answer.to_text()))
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    /// The message for the user
    message: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

async fn ask_user(cx: RequestContext, Message { message }: Message) -> Result<String> {
    let User { username, email } = cx.ask("user", message).await?;
    Ok(format!("User response: {username}, {email}"))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Agreement {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct About {
    context: String,
}

async fn name(cx: RequestContext) -> Result<String> {
    let Name { name } = cx.ask("user_name", "What is your name?").await?;
    Ok(format!("Hello, {name}!"))
}

async fn capital(cx: RequestContext) -> Result<String> {
    let asked = question("What is the capital of France?");
    let answer = cx.sample("capital_question", asked).await?;
    Ok(answer.to_text())
}

async fn roots(cx: RequestContext) -> Result<String> {
    let roots = cx.roots().await?;
    let uris: Vec<_> = roots.iter().map(|root| &*root.uri).collect();
    Ok(format!("The roots are: {}", uris.join(", ")))
}

async fn agree(cx: RequestContext) -> Result<&'static str> {
    let Agreement { ok } = cx.ask("confirm", "Please confirm").await?;
    Ok(if ok {
        "state-ok"
    } else {
        "state-ok, but not agreed"
    })
}

async fn three_at_once(cx: RequestContext) -> Result<String> {
    let questions = (
        Question::form::<Name>("user_name", "What is your name?"),
        Question::sample("greeting", question("Generate a greeting")),
        Question::roots(),
    );
    let (Name { name }, greeting, roots) = cx.ask_all(questions).await?;
    Ok(format!(
        "{}, {name}, from {} places",
        greeting.to_text(),
        roots.len()
    ))
}

async fn two_rounds(cx: RequestContext) -> Result<String> {
    let Name { name } = cx.ask("step1", "What is your name?").await?;
    let Color { color } = cx.ask("step2", "What is your favorite color?").await?;
    Ok(format!("{name} likes {color}"))
}

async fn what_can_be_asked(cx: RequestContext) -> Result<String> {
    let capabilities = cx.client_capabilities();
    if capabilities.sampling.is_some() {
        return capital(cx).await;
    }
    name(cx).await
}

async fn context(cx: RequestContext) -> Result<String> {
    let About { context } = cx.ask("user_context", "What is it about?").await?;
    Ok(format!("Please keep in mind: {context}"))
}

fn question(text: impl Into<String>) -> CreateMessageParams {
    CreateMessageParams::new([SamplingMessage::user(text.into())], 100)
}
