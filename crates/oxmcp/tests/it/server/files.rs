//! A directory is served, and nothing but what is in it.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use oxmcp::{
    Client, FileResources, ResourceTemplate, Revision, Server, file_resources,
    protocol::{CacheHint, Root},
    testing,
};
use serde_json::{Value, json};

use crate::support::answer;

/// A directory of its own for each test, which goes with it.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("oxmcp-files-{}-{count}", process::id()));
        fs::create_dir_all(path.join("served")).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// Where the files are that are served.
    fn served(&self) -> PathBuf {
        self.0.join("served")
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.served().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn files(&self) -> FileResources {
        file_resources(self.served()).uri_prefix("t://")
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn server(files: FileResources) -> Server {
    Server::new("files", "1.0.0").files(files)
}

async fn read(server: &Server, revision: Revision, uri: &str) -> Value {
    answer(server, revision, "resources/read", json!({"uri": uri})).await
}

/// The contents that are read.
async fn contents(server: &Server, revision: Revision, uri: &str) -> Value {
    let answer = read(server, revision, uri).await;
    let contents = answer["result"]["contents"].as_array();
    let contents = contents.unwrap_or_else(|| panic!("{uri}: {answer}"));
    assert_eq!(contents.len(), 1);
    contents[0].clone()
}

/// Why it is not read.
async fn refusal(server: &Server, revision: Revision, uri: &str) -> String {
    let answer = read(server, revision, uri).await;
    let code = if revision.is_modern() { -32602 } else { -32002 };
    assert_eq!(answer["error"]["code"], code, "{uri}: {answer}");
    assert_eq!(answer["error"]["data"], json!({"uri": uri}));
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn o6_files_are_read_in_every_revision() {
    let temp = Temp::new();
    temp.write("notes.txt", "hello");
    temp.write("empty", "");
    temp.write("deep/er/data.json", "{}");
    temp.write("picture.PNG", [0x89, b'P', b'N', b'G', 0]);
    temp.write("broken.txt", [b'a', 0xff]);
    temp.write("a b+c (é)?#%.md", "# x");
    let server = server(temp.files());
    for revision in Revision::ALL {
        for (uri, expected) in [
            (
                "t://notes.txt",
                json!({"mimeType": "text/plain", "text": "hello"}),
            ),
            ("t://empty", json!({"mimeType": "text/plain", "text": ""})),
            (
                "t://deep/er/data.json",
                json!({"mimeType": "application/json", "text": "{}"}),
            ),
            (
                "t://deep/er/d%61ta.json",
                json!({"mimeType": "application/json", "text": "{}"}),
            ),
            (
                "t://picture.PNG",
                json!({"mimeType": "image/png", "blob": "iVBORwA="}),
            ),
            (
                "t://broken.txt",
                json!({"mimeType": "text/plain", "blob": "Yf8="}),
            ),
            (
                "t://a b+c (é)%3F%23%25.md",
                json!({"mimeType": "text/markdown", "text": "# x"}),
            ),
            (
                "t://a%20b%2Bc%20%28%C3%A9%29%3F%23%25.md",
                json!({"mimeType": "text/markdown", "text": "# x"}),
            ),
        ] {
            let mut expected = expected;
            expected["uri"] = json!(uri);
            assert_eq!(
                contents(&server, revision, uri).await,
                expected,
                "{revision}"
            );
        }
    }
}

#[tokio::test]
async fn o6_by_default_uris_are_those_of_the_files() {
    let temp = Temp::new();
    temp.write("notes.txt", "hello");
    let files = file_resources(temp.served());
    let uri = format!("file://{}/notes.txt", temp.served().display());
    let server = server(files);
    assert_eq!(
        contents(&server, Revision::LATEST, &uri).await["text"],
        "hello"
    );
    let list = answer(
        &server,
        Revision::LATEST,
        "resources/templates/list",
        json!({}),
    )
    .await;
    let template = format!("file://{}/{{+path}}", temp.served().display());
    assert_eq!(
        list["result"]["resourceTemplates"],
        json!([{"uriTemplate": template, "name": "files"}])
    );
}

#[tokio::test]
async fn o6_nothing_outside_the_directory_can_be_reached() {
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
async fn o6_symbolic_links_are_not_followed() {
    use std::os::unix::fs::symlink;

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
async fn o6_only_plain_files_are_opened() {
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
            ("t://fifo", "it is no plain file"),
            ("t://socket", "it is no plain file"),
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
async fn o6_what_is_too_long_is_not_read() {
    let temp = Temp::new();
    temp.write("four", "1234");
    temp.write("five", "12345");
    File::create(temp.served().join("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let small = server(temp.files().max_bytes(4));
    let usual = server(temp.files());
    for revision in Revision::ALL {
        assert_eq!(contents(&small, revision, "t://four").await["text"], "1234");
        for (server, uri, limit) in [(&small, "t://five", "4"), (&usual, "t://huge", "16777216")] {
            let answer = read(server, revision, uri).await;
            let message = format!("the file is longer than {limit} bytes, the limit");
            assert_eq!(answer["error"], json!({"code": -32603, "message": message}));
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn o6_names_that_are_no_text_are_percent_codes() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let temp = Temp::new();
    let name = OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(temp.served().join(name), "latin").unwrap();
    let server = server(temp.files().listed(10));
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let listed = session.resources().all().await.unwrap();
        assert_eq!(listed[0].uri, "t://caf%E9.txt");
        assert_eq!(listed[0].name, "caf\u{fffd}.txt");
        for uri in ["t://caf%E9.txt", "t://caf%e9.txt"] {
            let read = session.read_resource(uri).await.unwrap();
            assert_eq!(read.contents[0].as_text(), Some("latin"), "{uri}");
        }
    }
}

#[tokio::test]
async fn o6_what_is_hidden_is_not_served_unless_it_is_wanted() {
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
async fn o6_a_client_with_roots_reads_only_what_is_within_them() {
    let temp = Temp::new();
    temp.write("a/notes.txt", "a");
    temp.write("b/notes.txt", "b");
    let root = |path: &str| Root::new(format!("file://{}{path}", temp.served().display()));
    let limited = server(temp.files().listed(1));
    let own = server(temp.files().beyond_roots());
    for revision in Revision::ALL {
        for (roots, readable) in [
            (vec![root("/a")], [true, false]),
            (vec![root("/a/notes.txt")], [true, false]),
            (vec![root("/b/"), root("/a/")], [true, true]),
            (vec![root("")], [true, true]),
            (vec![Root::new("file:///nowhere")], [false, false]),
            (vec![], [false, false]),
        ] {
            let client = Client::new("rooted", "1.0.0").roots(roots);
            let session = testing::connect(&limited).client(&client);
            let session = session.revision(revision).await.unwrap();
            for (uri, readable) in ["t://a/notes.txt", "t://b/notes.txt"]
                .into_iter()
                .zip(readable)
            {
                let read = session.read_resource(uri).await;
                assert_eq!(read.is_ok(), readable, "{revision} {uri} {read:?}");
                if let Err(error) = read {
                    let message =
                        format!("Resource not found: {uri}\nit is not within the client's roots");
                    assert_eq!(error.message(), message);
                }
            }
            let session = testing::connect(&own).client(&client);
            let session = session.revision(revision).await.unwrap();
            session.read_resource("t://b/notes.txt").await.unwrap();
        }
        // Without roots there is nothing to hold it against.
        contents(&limited, revision, "t://b/notes.txt").await;
    }
}

#[tokio::test(start_paused = true)]
async fn o6_roots_are_those_that_the_client_has_now() {
    let temp = Temp::new();
    temp.write("notes.txt", "x");
    let server = server(temp.files());
    for revision in Revision::ALL {
        let client = Client::new("rooted", "1.0.0").roots([Root::new("file:///nowhere")]);
        let session = testing::connect(&server).client(&client);
        let session = session.revision(revision).await.unwrap();
        session.read_resource("t://notes.txt").await.unwrap_err();
        let root = Root::new(format!("file://{}", temp.served().display()));
        client.add_roots([root]).unwrap();
        // The server hears of it before the next request.
        tokio::time::sleep(Duration::from_millis(50)).await;
        session.read_resource("t://notes.txt").await.unwrap();
    }
}

#[tokio::test]
async fn o6_the_list_is_bounded_and_can_be_made_again() {
    let temp = Temp::new();
    for name in ["c/1", "a/2", "b", "a/1"] {
        temp.write(name, "x");
    }
    let server = server(temp.files().listed(3));
    let session = testing::connect(&server).await.unwrap();
    let uris = async || {
        let listed = session.resources().all().await.unwrap();
        listed.into_iter().map(|it| it.uri).collect::<Vec<_>>()
    };
    assert_eq!(uris().await, ["t://a/1", "t://a/2", "t://b"]);
    fs::remove_file(temp.served().join("b")).unwrap();
    assert_eq!(
        refusal(&server, Revision::LATEST, "t://b").await,
        "Resource not found: t://b"
    );
    temp.write("0.md", "new");
    server.remove_resources(uris().await);
    server.add_resources(temp.files().list(2).unwrap()).unwrap();
    assert_eq!(uris().await, ["t://0.md", "t://a/1"]);
    assert_eq!(temp.files().list(0).unwrap().len(), 0);
}

#[tokio::test]
async fn o6_a_directory_that_moves_is_the_same_one() {
    let temp = Temp::new();
    temp.write("notes.txt", "hello");
    let server = server(temp.files());
    fs::rename(temp.served(), temp.0.join("moved")).unwrap();
    temp.write("notes.txt", "another");
    let text = contents(&server, Revision::LATEST, "t://notes.txt").await["text"].clone();
    assert_eq!(text, if cfg!(unix) { "hello" } else { "another" });
}

#[tokio::test]
async fn o6_what_is_wrong_with_a_directory_is_said_before_the_server_serves() {
    let temp = Temp::new();
    temp.write("file", "");
    for (files, said) in [
        (
            file_resources(temp.0.join("none")),
            "No such file or directory",
        ),
        (
            file_resources(temp.served().join("file")),
            "Not a directory",
        ),
        (temp.files().uri_prefix("docs"), "must begin with a scheme"),
        (temp.files().uri_prefix("docs://{x}/"), "leave out {}"),
        (
            file_resources(temp.0.join("none")).listed(1),
            "No such file or directory",
        ),
    ] {
        let error = testing::connect(&server(files)).await.unwrap_err();
        assert!(error.message().contains(said), "{error}");
    }
}

#[tokio::test]
async fn files_are_a_template_like_any_other() {
    let temp = Temp::new();
    temp.write("notes.txt", "hello");
    let hint = CacheHint::public(Duration::from_secs(1));
    let template = ResourceTemplate::from(temp.files().name("docs").cache(hint)).title("Docs");
    let server = Server::new("files", "1.0.0").resource_template(template);
    let list = answer(
        &server,
        Revision::LATEST,
        "resources/templates/list",
        json!({}),
    )
    .await;
    let expected = json!([{"uriTemplate": "t://{+path}", "name": "docs", "title": "Docs"}]);
    assert_eq!(list["result"]["resourceTemplates"], expected);
    let read = read(&server, Revision::LATEST, "t://notes.txt").await;
    assert_eq!(read["result"]["ttlMs"], 1000);
}
