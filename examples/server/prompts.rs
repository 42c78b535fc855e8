//! Prompts that users can choose: arguments are parsed into a struct, and completed while they are typed.
//!
//! `cargo run --example prompts`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    ClientSession, CompletionInput, JsonSchema, Prompt, Result, Server,
    protocol::{CompleteParams, CompletionReference, OrderedMap, PromptArgument, PromptMessage},
    testing,
};

// The fields are the prompt's arguments. Arguments arrive as strings, and are parsed into the types of the fields.
#[derive(serde::Deserialize, JsonSchema)]
struct Poem {
    /// what it is about
    topic: String,
    /// its form
    form: Form,
    /// how many poems
    count: Option<u8>,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Form {
    Haiku,
    Limerick,
    Sonnet,
}

async fn poem(Poem { topic, form, count }: Poem) -> [PromptMessage; 2] {
    let count = count.unwrap_or(1);
    [
        PromptMessage::assistant(format!("I am a poet. I write a perfect {form:?}.")),
        PromptMessage::user(format!("Write about {topic}. Number of poems: {count}.")),
    ]
}

/// Completes the topic. The suggestions depend on the form, if it is already set.
async fn topics(completing: CompletionInput) -> Vec<&'static str> {
    match completing.resolved("form") {
        Some("haiku") => vec!["autumn", "the moon"],
        Some("limerick") => vec!["a lady from Norway"],
        _ => vec!["love"],
    }
}

/// Makes a prompt from data, which could come from a file, a database, or another server.
fn template(name: &str, text: &'static str) -> Prompt {
    let arguments = [
        PromptArgument::new("text").required(),
        PromptArgument::new("language"),
    ];
    let handler = move |_cx, given: OrderedMap<String>| async move {
        let language = given.get("language").map_or("English", String::as_str);
        let about = given.get("text").map_or("", String::as_str);
        format!("{text} Answer in {language}.\n{about}")
    };
    Prompt::dynamic(name, "Do something with a text", arguments, handler)
        .complete("language", ["English", "French", "German"])
}

async fn show(session: &ClientSession, name: &str, arguments: &[(&str, &str)]) {
    match session.get_prompt(name, arguments.iter().copied()).await {
        Ok(prompt) => {
            for message in prompt.messages {
                let text = message.content.as_text().unwrap_or_default();
                println!("{:?}: {text}", message.role);
            }
        }
        Err(error) => println!("{error}"),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::new("writer", "1.0.0")
        .prompt(Prompt::new("poem", "Write poems", poem).complete("topic", topics))
        .prompt(template("summary", "Summarize this."));

    let session = testing::connect(&server).await?;
    for prompt in session.prompts().all().await? {
        let arguments: Vec<_> = prompt.arguments.into_iter().map(|it| it.name).collect();
        println!("{}({})", prompt.name, arguments.join(", "));
    }

    let forms = session.complete_prompt("poem", "form", "").await?;
    println!("forms: {}", forms.completion.values.join(", "));
    let topic = CompleteParams::new(CompletionReference::prompt("poem"), "topic", "");
    let topics = session.complete(topic.resolved("form", "haiku")).await?;
    println!("topics of haikus: {}", topics.completion.values.join(", "));

    let haikus = [("topic", "autumn"), ("form", "haiku"), ("count", "3")];
    show(&session, "poem", &haikus).await;
    show(&session, "summary", &[("text", "To be, or not to be.")]).await;
    // The error for invalid arguments names the valid values.
    let wrong = [("topic", "autumn"), ("form", "epic"), ("count", "many")];
    show(&session, "poem", &wrong).await;
    session.close().await
}
