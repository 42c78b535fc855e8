//! Load and failure: many clients, and clients, servers and networks that fail. Nothing hangs, nothing is lost, nothing is
//! left behind.

mod cut_connections;
mod cutting_proxy;
#[cfg(target_os = "linux")]
mod held_memory;
mod server_restarts;
mod slow_readers;
mod thousand_clients;
mod vanished_clients;

use std::{future::Future, time::Duration};

use oxmcp::{Server, http::StreamableHttp};
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};

/// A time limit beyond all expected waits, so that a missing event does not hang a test.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// The state before a test, to which the server and its endpoint must return.
struct Start {
    server: Server,
    endpoint: StreamableHttp,
    /// The counters in the `Debug` output of the endpoint.
    counters: String,
    tasks: usize,
}

impl Start {
    /// Records the state before anything is served.
    fn of(server: &Server) -> Self {
        let endpoint = StreamableHttp::from(server.clone());
        Self {
            server: server.clone(),
            counters: counters(&endpoint),
            endpoint,
            tasks: Handle::current().metrics().num_alive_tasks(),
        }
    }

    /// Waits until all that was begun since then has ended.
    async fn is_reached(&self) {
        until(|| self.is_now(0)).await;
    }

    fn is_now(&self, more_tasks: usize) -> Result<(), String> {
        let tasks = Handle::current().metrics().num_alive_tasks();
        let sessions = self.server.sessions().count();
        let counters = counters(&self.endpoint);
        if sessions == 0 && counters == self.counters && tasks <= self.tasks + more_tasks {
            return Ok(());
        }
        let was = self.tasks;
        Err(format!(
            "{sessions} sessions, {tasks} tasks where {was} were, {counters}"
        ))
    }
}

/// The counters of an endpoint, regardless of whether it is closing.
fn counters(endpoint: &StreamableHttp) -> String {
    let shown = format!("{endpoint:?}");
    let (counters, _) = shown.split_once(", closing").unwrap();
    counters.to_owned()
}

/// Waits until `what` succeeds.
async fn until(what: impl Fn() -> Result<(), String>) {
    let waiting = async {
        while what().is_err() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    if timeout(TIME_LIMIT, waiting).await.is_err() {
        panic!("it does not come to that: {:?}", what());
    }
}

/// Waits for `work`, which must end in time.
async fn ends<T>(work: impl Future<Output = T>) -> T {
    let work = Box::pin(work);
    timeout(TIME_LIMIT, work).await.expect("it hangs")
}
