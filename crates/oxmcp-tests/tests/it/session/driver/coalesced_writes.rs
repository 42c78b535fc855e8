//! Coalesced writes: each write is a system call, which costs more than the message in it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{
    Client, Limits, in_memory,
    transport::{Frame, InMemory, Messages, ReadHalf, Transport, WriteHalf},
};
use tokio::sync::oneshot;

use crate::session::*;

const CALLERS: usize = 16;
const CALLS_EACH: usize = 8;

/// A transport that counts its writes.
struct Counted {
    transport: InMemory,
    writes: Arc<AtomicUsize>,
}

struct CountedWrite {
    write: <InMemory as Transport>::Write,
    writes: Arc<AtomicUsize>,
}

impl Transport for Counted {
    type Read = <InMemory as Transport>::Read;
    type Write = CountedWrite;

    async fn connect(&mut self, limits: &Limits) -> oxmcp::Result<(Self::Read, CountedWrite)> {
        let (read, write) = self.transport.connect(limits).await?;
        let writes = Arc::clone(&self.writes);
        Ok((read, CountedWrite { write, writes }))
    }
}

impl WriteHalf for CountedWrite {
    async fn write(&mut self, messages: Messages<'_>) -> oxmcp::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.write.write(messages).await
    }

    async fn close(&mut self) -> oxmcp::Result<()> {
        self.write.close().await
    }
}

/// A server that answers the pending calls of all callers in one write.
async fn answer_in_one_write(mut transport: InMemory) -> oxmcp::Result<()> {
    let (mut read, mut write) = transport.connect(&Limits::default()).await?;
    let mut answers = Vec::new();
    let mut calls = 0;
    while let Some(Frame::Message(message)) = read.read().await? {
        let request: Value = serde_json::from_slice(message).unwrap();
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1.0.0"},
            }),
            Some("tools/call") => {
                calls += 1;
                json!({"content": []})
            }
            _ => continue,
        };
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        answers.extend_from_slice(format!("{answer}\n").as_bytes());
        if calls % CALLERS == 0 {
            write.write(Messages::from_lines(&answers)?).await?;
            answers.clear();
        }
    }
    Ok(())
}

// The only worker of the scheduler runs the driver right after the first of the callers, and all tasks run on that worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn concurrent_calls_are_coalesced_into_few_writes() {
    tokio::spawn(call_often()).await.unwrap();
}

async fn call_often() {
    let (ours, theirs) = in_memory();
    let writes = Arc::new(AtomicUsize::new(0));
    let ours = Counted {
        transport: ours,
        writes: Arc::clone(&writes),
    };
    tokio::spawn(answer_in_one_write(theirs));
    let client = Client::new("test", "1.0.0").revisions([Revision::V2025_11_25]);
    let session = client.connect(ours).await.unwrap();

    let before = writes.load(Ordering::Relaxed);
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move {
                for _ in 0..CALLS_EACH {
                    session.call_tool("any", ()).await.unwrap();
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let writes = writes.load(Ordering::Relaxed) - before;
    assert!(
        writes <= 4 * CALLS_EACH,
        "{writes} writes for {CALLS_EACH} calls of each of {CALLERS} callers"
    );
}

/// A handler that waits for another task.
async fn waits() -> &'static str {
    let (done, is_done) = oneshot::channel();
    tokio::spawn(async { done.send(()) });
    is_done.await.unwrap();
    "done"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn answers_of_waiting_handlers_are_coalesced() {
    tokio::spawn(answer_often()).await.unwrap();
}

async fn answer_often() {
    let (mut peer, writes) = counted_client().await;
    let before = writes.load(Ordering::Relaxed);
    // More messages than the driver handles before it yields, so that it yields in the middle of a batch.
    for batch in 0..CALLS_EACH {
        for caller in 0..CALLERS {
            let call = call(1 + batch * CALLERS + caller, "waits", json!({}));
            peer.send(call).await.unwrap();
        }
        for _ in 0..CALLERS {
            peer.receive().await.unwrap();
        }
    }
    let writes = writes.load(Ordering::Relaxed) - before;
    assert!(
        writes <= 2 * CALLS_EACH,
        "{writes} writes for {CALLS_EACH} batches of {CALLERS} calls"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn consecutive_reports_are_coalesced_into_few_writes() {
    tokio::spawn(report_often()).await.unwrap();
}

async fn report_often() {
    const REPORTS: usize = 1000;
    let (mut peer, writes) = counted_client().await;
    let before = writes.load(Ordering::Relaxed);
    let mut call = call(1, "stream", json!({"n": REPORTS}));
    call["params"]["_meta"] = json!({"progressToken": 1});
    peer.send(call).await.unwrap();
    // The progress reports and the answer.
    for _ in 0..=REPORTS {
        peer.receive().await.unwrap();
    }
    let writes = writes.load(Ordering::Relaxed) - before;
    assert!(writes <= 4, "{writes} writes for {REPORTS} reports");
}

/// A client that has opened a session with a server whose writes are counted.
async fn counted_client() -> (ScriptedPeer, Arc<AtomicUsize>) {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Counted {
        transport,
        writes: Arc::clone(&writes),
    };
    let server = server().tool(Tool::new("waits", "Waits for another task", waits));
    server.connect(counted).await.unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    (peer, writes)
}
