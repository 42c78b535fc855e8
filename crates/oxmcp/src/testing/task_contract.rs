//! The contract of task stores: the rules that every [`TaskStore`] must follow.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::future::try_join_all;
use oxmcp_protocol::TaskStatus;
use serde_json::value::RawValue;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    error::{Error, Result},
    tasks::{StoredTask, TaskOutcome, TaskRecord, TaskStore},
};

/// The timeout for store operations without their own.
const PATIENCE: Duration = Duration::from_secs(60);

/// Checks a task store against the contract of [`TaskStore`]. `make` returns two handles to one store. Each rule calls it
/// again, and may get handles to the same database, because task IDs are never reused.
///
/// ```
/// use std::sync::Arc;
/// use oxmcp::{tasks::MemoryTaskStore, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::task_store_contract(|| async {
///     let store = Arc::new(MemoryTaskStore::new());
///     (Arc::clone(&store), store)
/// })
/// .await
/// # }
/// ```
///
/// # Errors
/// The first broken rule, with the details; or an error of the store.
///
/// # Cancel safety
/// If the future is dropped before it returns, its data may remain in the store.
pub async fn task_store_contract<S, F>(make: impl Fn() -> F) -> Result<()>
where
    S: TaskStore,
    F: Future<Output = (S, S)>,
{
    let new = async || {
        let (one, other) = make().await;
        Handles {
            one: Arc::new(one),
            other: Arc::new(other),
        }
    };
    created_is_found(new().await).await?;
    stale_changes_are_refused(new().await).await?;
    changes_at_once(new().await).await?;
    waits_end_with_changes(new().await).await?;
    one_lease_holds(new().await).await?;
    lost_leases_are_fenced(new().await).await?;
    lapsed_leases_stay_so(new().await).await?;
    leases_can_be_given_up(new().await).await?;
    orphans_are_found(new().await).await?;
    owners_are_listed(new().await).await?;
    expired_is_gone(new().await).await
}

/// Two handles to one store.
struct Handles<S> {
    one: Arc<S>,
    other: Arc<S>,
}

/// A task with a unique ID, in the form of the SDK's IDs.
fn task() -> Result<TaskRecord> {
    let mut random = [0; 12];
    getrandom::fill(&mut random).map_err(|error| Error::internal(error.to_string()))?;
    let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut task = TaskRecord::new(format!("contract{id}"), "tool");
    task.ttl_ms = 3_600_000;
    Ok(task)
}

fn broken(rule: &str, how: impl std::fmt::Display) -> Error {
    Error::internal(format!("the store breaks a rule: {rule}: {how}"))
}

async fn load<S: TaskStore>(store: &S, rule: &str, id: &str) -> Result<StoredTask> {
    let found = store.load(id).await?;
    found.ok_or_else(|| broken(rule, "the task is not found"))
}

fn text(task: &TaskRecord) -> String {
    serde_json::to_string(task).expect("a record is always JSON")
}

async fn created_is_found<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "every handle finds a created task unchanged";
    let json = |text: &str| RawValue::from_string(text.to_owned()).expect("it is JSON");
    let mut created = task()?;
    created.owner = Some("ann\u{0}é".to_owned());
    created.status = TaskStatus::Completed;
    created.status_message = Some("ready".to_owned());
    created
        .questions
        .insert("q1".to_owned(), json("{\"b\": 1, \"a\": 2}"));
    created.answers.insert("q2".to_owned(), json("[1.0, 1]"));
    created.outcome = Some(TaskOutcome::Result(json("{\"content\": []}")));
    store.one.create(created.clone()).await?;
    for handle in [&store.one, &store.other] {
        let found = load(&**handle, RULE, &created.id).await?;
        if text(&found.task) != text(&created) {
            return Err(broken(
                RULE,
                format!("{} became {}", text(&created), text(&found.task)),
            ));
        }
    }
    if store.other.load(&task()?.id).await?.is_some() {
        return Err(broken(RULE, "another ID has a task, too"));
    }
    match store.other.create(created).await {
        Ok(()) => Err(broken(RULE, "an ID was created twice")),
        Err(_) => Ok(()),
    }
}

