//! Tasks in SQLite: the contract, limits, restarts, and unusable files.

use std::{fs, time::Duration};

use oxmcp::{
    Error,
    tasks::{TaskRecord, TaskStore},
    testing,
};
use oxmcp_sqlite::Sqlite;

use crate::{place::Place, writer::Writer};

pub(crate) fn task(id: &str) -> TaskRecord {
    let mut task = TaskRecord::new(id, "tool");
    task.ttl_ms = 3_600_000;
    task
}

/// Unwraps the expected error, as text.
pub(crate) fn refused<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn task_store_contract_holds() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    let contract = testing::task_store_contract(|| async { (store.clone(), store.clone()) });
    contract.await.unwrap();
}

#[tokio::test]
async fn tasks_are_bounded_and_expired_ones_evicted() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    let store = store.max_tasks(3).max_tasks_each(2).max_task_bytes(4096);
    let of = |id: &str, owner: &str| {
        let mut task = task(id);
        task.owner = Some(owner.to_owned());
        task
    };
    store.create(of("a", "ann")).await.unwrap();
    let mut brief = of("b", "ann");
    brief.ttl_ms = 0;
    store.create(brief).await.unwrap();
    store.create(of("c", "ann")).await.unwrap();
    assert!(refused(store.create(of("d", "ann")).await).contains("too many tasks"));
    store.create(of("e", "bob")).await.unwrap();
    assert!(store.create(of("f", "eve")).await.unwrap_err().is_limit());

    let found = store.load("e").await.unwrap().unwrap();
    let mut long = found.task;
    long.status_message = Some("x".repeat(4096));
    assert!(refused(store.replace("e", found.revision, long).await).contains("task store is full"));
    // The task is unchanged, and the bytes of removed tasks are free.
    let same = store.load("e").await.unwrap().unwrap();
    assert_eq!(
        (same.revision, same.task.status_message),
        (found.revision, None)
    );
}

#[tokio::test]
async fn stored_data_survives_a_restart() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    store.create(task("held")).await.unwrap();
    let epoch = store
        .claim("held", Duration::from_secs(3600))
        .await
        .unwrap();
    drop(store);
    let store = Sqlite::open(place.file()).await.unwrap();
    let found = store.load("held").await.unwrap().unwrap();
    assert_eq!((found.revision, Some(found.epoch)), (2, epoch));
    // The previous holder had the file open.
    assert_eq!(store.orphans(9).await.unwrap(), ["held"]);
    assert!(
        !store
            .renew("held", found.epoch, Duration::from_secs(9))
            .await
            .unwrap()
    );
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    store.create(task("a")).await.unwrap();
    let files: Vec<_> = fs::read_dir(&place.0)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn unusable_file_is_refused_with_an_explanation() {
    let place = Place::new();
    let missing = place.0.join("missing").join("state.db");
    assert!(refused(Sqlite::open(missing).await).contains("directory must exist"));
    let text = place.0.join("text");
    fs::write(&text, "no database ".repeat(100)).unwrap();
    assert!(refused(Sqlite::open(&text).await).contains("not a database"));
    assert!(
        fs::read_to_string(&text)
            .unwrap()
            .starts_with("no database ")
    );

    let foreign = place.0.join("foreign.db");
    let other = rusqlite::Connection::open(&foreign).unwrap();
    other
        .execute_batch("CREATE TABLE notes (text TEXT)")
        .unwrap();
    drop(other);
    assert!(refused(Sqlite::open(&foreign).await).contains("of another program"));

    drop(Sqlite::open(place.file()).await.unwrap());
    let newer = rusqlite::Connection::open(place.file()).unwrap();
    newer.busy_timeout(Duration::from_secs(60)).unwrap();
    newer.pragma_update(None, "user_version", 9).unwrap();
    drop(newer);
    assert!(refused(Sqlite::open(place.file()).await).contains("has version 9"));
}

#[tokio::test]
async fn second_handle_to_one_file_is_refused() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    assert!(refused(Sqlite::open(place.file()).await).contains("is in use"));
    store.create(task("a")).await.unwrap();
}

#[tokio::test]
async fn second_process_is_refused() {
    let place = Place::new();
    let mut other = Writer::start(&place);
    other.acknowledged(1);
    let error = refused(Sqlite::open(place.file()).await);
    assert!(
        error.contains("is in use") && error.contains("one process"),
        "{error}"
    );
    // The process that has the file open continues.
    other.acknowledged(5);
}
