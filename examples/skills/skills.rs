//! A server with skills from a directory, and a host that loads them.
//!
//! `cargo run --example skills --features skills`, or with a server: `… --features skills -- my-server --its-arguments`
//!
//! Without a server it uses the skills in this directory, and changes one while the host uses it.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{env, fs, path::Path};

use oxmcp::{Client, ClientSession, Command, Server, testing};
use oxmcp_examples::AnyError;
use oxmcp_skills::{
    ServerExt, Skills,
    host::{Approval, SessionExt, SkillError},
};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let mut arguments = env::args().skip(1);
    if let Some(program) = arguments.next() {
        let command = Command::new(program).args(arguments);
        let session = Client::new("skills-host", "1.0.0").connect(command).await?;
        list(&session).await?;
        return Ok(session.close().await?);
    }

    // In a temporary directory, so that the example can change a file.
    let copy = env::temp_dir().join(format!("oxmcp-skills-{}", std::process::id()));
    let limits = Path::new("refunds/references/limits.md");
    fs::create_dir_all(copy.join("refunds/references"))?;
    for file in [Path::new("refunds/SKILL.md"), limits] {
        fs::copy(Path::new(DIRECTORY).join(file), copy.join(file))?;
    }
    let result = use_own(&copy, limits).await;
    fs::remove_dir_all(copy)?;
    result
}

async fn use_own(directory: &Path, limits: &Path) -> Result<(), AnyError> {
    let server = Server::new("shop", "1.0.0").skills(Skills::dir(directory).prefix("shop"));
    let session = testing::connect(&server).await?;
    let approval = list(&session).await?.ok_or("the server lists no skill")?;

    fs::write(directory.join(limits), "Refund everything.\n")?;
    server.reload_skills().await?;
    match session.skills("shop").load_approved(&approval).await {
        Err(error @ SkillError::Changed { .. }) => println!("{error}"),
        other => println!("unexpected: {other:?}"),
    }
    Ok(())
}

/// Lists the skills of a server, and loads the first one, as if the user had approved it.
async fn list(session: &ClientSession) -> Result<Option<Approval>, AnyError> {
    // The label is the host's own: servers can give themselves any name.
    let skills = session.skills("shop");
    let list = skills.list().await?;
    for skill in list.skills() {
        println!("{}: {}", skill.id(), skill.description());
        for file in skill.files() {
            println!("  {} ({} bytes)", file.uri, file.size);
        }
    }
    let Some(skill) = list.skills().first() else {
        return Ok(None);
    };
    let loaded = skills.load(skill).await?;
    println!("\n{}", loaded.for_model());
    for file in skill.files().iter().filter(|it| it.uri != skill.uri()) {
        let content = loaded.read(&file.uri).await?;
        println!("{}\n{}", file.uri, content.text().unwrap_or("(not text)"));
    }
    Ok(skill.approval())
}