async fn stale_changes_are_refused<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "a task is replaced only in the revision that was read";
    let mut changed = task()?;
    let id = changed.id.clone();
    store.one.create(changed.clone()).await?;
    let first = load(&*store.other, RULE, &id).await?;
    changed.status = TaskStatus::Cancelled;
    if !store
        .one
        .replace(&id, first.revision, changed.clone())
        .await?
    {
        return Err(broken(RULE, "the current revision was refused"));
    }
    let mut stale = first.task;
    stale.status = TaskStatus::Completed;
    if store.other.replace(&id, first.revision, stale).await? {
        return Err(broken(RULE, "an older revision was replaced"));
    }
    let now = load(&*store.other, RULE, &id).await?;
    if now.task.status != TaskStatus::Cancelled || now.revision == first.revision {
        return Err(broken(
            RULE,
            "a refused change modified the task, or an accepted one kept the revision",
        ));
    }
    let unknown = task()?;
    match store.one.replace(&unknown.id.clone(), 1, unknown).await? {
        true => Err(broken(RULE, "a missing task was replaced")),
        false => Ok(()),
    }
}

async fn changes_at_once<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "concurrent changes are all kept";
    const EACH: u64 = 10;
    let created = task()?;
    let id = created.id.clone();
    store.one.create(created).await?;
    let mut workers = JoinSet::new();
    for number in 0..8 {
        let handle = if number % 2 == 0 {
            &store.one
        } else {
            &store.other
        };
        let (handle, id) = (Arc::clone(handle), id.clone());
        workers.spawn(async move {
            for _ in 0..EACH {
                loop {
                    let StoredTask {
                        mut task, revision, ..
                    } = load(&*handle, RULE, &id).await?;
                    task.asked += 1;
                    if handle.replace(&id, revision, task).await? {
                        break;
                    }
                }
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.map_err(|error| Error::internal(error.to_string()))??;
    }
    let asked = load(&*store.one, RULE, &id).await?.task.asked;
    if asked != 8 * EACH {
        return Err(broken(RULE, format!("{asked} of {} were kept", 8 * EACH)));
    }
    Ok(())
}

async fn waits_end_with_changes<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "a wait ends when the task changes";
    let created = task()?;
    let id = created.id.clone();
    store.one.create(created).await?;
    let first = load(&*store.one, RULE, &id).await?;
    let late = || broken(RULE, "it did not end");
    let wait = async {
        // A wait may return early, so only a change ends this loop.
        while load(&*store.other, RULE, &id).await?.revision == first.revision {
            store.other.changed(&id, first.revision).await?;
        }
        Ok::<_, Error>(())
    };
    let change = async {
        tokio::task::yield_now().await;
        let changed = first.task.clone();
        store
            .one
            .replace(&id, first.revision, changed)
            .await
            .map(drop)
    };
    let both = async { tokio::try_join!(wait, change) };
    timeout(PATIENCE, both).await.map_err(|_| late())??;
    // The wait returns at once for a task that has changed already, or that does not exist.
    let unknown = task()?.id;
    let done = try_join_all([
        store.other.changed(&id, first.revision),
        store.other.changed(&unknown, 1),
    ]);
    timeout(PATIENCE, done).await.map_err(|_| late())?.map(drop)
}

/// The durations of a lease that expires during a rule, and of one that does not.
const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(3600);

/// Claims a task as soon as the current lease has expired.
async fn claim_next<S: TaskStore>(store: &S, rule: &str, id: &str) -> Result<u64> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(epoch) = store.claim(id, LONG).await? {
            return Ok(epoch);
        }
        if Instant::now() > deadline {
            return Err(broken(rule, "a lease did not expire"));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn one_lease_holds<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "a task has one lease at a time, until it expires";
    let created = task()?;
    let id = created.id.clone();
    store.one.create(created).await?;
    let before = load(&*store.one, RULE, &id).await?;
    let claims = [&store.one, &store.other].map(|handle| handle.claim(&id, LONG));
    let claims = try_join_all(claims).await?;
    let [first] = claims.into_iter().flatten().collect::<Vec<_>>()[..] else {
        return Err(broken(
            RULE,
            "not exactly one of two concurrent claims was granted",
        ));
    };
    let leased = load(&*store.other, RULE, &id).await?;
    if leased.revision == before.revision {
        return Err(broken(RULE, "a claim did not change the revision"));
    }
    if before.epoch != 0 || first == 0 || leased.epoch != first {
        return Err(broken(
            RULE,
            "a loaded task does not have the epoch of its lease",
        ));
    }
    if !store.other.renew(&id, first, SHORT).await? {
        return Err(broken(RULE, "a valid lease was not renewed"));
    }
    if load(&*store.one, RULE, &id).await?.revision != leased.revision {
        return Err(broken(RULE, "a renewal changed the revision"));
    }
    let next = claim_next(&*store.other, RULE, &id).await?;
    if next <= first {
        return Err(broken(RULE, format!("epoch {next} follows epoch {first}")));
    }
    let unknown = task()?.id;
    let claimed = store.one.claim(&unknown, LONG).await?.is_some();
    match claimed || store.one.renew(&unknown, 1, LONG).await? {
        true => Err(broken(RULE, "a missing task was leased")),
        false => Ok(()),
    }
}

async fn lost_leases_are_fenced<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "a change that was read under a lost lease is refused";
    let created = task()?;
    let id = created.id.clone();
    store.one.create(created).await?;
    let lost = store.one.claim(&id, SHORT).await?;
    let lost = lost.ok_or_else(|| broken(RULE, "a new task was not leased"))?;
    let stale = load(&*store.one, RULE, &id).await?;
    let held = claim_next(&*store.other, RULE, &id).await?;
    if store.one.replace(&id, stale.revision, stale.task).await? {
        return Err(broken(RULE, "it was accepted"));
    }
    if store.one.renew(&id, lost, LONG).await? {
        return Err(broken(RULE, "the lost lease was renewed"));
    }
    match store.other.renew(&id, held, LONG).await? {
        true => Ok(()),
        false => Err(broken(RULE, "the valid lease was not renewed")),
    }
}

