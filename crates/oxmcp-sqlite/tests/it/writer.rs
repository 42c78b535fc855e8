//! A process that is killed while it writes.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{self, Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use oxmcp::{
    Revision,
    store::{EventStore, Replay, SessionRecord, SessionStore, StreamWrite},
    tasks::TaskStore,
};
use oxmcp_sqlite::Sqlite;

use crate::{place::Place, tasks::task};

/// `kill -9` at any time, during commits of many concurrent operations.
#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    let place = Place::new();
    let mut acknowledged = Vec::new();
    for _ in 0..5 {
        let mut writer = Writer::start(&place);
        acknowledged.extend(writer.acknowledged(120));
        acknowledged.extend(writer.kill());
        let store = Sqlite::open(place.file()).await.unwrap().max_tasks(1 << 20);
        for name in &acknowledged {
            let is_there = match name.split_once(' ').unwrap() {
                ("task", id) => {
                    let found = TaskStore::load(&store, id).await.unwrap();
                    found.and_then(|it| it.task.status_message) == Some(long())
                }
                ("session", id) => SessionStore::load(&store, id).await.unwrap().is_some(),
                (_, id) => {
                    let (stream, index) = id.split_once(' ').unwrap();
                    let index: u64 = index.parse().unwrap();
                    let after = store.after("session", stream, index - 1, 1);
                    matches!(after.await.unwrap(), Replay::Events { events, .. } if events == [long()])
                }
            };
            assert!(is_there, "{name} was acknowledged, and is not there");
        }
    }
}

fn long() -> String {
    "x".repeat(2000)
}

pub(crate) const FILE: &str = "OXMCP_SQLITE_TEST_FILE";

/// A process that stores tasks, sessions and events in a file, and prints each ID once it is acknowledged. It is killed on drop.
pub(crate) struct Writer {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Writer {
    pub(crate) fn start(place: &Place) -> Self {
        Self::run(place, "writer::the_writer")
    }

    /// Runs a test as another process.
    pub(crate) fn run(place: &Place, test: &str) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(FILE, place.file())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { process, lines }
    }

    /// The next IDs, this many.
    pub(crate) fn acknowledged(&mut self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        while ids.len() < count {
            ids.push(self.next().expect("it has ended"));
        }
        ids
    }

    fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
                return None;
            }
            // The first ID follows output of the test runner.
            if let Some((_, id)) = line.trim_end().split_once("acknowledged ") {
                return Some(id.to_owned());
            }
        }
    }

    /// Kills the process. Returns the IDs that it had acknowledged.
    pub(crate) fn kill(&mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Not a test by itself: the others run it as another process.
#[tokio::test]
async fn the_writer() {
    let Some(file) = env::var_os(FILE) else {
        return;
    };
    let store = Sqlite::open(file).await.unwrap().max_tasks(1 << 20);
    let store = store.max_tasks_each(1 << 20);
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let stream = format!("{}-{writer}", process::id());
            for number in 0.. {
                let id = format!("{stream}-{number}");
                let mut task = task(&id);
                task.status_message = Some(long());
                TaskStore::create(&store, task).await.unwrap();
                println!("acknowledged task {id}");
                let params = serde_json::from_str("{}").unwrap();
                let record = SessionRecord::new(params, Revision::V2025_11_25);
                let lasts = Duration::from_secs(3600);
                SessionStore::create(&store, &id, record, lasts, 1)
                    .await
                    .unwrap();
                println!("acknowledged session {id}");
                let write = StreamWrite::new(bytes::Bytes::from(long()));
                let indexes = store.append("session", &stream, write).await.unwrap();
                println!("acknowledged event {stream} {}", indexes.unwrap()[0]);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}
