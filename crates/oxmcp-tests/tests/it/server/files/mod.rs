//! A served directory: its files, and nothing outside it.

mod reading;
mod roots;
mod safety;
mod whole;

use std::{
    env,
    fs::{self, File},
    path::PathBuf,
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

/// A separate directory for each test, which is removed at the test's end.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("oxmcp-files-{}-{count}", process::id()));
        fs::create_dir_all(path.join("served")).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// The directory of the served files.
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

/// The contents of the answer.
async fn contents(server: &Server, revision: Revision, uri: &str) -> Value {
    let answer = read(server, revision, uri).await;
    let contents = answer["result"]["contents"].as_array();
    let contents = contents.unwrap_or_else(|| panic!("{uri}: {answer}"));
    assert_eq!(contents.len(), 1);
    contents[0].clone()
}

/// The error message of a refused read.
async fn refusal(server: &Server, revision: Revision, uri: &str) -> String {
    let answer = read(server, revision, uri).await;
    let code = if revision.is_modern() { -32602 } else { -32002 };
    assert_eq!(answer["error"]["code"], code, "{uri}: {answer}");
    assert_eq!(answer["error"]["data"], json!({"uri": uri}));
    answer["error"]["message"].as_str().unwrap().to_owned()
}