async fn lapsed_leases_stay_so<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "an expired lease cannot be renewed";
    let created = task()?;
    let id = created.id.clone();
    store.one.create(created).await?;
    let lapsed = store.one.claim(&id, SHORT).await?;
    let lapsed = lapsed.ok_or_else(|| broken(RULE, "a new task was not leased"))?;
    let deadline = Instant::now() + PATIENCE;
    while !store.other.orphans(usize::MAX).await?.contains(&id) {
        if Instant::now() > deadline {
            return Err(broken(RULE, "a lease did not expire"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    match store.one.renew(&id, lapsed, LONG).await? {
        true => Err(broken(RULE, "it was renewed")),
        false => Ok(()),
    }
}

async fn leases_can_be_given_up<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "renewing a lease for zero time ends it";
    let created = task()?;
    let id = created.id.clone();
    store.one.create(created).await?;
    let held = store.one.claim(&id, LONG).await?;
    let held = held.ok_or_else(|| broken(RULE, "a new task was not leased"))?;
    if !store.one.renew(&id, held, Duration::ZERO).await? {
        return Err(broken(RULE, "a valid lease was not renewed"));
    }
    if !store.other.orphans(usize::MAX).await?.contains(&id) {
        return Err(broken(RULE, "the task was not found as an orphan"));
    }
    if store.one.renew(&id, held, LONG).await? {
        return Err(broken(RULE, "it was renewed afterwards"));
    }
    match store.other.claim(&id, LONG).await? {
        Some(next) if next > held => Ok(()),
        next => Err(broken(
            RULE,
            format!("{next:?} follows epoch {held} when it is claimed"),
        )),
    }
}

async fn orphans_are_found<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "tasks whose lease has expired are found, and no others";
    let (unleased, held, orphan, mut over) = (task()?, task()?, task()?, task()?);
    over.status = TaskStatus::Completed;
    let others = [&unleased.id, &held.id, &over.id].map(String::clone);
    let id = orphan.id.clone();
    for (task, lease) in [
        (unleased, None),
        (held, Some(LONG)),
        (over, Some(SHORT)),
        (orphan, Some(SHORT)),
    ] {
        let id = task.id.clone();
        store.one.create(task).await?;
        if let Some(lease) = lease {
            store.one.claim(&id, lease).await?;
        }
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = store.other.orphans(usize::MAX).await?;
        if found.iter().any(|id| others.contains(id)) {
            return Err(broken(RULE, "another task was found"));
        }
        if found.contains(&id) {
            break;
        }
        if Instant::now() > deadline {
            return Err(broken(RULE, "the task was not found"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    if !store.other.orphans(0).await?.is_empty() {
        return Err(broken(RULE, "more than the limit were returned"));
    }
    claim_next(&*store.other, RULE, &id).await?;
    match store.one.orphans(usize::MAX).await?.contains(&id) {
        true => Err(broken(
            RULE,
            "a task that was claimed again was still found",
        )),
        false => Ok(()),
    }
}

async fn owners_are_listed<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "the tasks of an owner are listed in order of their IDs, and no others";
    // Owners that no other run of the contract uses.
    let (ann, bob) = (task()?.id, task()?.id);
    let mut own = Vec::new();
    for owner in [Some(&ann), Some(&ann), Some(&ann), Some(&bob), None] {
        let mut task = task()?;
        task.owner = owner.cloned();
        if owner == Some(&ann) {
            own.push(task.id.clone());
        }
        store.one.create(task).await?;
    }
    own.sort_unstable();
    let all = store.other.list(Some(&ann), None, usize::MAX).await?;
    if all != own {
        return Err(broken(RULE, format!("{all:?} are listed of {own:?}")));
    }
    let (Some(first), Some(second)) = (own.first(), own.get(1)) else {
        return Err(broken(RULE, "they were not listed"));
    };
    let after = store.one.list(Some(&ann), Some(first), 1).await?;
    if after != [second.clone()] {
        return Err(broken(RULE, format!("{after:?} comes after the first")));
    }
    let nobodys = store.one.list(None, None, usize::MAX).await?;
    if nobodys.is_empty() || nobodys.iter().any(|id| own.contains(id)) {
        return Err(broken(
            RULE,
            "the tasks without an owner are listed wrongly",
        ));
    }
    match store.one.list(Some(&ann), None, 0).await?.is_empty() {
        true => Ok(()),
        false => Err(broken(RULE, "more than the limit were returned")),
    }
}

async fn expired_is_gone<S: TaskStore>(store: Handles<S>) -> Result<()> {
    const RULE: &str = "an expired task is gone";
    let mut short = task()?;
    short.ttl_ms = 200;
    let id = short.id.clone();
    let owner = task()?.id;
    short.owner = Some(owner.clone());
    store.one.create(short).await?;
    let deadline = Instant::now() + PATIENCE;
    while store.other.load(&id).await?.is_some() {
        if Instant::now() > deadline {
            return Err(broken(RULE, "it still exists"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    let gone = store
        .one
        .replace(&id, 1, TaskRecord::new(id.clone(), "tool"))
        .await?;
    if gone {
        return Err(broken(RULE, "it was replaced afterwards"));
    }
    let listed = store.other.list(Some(&owner), None, usize::MAX).await?;
    match listed.is_empty() {
        true => Ok(()),
        false => Err(broken(RULE, "it is still listed")),
    }
}
