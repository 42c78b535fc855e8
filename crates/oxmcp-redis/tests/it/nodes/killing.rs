//! Calls while nodes are killed: each ends in time, with its result or an error, and nothing is done twice.
#![expect(
    clippy::print_stdout,
    reason = "the output contains the seed, to repeat a run"
)]

use std::{
    collections::{BTreeMap, HashMap},
    env, process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use oxmcp::{ClientSession, Error, Revision};
use serde_json::json;
use tokio::{
    sync::{self, watch},
    time::{Instant, sleep, timeout},
};

use super::{
    process::Node,
    proxy::Proxy,
    shop::{Ledger, call, connect, right_answer},
};
use crate::server::{Server, shared};

/// The maximum duration of a call, whatever happens to the node that serves it.
const LIMIT: Duration = Duration::from_secs(15);

/// The minimum number of calls of a run. The two runs make twice as many.
const CALLS: usize = 1000;

/// The maximum duration of a run that does not reach that number: many times what the slowest machine needs.
const PATIENCE: Duration = Duration::from_secs(300);

/// The number of concurrent clients of each revision.
const CLIENTS: usize = 4;

/// Pseudorandom numbers, reproducible by their seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The minimum duration of both runs: `OXMCP_SOAK_SECONDS`, or a minute.
fn duration() -> Duration {
    let seconds = env::var("OXMCP_SOAK_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|it| it.parse().ok()).unwrap_or(60))
}

/// The outcomes of calls.
#[derive(Default)]
struct Outcomes {
    /// Errors and their counts, for the report.
    errors: BTreeMap<String, usize>,
    /// The calls that were answered.
    answered: HashMap<String, Duration>,
    /// The calls whose error says that nothing was done.
    unserved: Vec<String>,
    /// The duration of the slowest call that ended with an error.
    slowest_error: Duration,
    wrong: Vec<String>,
}

/// Runs take turns, since each keeps a small machine busy.
static TURN: sync::Mutex<()> = sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_killed_nodes_answer_each_call_once() {
    if let Some((server, prefix)) = shared("two nodes that are killed") {
        run(server, &prefix, 2, duration() / 2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_killed_nodes_answer_each_call_once() {
    if let Some((server, prefix)) = shared("three nodes that are killed") {
        run(server, &prefix, 3, duration() / 2).await;
    }
}

/// Calls of a session, made alternately at two nodes, one of which is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_of_killed_node_resumes_elsewhere_and_ends() {
    let Some((server, prefix)) = shared("streams of nodes that are killed") else {
        return;
    };
    let mut nodes = [0, 1].map(|_| Node::start(server, &prefix));
    let proxy = Proxy::start(nodes.iter().map(Node::address)).await;
    let ledger = Ledger::open(&server.url(), &prefix).await;
    let session = connect(&proxy.url(), Revision::V2025_11_25).await.unwrap();
    let mut calls = Vec::new();
    for number in 0..4 {
        let (session, id) = (session.clone(), number.to_string());
        let (begun, mut begins) = watch::channel(false);
        calls.push(tokio::spawn(async move {
            let call = session.call_tool("slow", json!({"id": id}));
            let tell = move |_| _ = begun.send(true);
            let answer = call.on_progress(tell).await;
            (id, answer)
        }));
        begins.wait_for(|begun| *begun).await.unwrap();
    }
    nodes[0].kill();
    let (mut answered, mut lost) = (0, 0);
    for call in calls {
        let (id, answer) = timeout(LIMIT, call).await.unwrap().unwrap();
        match answer {
            Ok(answer) => {
                assert_eq!(answer.to_text(), right_answer("slow", &id));
                answered += 1;
            }
            Err(error) => {
                let data = error.data().map_or("", |data| data.get());
                assert_eq!(data, r#"{"reason":"lost"}"#, "{error}");
                lost += 1;
            }
        }
    }
    assert!(answered > 0 && lost > 0, "{answered} {lost}");
    assert_eq!(ledger.entries().await.len(), answered);
}

async fn run(server: &Server, prefix: &str, count: usize, lasts: Duration) {
    let _turn = TURN.lock().await;
    let seed = env::var("OXMCP_SEED").ok().and_then(|it| it.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(process::id()) << 20 | 0x9e37);
    println!("OXMCP_SEED={seed}, {count} nodes, {lasts:?}");
    let nodes: Vec<_> = (0..count).map(|_| Node::start(server, prefix)).collect();
    let proxy = Proxy::start(nodes.iter().map(Node::address)).await;
    let ledger = Ledger::open(&server.url(), prefix).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let killer = {
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || kill(nodes, Chance(seed), &is_over))
    };
    let outcomes = Arc::new(Mutex::new(Outcomes::default()));
    let made = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let ends = begun + lasts;
    let clients = (0..CLIENTS).flat_map(|_| REVISIONS).enumerate();
    let clients = clients.map(|(number, revision)| {
        let chance = Chance(seed ^ (number as u64 + 1) << 32);
        let client = Customer {
            url: proxy.url(),
            number,
            revision,
            outcomes: Arc::clone(&outcomes),
            made: Arc::clone(&made),
        };
        tokio::spawn(client.call_until(ends, chance))
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    let kills = killer.join().unwrap();
    let done: HashMap<_, _> = ledger.entries().await.into_iter().collect();
    let outcomes = outcomes.lock().unwrap();
    let made = made.load(Ordering::Relaxed);
    let slowest = outcomes.answered.values().max();
    println!(
        "{made} calls within {:?}, {} answered (the slowest within {slowest:?}), {kills} kills, errors (the slowest within {:?}): {:#?}",
        begun.elapsed(),
        outcomes.answered.len(),
        outcomes.slowest_error,
        outcomes.errors
    );
    assert!(outcomes.wrong.is_empty(), "{:#?}", outcomes.wrong);
    assert!(made >= CALLS, "{made} calls within {PATIENCE:?}");
    assert!(kills > 0 && outcomes.answered.len() > 20 * kills);
    for call in &outcomes.unserved {
        assert!(!done.contains_key(call), "{call} was said not to be done");
    }
    for (entry, times) in &done {
        assert_eq!(*times, 1, "{entry} was done more than once");
    }
    for call in outcomes.answered.keys() {
        assert!(
            done.contains_key(call),
            "{call} was answered, and never done"
        );
    }
}

/// Kills a node each 1 to 3 seconds, and starts it again before the next one.
fn kill(mut nodes: Vec<Node>, mut chance: Chance, is_over: &AtomicBool) -> usize {
    let mut kills = 0;
    loop {
        let pause = Instant::now() + Duration::from_millis(1000 + chance.below(2000));
        while Instant::now() < pause {
            if is_over.load(Ordering::Relaxed) {
                return kills;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let chosen = usize::try_from(chance.below(nodes.len() as u64)).unwrap();
        nodes[chosen].kill();
        kills += 1;
        thread::sleep(Duration::from_millis(chance.below(500)));
        nodes[chosen].restart();
    }
}

/// The revision that clients speak.
const REVISIONS: [Revision; 3] = [
    Revision::V2026_07_28,
    Revision::V2025_11_25,
    // Streams have no event before the first message, so not all can be resumed.
    Revision::V2025_06_18,
];

const TOOLS: [&str; 3] = ["plain", "streamed", "asked"];

struct Customer {
    url: String,
    number: usize,
    revision: Revision,
    outcomes: Arc<Mutex<Outcomes>>,
    made: Arc<AtomicUsize>,
}

impl Customer {
    async fn call_until(self, ends: Instant, mut chance: Chance) {
        let mut session = None;
        let mut call = 0;
        let has_time = || Instant::now() < ends;
        let has_calls = || self.made.load(Ordering::Relaxed) < CALLS;
        let gives_up = ends + PATIENCE;
        while has_time() || has_calls() && Instant::now() < gives_up {
            call += 1;
            let open = match session.take() {
                Some(open) => open,
                None => {
                    let begun = Instant::now();
                    match connect(&self.url, self.revision).await {
                        Ok(open) => open,
                        Err(error) => {
                            self.note_error("connect", None, &error, begun.elapsed());
                            continue;
                        }
                    }
                }
            };
            let turn = usize::try_from(chance.below(TOOLS.len() as u64)).unwrap();
            let id = format!("{}-{call}", self.number);
            if self.call(&open, TOOLS[turn], &id).await {
                session = Some(open);
            }
            sleep(Duration::from_millis(chance.below(60))).await;
        }
    }

    /// Makes a call. Returns whether the session is still usable.
    async fn call(&self, session: &ClientSession, tool: &str, id: &str) -> bool {
        let begun = Instant::now();
        self.made.fetch_add(1, Ordering::Relaxed);
        let outcome = timeout(2 * LIMIT, call(session, tool, id)).await;
        let took = begun.elapsed();
        let wrong = |what: String| self.outcomes.lock().unwrap().wrong.push(what);
        if took > LIMIT {
            wrong(format!("{tool} {id} has taken {took:?}: {outcome:?}"));
        }
        match outcome {
            Ok(Ok(answer)) if answer == right_answer(tool, id) => {
                let mut outcomes = self.outcomes.lock().unwrap();
                outcomes.answered.insert(format!("{tool} {id}"), took);
            }
            Ok(Ok(answer)) => wrong(format!("{tool} {id} was answered {answer:?}")),
            Ok(Err(error)) => {
                self.note_error(tool, Some(id), &error, took);
                return !error.is_closed();
            }
            Err(_) => return false,
        }
        true
    }

    /// An error says whether the call may have been done: the server's own, that of a gateway, and one of the connection.
    fn note_error(&self, tool: &str, id: Option<&str>, error: &Error, took: Duration) {
        let text = format!("{} {tool}: {error}", self.revision);
        let mut outcomes = self.outcomes.lock().unwrap();
        *outcomes.errors.entry(text).or_default() += 1;
        outcomes.slowest_error = outcomes.slowest_error.max(took);
        let says_what_was_done =
            error.is_protocol() || error.is_network() || error.http_status().is_some();
        if took > LIMIT || !says_what_was_done {
            let wrong = format!("{tool} ended with an error after {took:?}: {error}");
            outcomes.wrong.push(wrong);
        }
        if let Some(id) = id.filter(|_| error.is_unserved()) {
            let entries = [tool, "reserved"].map(|entry| format!("{entry} {id}"));
            outcomes.unserved.extend(entries);
        }
    }
}
