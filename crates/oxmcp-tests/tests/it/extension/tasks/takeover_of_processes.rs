//! Processes that share a store of tasks, and are killed. Their effects are counted in a file outside of them.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{self, Output},
};

use oxmcp::{
    Error,
    protocol::CallToolResult,
    tasks::{ServerTasks, StoredTask, TaskContext, TaskRecord, TaskStore},
};
use rustix::{
    fs::{FlockOperation, flock},
    process::{Signal, getpid, kill_process},
};
use serde::{Deserialize, Serialize};

use super::{leases::node, *};
use crate::child;

/// The variable with the role of the child: the point at which it is killed.
const ROLE: &str = "OXMCP_TEST_TAKEOVER";
const FOLDER: &str = "OXMCP_TEST_TAKEOVER_FOLDER";
const IDEMPOTENT: &str = "OXMCP_TEST_TAKEOVER_IDEMPOTENT";

/// A store in a folder: a file for each task, replaced as a whole, under one lock. A lease holds as long as its process lives.
struct FileStore {
    folder: PathBuf,
    /// A file that is locked while this process lives.
    _alive: File,
}

/// The contents of a task's file.
#[derive(Serialize, Deserialize)]
struct Kept {
    task: TaskRecord,
    revision: u64,
    epoch: u64,
    /// The id of the process that has leased the task. 0 is no living process.
    holder: Option<u32>,
}

fn open(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.create(true).append(true).open(path).unwrap()
}

impl FileStore {
    fn of(folder: PathBuf) -> Self {
        let alive = open(&folder.join(format!("{}.alive", process::id())));
        flock(&alive, FlockOperation::LockExclusive).unwrap();
        Self {
            folder,
            _alive: alive,
        }
    }

    fn lives(&self, holder: u32) -> bool {
        let alive = self.folder.join(format!("{holder}.alive"));
        alive.exists() && flock(open(&alive), FlockOperation::NonBlockingLockExclusive).is_err()
    }

    fn is_leased(&self, kept: &Kept) -> bool {
        kept.holder.is_some_and(|holder| self.lives(holder))
    }

    fn read(&self, id: &str) -> Option<Kept> {
        let text = fs::read(self.folder.join(format!("{id}.json"))).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    fn write(&self, kept: &Kept) {
        let new = self.folder.join("new");
        fs::write(&new, serde_json::to_vec(kept).unwrap()).unwrap();
        fs::rename(new, self.folder.join(format!("{}.json", kept.task.id))).unwrap();
    }

    /// Changes a task under the lock. If `change` returns `None`, the task stays as it is.
    fn change<T>(&self, id: &str, change: impl FnOnce(&mut Kept) -> Option<T>) -> Option<T> {
        let lock = open(&self.folder.join("lock"));
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let mut kept = self.read(id)?;
        let changed = change(&mut kept)?;
        self.write(&kept);
        Some(changed)
    }

    fn ids(&self) -> Vec<String> {
        let names = fs::read_dir(&self.folder).unwrap();
        let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        names
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .collect()
    }
}

impl TaskStore for FileStore {
    async fn create(&self, task: TaskRecord) -> oxmcp::Result<()> {
        let kept = Kept {
            task,
            revision: 1,
            epoch: 0,
            holder: None,
        };
        self.write(&kept);
        Ok(())
    }

