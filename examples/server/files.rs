//! A served directory: its files are resources, and files outside of it cannot be read.
//!
//! `cargo run --example files`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{env, fs, path::Path, process};

use oxmcp::{Client, ClientSession, Result, Server, file_resources, protocol::Root, testing};

/// Fills the directory with sample files.
fn fill(directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory.join("guide"))?;
    fs::write(directory.join("README.md"), "# Teahouse\n")?;
    fs::write(directory.join("guide/brewing.txt"), "Three minutes.\n")?;
    fs::write(directory.join("leaf.png"), [0x89, b'P', b'N', b'G'])?;
    fs::write(directory.join(".env"), "PASSWORD=oolong\n")
}

async fn show(session: &ClientSession, uri: &str) {
    match session.read_resource(uri).await {
        Ok(read) => {
            for contents in read.contents {
                let what = contents.mime_type.unwrap_or_default();
                println!("{uri} is {what}: {:?}", contents.body);
            }
        }
        Err(error) => println!("{}", error.message()),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = env::temp_dir().join(format!("oxmcp-example-{}", process::id()));
    fill(&directory)?;

    // With a prefix, clients do not learn the path of the directory. Without one, URIs are `file://` URIs.
    let files = file_resources(&directory).uri_prefix("docs://").listed(100);
    let server = Server::new("docs", "1.0.0").files(files);
    let session = testing::connect(&server).await?;

    for resource in session.resources().all().await? {
        println!("{} ({} bytes)", resource.uri, resource.size.unwrap_or(0));
    }
    show(&session, "docs://guide/brewing.txt").await;
    show(&session, "docs://leaf.png").await;
    show(&session, "docs://.env").await;
    show(&session, "docs://../../etc/passwd").await;
    show(&session, "docs://guide").await;

    // A client with roots can read only files within them. (`ignore_roots` ignores the roots of clients.)
    let guide = directory.canonicalize()?.join("guide");
    let root = Root::new(format!("file://{}", guide.display()));
    let rooted = Client::new("rooted", "1.0.0").roots([root]);
    let rooted = testing::connect(&server).client(&rooted).await?;
    show(&rooted, "docs://guide/brewing.txt").await;
    show(&rooted, "docs://README.md").await;

    rooted.close().await?;
    session.close().await?;
    fs::remove_dir_all(&directory)?;
    Ok(())
}
