//! A proxy that cuts connections.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// A proxy between a client and its server. When it is dropped, all its connections end.
pub(crate) struct Proxy {
    pub(crate) url: String,
    /// The number of bytes that still pass from the server, over all connections. The connection with the last of these
    /// bytes is cut, and from then on all bytes pass.
    budget: Arc<AtomicUsize>,
    /// How many streams of events have begun.
    streams: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn new(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let budget = Arc::new(AtomicUsize::new(usize::MAX));
        let streams = Arc::new(AtomicUsize::new(0));
        let shared = (Arc::clone(&budget), Arc::clone(&streams));
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (budget, streams) = shared.clone();
                connections.spawn(async move { pass(client, server, &budget, &streams).await });
            }
        });
        Self {
            url,
            budget,
            streams,
            task,
        }
    }

    /// Cuts a connection after this many more bytes.
    pub(crate) fn cut_after(&self, bytes: usize) {
        self.budget.store(bytes, Ordering::SeqCst);
    }

    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::SeqCst)
    }

    pub(crate) fn has_cut(&self) -> bool {
        self.budget.load(Ordering::SeqCst) == usize::MAX
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(
    mut client: TcpStream,
    server: SocketAddr,
    budget: &AtomicUsize,
    streams: &AtomicUsize,
) {
    let Ok(mut server) = TcpStream::connect(server).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let there = tokio::io::copy(&mut from_client, &mut to_server);
    let back = async {
        let mut bytes = [0; 4096];
        loop {
            let read = match from_server.read(&mut bytes).await {
                Ok(0) | Err(_) => return,
                Ok(read) => read,
            };
            let form = b"text/event-stream";
            if bytes[..read].windows(form.len()).any(|it| it == form) {
                streams.fetch_add(1, Ordering::SeqCst);
            }
            let left = budget.load(Ordering::SeqCst);
            if left != usize::MAX && left <= read {
                let _ = to_client.write_all(&bytes[..left]).await;
                budget.store(usize::MAX, Ordering::SeqCst);
                return;
            }
            if left != usize::MAX {
                budget.fetch_sub(read, Ordering::SeqCst);
            }
            if to_client.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = there => {}
        () = back => {}
    }
}
