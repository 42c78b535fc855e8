//! Paths that lead out of the directory, all of which are refused.

use crate::server::files::*;

#[tokio::test]
async fn paths_outside_the_directory_are_unreachable() {
    let temp = Temp::new();
    fs::write(temp.0.join("secret.txt"), "secret").unwrap();
    temp.write("in/notes.txt", "hello");
    let server = server(temp.files());
    let absolute = temp.0.join("secret.txt").display().to_string();
    let encoded = absolute.replace('/', "%2F");
    for revision in Revision::ALL {
        for uri in [
            "t://../secret.txt",
            "t://in/../../secret.txt",
            "t://in/../notes.txt",
            "t://%2e%2e/secret.txt",
            "t://%2E%2E%2Fsecret.txt",
            "t://in/..%2f..%2fsecret.txt",
            "t://in%2Fnotes.txt",
            "t://./in/notes.txt",
            "t://in/./notes.txt",
            "t://in//notes.txt",
            "t:///in/notes.txt",
            "t://in/notes.txt/",
            "t://in/notes.txt%00.md",
            "t://in/notes.txt%",
            "t://in\\..\\..\\secret.txt",
            "t://..",
            "t://",
            "t:///etc/passwd",
            "t:////etc/passwd",
            &format!("t://{absolute}"),
            &format!("t://{encoded}"),
            &format!("t://{}secret.txt", "../".repeat(50)),
            &format!("t://{}", "a/".repeat(1000)),
            &format!("t://{}", "a".repeat(5000)),
            &format!("t://{}", "a".repeat(100_000)),
        ] {
            let message = refusal(&server, revision, uri).await;
            assert!(
                !message.contains(&*temp.0.to_string_lossy()) || uri.contains(&absolute),
                "{message}"
            );
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn symbolic_links_are_not_followed() {
    use std::{os::unix::fs::symlink, path::Path};

    let temp = Temp::new();
    fs::create_dir(temp.0.join("outside")).unwrap();
    fs::write(temp.0.join("outside/secret.txt"), "secret").unwrap();
    temp.write("real.txt", "hello");
    let link = |to: &Path, name: &str| symlink(to, temp.served().join(name)).unwrap();
    link(&temp.0.join("outside/secret.txt"), "file");
    link(Path::new("../outside/secret.txt"), "relative");
    link(&temp.0.join("outside"), "directory");
    link(Path::new("real.txt"), "inside");
    link(Path::new("nowhere"), "dangling");
    link(Path::new("loop"), "loop");
    link(Path::new("/etc/passwd"), "passwd");
    let server = server(temp.files().listed(100));
    for revision in Revision::ALL {
        for name in [
            "file",
            "relative",
            "directory",
            "directory/secret.txt",
            "inside",
            "dangling",
            "loop",
            "passwd",
        ] {
            refusal(&server, revision, &format!("t://{name}")).await;
        }
        let list = answer(&server, revision, "resources/list", json!({})).await;
        let listed = list["result"]["resources"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "{list}");
        assert_eq!(listed[0]["uri"], "t://real.txt");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_regular_files_are_opened() {
    let temp = Temp::new();
    temp.write("directory/file", "x");
    let fifo = temp.served().join("fifo");
    let made = process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(temp.served().join("socket")).unwrap();
    let served = server(temp.files().listed(100));
    let devices = server(file_resources("/dev").uri_prefix("dev://"));
    for revision in Revision::ALL {
        for (uri, why) in [
            ("t://fifo", "it is not a regular file"),
            ("t://socket", "it is not a regular file"),
            ("t://directory", "it is a directory"),
        ] {
            let message = refusal(&served, revision, uri).await;
            assert_eq!(message, format!("Resource not found: {uri}\n{why}"));
        }
        refusal(&served, revision, "t://directory/file/x").await;
        refusal(&devices, revision, "dev://null").await;
        refusal(&devices, revision, "dev://zero").await;
        let list = answer(&served, revision, "resources/list", json!({})).await;
        let listed = &list["result"]["resources"];
        assert_eq!(
            *listed,
            json!([{"uri": "t://directory/file", "name": "directory/file", "size": 1}])
        );
    }
}

#[tokio::test]
async fn hidden_files_are_not_served_by_default() {
    let temp = Temp::new();
    temp.write(".env", "secret");
    temp.write(".git/config", "secret");
    temp.write("a/.b/c", "secret");
    temp.write("a/b", "x");
    let uris = ["t://.env", "t://%2Eenv", "t://.git/config", "t://a/.b/c"];
    for revision in Revision::ALL {
        let plain = server(temp.files().listed(10));
        let all = server(temp.files().listed(10).hidden());
        for uri in uris {
            refusal(&plain, revision, uri).await;
            assert_eq!(contents(&all, revision, uri).await["text"], "secret");
        }
        let count = async |server: &Server| {
            let list = answer(server, revision, "resources/list", json!({})).await;
            list["result"]["resources"].as_array().unwrap().len()
        };
        assert_eq!(count(&plain).await, 1);
        assert_eq!(count(&all).await, 4);
    }
}

#[tokio::test]
async fn renamed_directory_is_still_the_served_one() {
    let temp = Temp::new();
    temp.write("notes.txt", "hello");
    let server = server(temp.files());
    fs::rename(temp.served(), temp.0.join("moved")).unwrap();
    temp.write("notes.txt", "another");
    let text = contents(&server, Revision::LATEST, "t://notes.txt").await["text"].clone();
    assert_eq!(text, if cfg!(unix) { "hello" } else { "another" });
}
