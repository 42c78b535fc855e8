//! `oxmcp replay`: a server that answers as a recorded one did.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use oxmcp::{
    Client, Limits, Result as McpResult, in_memory, stdio,
    transport::{Frame, Messages, ReadHalf, Transport, WriteHalf, boxed},
};
use oxmcp_group::{ProxyServer, Upstream};
use serde_json::{Value, json};
use tokio::{
    select,
    time::{Instant, sleep_until},
};

use super::{
    format,
    recorded::{Exchange, Recorded},
};
use crate::{
    args::Replay,
    commands::bridge,
    failure::{Failure, Result},
    terminal::{Terminal, stopped},
};

/// The most exchanges that are answered at a time. A client that has more requests in flight gets an error.
const MAX_RUNNING: usize = 1024;

pub(crate) async fn run(args: Replay, terminal: &Terminal) -> Result<()> {
    let recorded = Arc::new(Recorded::new(format::read(&args.file)?));
    let count = recorded.exchanges.len();
    let path = args.file.display();
    terminal.note(&format!(
        "replaying {count} requests and notifications of {path}"
    ));
    let is_realtime = args.realtime;
    let Some(address) = args.listen else {
        let (read, write) = stdio().connect(&Limits::default()).await?;
        let replayer = Replayer::new(recorded, write, is_realtime);
        return select! {
            ended = replayer.run(read) => ended.map_err(Failure::from),
            () = stopped() => Ok(()),
        };
    };
    let upstream = Upstream::new(move || {
        let (mut near, far) = in_memory();
        let recorded = Arc::clone(&recorded);
        tokio::spawn(async move {
            // The session of the client ends with the replay.
            if let Ok((read, write)) = near.connect(&Limits::default()).await {
                let _ = Replayer::new(recorded, write, is_realtime).run(read).await;
            }
        });
        boxed(far)
    });
    let client = Client::new("oxmcp replay", env!("CARGO_PKG_VERSION"));
    let gateway = ProxyServer::new(client, upstream).start().await?;
    let outcome = bridge::serve(&gateway, address, &args.http, terminal).await;
    gateway.close().await;
    outcome
}

/// One session with a client.
struct Replayer<W> {
    recorded: Arc<Recorded>,
    write: W,
    used: Vec<bool>,
    running: VecDeque<Running>,
    is_realtime: bool,
}

/// An exchange that is being replayed.
struct Running {
    exchange: usize,
    /// The number of messages that were sent.
    sent: usize,
    begun: Instant,
    /// The ID and the progress token of this client's request.
    id: Option<Value>,
    progress_token: Option<Value>,
    /// The ID of the question that the client has to answer first.
    asked: Option<Value>,
}

impl<W: WriteHalf> Replayer<W> {
    fn new(recorded: Arc<Recorded>, write: W, is_realtime: bool) -> Self {
        Self {
            used: vec![false; recorded.exchanges.len()],
            recorded,
            write,
            running: VecDeque::new(),
            is_realtime,
        }
    }

    async fn run(mut self, mut read: impl ReadHalf) -> McpResult<()> {
        loop {
            let due = self.send_due().await?;
            let message = select! {
                frame = read.read() => match frame? {
                    Some(Frame::Message(message) | Frame::MessageFrom { message, .. }) => message.to_vec(),
                    Some(_) => continue,
                    None => break,
                },
                () = wait(due) => continue,
            };
            match serde_json::from_slice::<Value>(&message) {
                Ok(Value::Array(batch)) => {
                    for message in batch {
                        self.receive(message).await?;
                    }
                }
                Ok(message) => self.receive(message).await?,
                Err(error) => {
                    let error = format!("could not read the message: {error}");
                    self.refuse(Value::Null, -32700, &error).await?;
                }
            }
        }
        self.write.close().await
    }