    async fn load(&self, id: &str) -> oxmcp::Result<Option<StoredTask>> {
        let kept = self.read(id);
        Ok(kept.map(|it| StoredTask::new(it.task, it.revision, it.epoch)))
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> oxmcp::Result<bool> {
        let replaced = self.change(id, |kept| {
            let is_newest = kept.revision == revision;
            is_newest.then(|| {
                kept.task = task;
                kept.revision += 1;
            })
        });
        Ok(replaced.is_some())
    }

    async fn claim(&self, id: &str, _lease: Duration) -> oxmcp::Result<Option<u64>> {
        Ok(self.change(id, |kept| {
            let is_free = !self.is_leased(kept);
            is_free.then(|| {
                kept.holder = Some(process::id());
                kept.revision += 1;
                kept.epoch += 1;
                kept.epoch
            })
        }))
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> oxmcp::Result<bool> {
        let renewed = self.change(id, |kept| {
            let is_held = kept.epoch == epoch && self.is_leased(kept);
            is_held.then(|| {
                if lease.is_zero() {
                    kept.holder = Some(0);
                }
            })
        });
        Ok(renewed.is_some())
    }

    async fn orphans(&self, limit: usize) -> oxmcp::Result<Vec<String>> {
        let is_orphan = |id: &String| {
            self.read(id).is_some_and(|kept| {
                kept.holder.is_some() && !self.is_leased(&kept) && !kept.task.is_over()
            })
        };
        Ok(self
            .ids()
            .into_iter()
            .filter(is_orphan)
            .take(limit)
            .collect())
    }

    async fn list(&self, _: Option<&str>, _: Option<&str>, _: usize) -> oxmcp::Result<Vec<String>> {
        Err(Error::internal("nobody lists"))
    }

    async fn changed(&self, _id: &str, _revision: u64) -> oxmcp::Result<()> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok(())
    }
}

/// A tool with an effect of two parts, whose process is killed at the given point.
fn paying(folder: &Path, point: &str, is_idempotent: bool) -> Tool {
    let (ledger, point) = (folder.join("ledger"), point.to_owned());
    let run = move |cx: RequestContext| {
        let (ledger, point) = (ledger.clone(), point.clone());
        async move {
            let at = |reached: &str| {
                if reached == point {
                    kill_process(getpid(), Signal::KILL).unwrap();
                }
            };
            let pay = async || {
                at("before");
                open(&ledger).write_all(b"(").unwrap();
                at("inside");
                open(&ledger).write_all(b")").unwrap();
                at("after");
            };
            at("not begun");
            match is_idempotent {
                true => cx.step_idempotent("pay", pay).await?,
                false => cx.step("pay", pay).await?,
            }
            at("stored");
            Ok::<_, Error>("paid")
        }
    };
    Tool::new("pay", "Pay", run).task(TaskPolicy::Required)
}

/// The child processes: the first begins a task and is killed, the second prints the task when it has ended.
#[tokio::test(start_paused = true)]
#[ignore = "the process that the other tests start"]
async fn child() {
    let Some(role) = child::role(ROLE) else {
        return;
    };
    let folder = PathBuf::from(env::var(FOLDER).unwrap());
    let is_idempotent = env::var(IDEMPOTENT).unwrap() == "true";
    let tool = paying(&folder, &role, is_idempotent);
    let store = FileStore::of(folder);
    let known = store.ids().pop();
    let mut peer = Peer::of(&node(store, tool)).await;
    let id = match known {
        Some(id) => id,
        None => peer.begin("pay").await,
    };
    loop {
        let task = peer.get(&id).await;
        if task["status"] != "working" {
            println!("\nended: {task}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn run(folder: &Path, point: &str, is_idempotent: bool) -> Output {
    let name = "extension::tasks::takeover_of_processes::child";
    let mut command = child::command(name, ROLE, point);
    command.env(FOLDER, folder);
    command.env(IDEMPOTENT, is_idempotent.to_string());
    command.output().unwrap()
}

#[test]
fn killed_process_never_repeats_an_effect() {
    const INTERRUPTED: &str = "task interrupted in step \\\"pay\\\"";
    const PAID: &str = "\"status\":\"completed\"";
    for (point, is_idempotent, ended, effects) in [
        ("not begun", false, PAID, "()"),
        ("before", false, INTERRUPTED, ""),
        ("inside", false, INTERRUPTED, "("),
        ("after", false, INTERRUPTED, "()"),
        ("stored", false, PAID, "()"),
        ("before", true, PAID, "()"),
        ("inside", true, PAID, "(()"),
        ("after", true, PAID, "()()"),
        ("stored", true, PAID, "()"),
    ] {
        let name = format!("oxmcp-takeover-{}-{point}-{is_idempotent}", process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        let first = run(&folder, point, is_idempotent);
        assert_eq!(
            first.status.signal(),
            Some(Signal::KILL.as_raw()),
            "{point}: {first:?}"
        );
        let second = run(&folder, "never", is_idempotent);
        let told = String::from_utf8(second.stdout).unwrap();
        assert!(told.contains(ended), "{point}: {told}");
        let ledger = fs::read_to_string(folder.join("ledger")).unwrap_or_default();
        assert_eq!(ledger, effects, "{point}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

/// The variable with the role of the child that leaves its task to another party.
const LEAVING: &str = "OXMCP_TEST_LEAVING";

/// The first process leaves its task to another party and is killed; the second completes the task.
#[tokio::test(start_paused = true)]
#[ignore = "the process that the other tests start"]
async fn leaving_child() {
    let Some(role) = child::role(LEAVING) else {
        return;
    };
    let tool = Tool::new("work", "Work", |cx: RequestContext| async move {
        cx.leave_task().await.unwrap();
        kill_process(getpid(), Signal::KILL).unwrap();
    });
    let store = FileStore::of(PathBuf::from(env::var(FOLDER).unwrap()));
    let known = store.ids().pop();
    let server = node(store, tool.task(TaskPolicy::Required));
    let mut peer = Peer::of(&server).await;
    if role == "first" {
        peer.begin("work").await;
        std::future::pending::<()>().await;
    }
    let id = known.unwrap();
    // The search for orphans looks at the task many times.
    for _ in 0..30 {
        peer.get(&id).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    println!("\nfound: {}", peer.get(&id).await);
    let result = CallToolResult::text("by somebody else");
    let control = server.tasks().unwrap();
    assert!(control.complete(&id, result).await.unwrap());
    println!("\nended: {}", peer.get(&id).await);
}

#[test]
fn task_delegated_to_worker_survives_a_kill() {
    let folder = env::temp_dir().join(format!("oxmcp-leaving-{}", process::id()));
    fs::create_dir(&folder).unwrap();
    let run = |role: &str| {
        let name = "extension::tasks::takeover_of_processes::leaving_child";
        let mut command = child::command(name, LEAVING, role);
        command.env(FOLDER, &folder).output().unwrap()
    };
    let first = run("first");
    assert_eq!(
        first.status.signal(),
        Some(Signal::KILL.as_raw()),
        "{first:?}"
    );
    let second = run("second");
    fs::remove_dir_all(&folder).unwrap();
    let told = String::from_utf8(second.stdout).unwrap();
    let status_after = |word: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(word));
        let task: Value = serde_json::from_str(line.expect(&told)).unwrap();
        task["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status_after("found: "), "working");
    assert_eq!(status_after("ended: "), "completed");
}