    async fn receive(&mut self, message: Value) -> McpResult<()> {
        let id = message.get("id").filter(|it| !it.is_null()).cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // The answer to a question.
            if let Some(it) = self.running.iter_mut().find(|it| it.asked == id) {
                it.asked = None;
            }
            return Ok(());
        };
        if method == "notifications/cancelled" {
            let cancelled = message.pointer("/params/requestId").cloned();
            self.running
                .retain(|it| it.id.is_none() || it.id != cancelled);
            return Ok(());
        }
        if let Some(exchange) = self.recorded.find(&message, &self.used) {
            if self.running.len() == MAX_RUNNING {
                return self
                    .refuse(
                        id.unwrap_or_default(),
                        -32603,
                        "too many requests in flight",
                    )
                    .await;
            }
            if let Some(used) = self.used.get_mut(exchange) {
                *used = true;
            }
            self.running.push_back(Running {
                exchange,
                sent: 0,
                begun: Instant::now(),
                id,
                progress_token: message.pointer("/params/_meta/progressToken").cloned(),
                asked: None,
            });
            return Ok(());
        }
        let Some(id) = id else { return Ok(()) };
        let is_known = self.recorded.exchanges.iter().any(|it| it.method == method);
        match method {
            "ping" | "logging/setLevel" => {
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {}}))
                    .await
            }
            _ if is_known => {
                let error =
                    format!("`{method}` with these parameters is not in the transcript; record it");
                self.refuse(id, -32602, &error).await
            }
            _ => {
                let error = format!("`{method}` is not in the transcript; record it");
                self.refuse(id, -32601, &error).await
            }
        }
    }

    /// Sends all messages whose time has come. Returns the time of the next.
    async fn send_due(&mut self) -> McpResult<Option<Instant>> {
        let recorded = Arc::clone(&self.recorded);
        let mut next: Option<Instant> = None;
        let mut unfinished = VecDeque::new();
        while let Some(mut running) = self.running.pop_front() {
            let Some(exchange) = recorded.exchanges.get(running.exchange) else {
                continue;
            };
            while let Some(sent) = exchange.sent.get(running.sent) {
                if running.asked.is_some() {
                    break;
                }
                let due =
                    running.begun + Duration::from_millis(sent.t.saturating_sub(exchange.begun));
                if self.is_realtime && due > Instant::now() {
                    next = Some(next.map_or(due, |it| it.min(due)));
                    break;
                }
                running.sent += 1;
                let mut message = sent.message.clone();
                rename(&mut message, exchange, &running);
                if message.get("method").is_some() {
                    running.asked = message.get("id").filter(|it| !it.is_null()).cloned();
                }
                self.send(&message).await?;
            }
            if running.sent < exchange.sent.len() {
                unfinished.push_back(running);
            }
        }
        self.running = unfinished;
        Ok(next)
    }

    async fn refuse(&mut self, id: Value, code: i64, message: &str) -> McpResult<()> {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
            .await
    }

    async fn send(&mut self, message: &Value) -> McpResult<()> {
        let line = format!("{message}\n");
        self.write
            .write(Messages::from_lines(line.as_bytes())?)
            .await
    }
}

async fn wait(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Replaces the ID and the progress token of the recorded request by those of this client's request.
fn rename(message: &mut Value, exchange: &Exchange, running: &Running) {
    let mut replace = |pointer: &str, from: &Option<Value>, to: &Option<Value>| {
        if let (Some(found), Some(from), Some(to)) = (message.pointer_mut(pointer), from, to)
            && found == from
        {
            *found = to.clone();
        }
    };
    let token = "/params/progressToken";
    replace(token, &exchange.progress_token, &running.progress_token);
    for place in ["params", "result"] {
        let subscription = format!("/{place}/_meta/io.modelcontextprotocol~1subscriptionId");
        replace(&subscription, &exchange.id, &running.id);
    }
    let is_response = message.get("method").is_none();
    if let (true, Some(message), Some(id)) = (is_response, message.as_object_mut(), &running.id) {
        message.insert("id".to_owned(), id.clone());
    }
}
