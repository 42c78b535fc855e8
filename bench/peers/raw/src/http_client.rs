//! The client over HTTP, on hyper: a connection for each call in flight, kept alive.

use std::{
    borrow::Cow,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use bench_support::{Call, Era, Options, Report, keep_in_flight};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Uri,
    client::conn::http1::{SendRequest, handshake},
    header::HeaderValue,
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Calls `add` on the server at this URL.
///
/// # Errors
/// Returns the first error of a call.
pub async fn measure(options: &Options, url: &str) -> Result<Report> {
    let client = Arc::new(Client::open(url, options.era).await?);
    keep_in_flight(options, |mut worker| {
        let client = Arc::clone(&client);
        async move {
            while let Some(a) = worker.next() {
                worker.answered(&client.add(a).await?)?;
            }
            Ok(worker)
        }
    })
    .await
}

struct Client {
    uri: Uri,
    host: String,
    era: Era,
    session: Option<HeaderValue>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    result: Outcome<'a>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

impl Client {
    async fn open(url: &str, era: Era) -> Result<Self> {
        let uri: Uri = url.parse()?;
        let host = uri.authority().ok_or("no host")?.to_string();
        let mut client = Self {
            uri,
            host,
            era,
            session: None,
            idle: Mutex::default(),
        };
        if era == Era::Legacy {
            let (_, session) = client.exchange(era.opening().as_bytes(), None).await?;
            client.session = Some(session.ok_or("no session")?);
            client.exchange(era.confirmation().as_bytes(), None).await?;
        }
        Ok(client)
    }

    async fn add(&self, a: u64) -> Result<String> {
        let mut body = Vec::with_capacity(512);
        Call::Add.write(&mut body, a, self.era);
        let (answer, _) = self.exchange(&body, Call::Add.name()).await?;
        let message: Message<'_> = serde_json::from_slice(&answer)?;
        let block = message.result.content.first().ok_or("no content")?;
        Ok(block.text.clone().into_owned())
    }

    async fn exchange(
        &self,
        body: &[u8],
        tool: Option<&'static str>,
    ) -> Result<(Bytes, Option<HeaderValue>)> {
        let mut connection = self.connection().await?;
        let response = connection.send_request(self.request(body, tool)?).await?;
        if !response.status().is_success() {
            return Err(format!("status {}", response.status()).into());
        }
        let session = response.headers().get("mcp-session-id").cloned();
        let answer = response.into_body().collect().await?.to_bytes();
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
        Ok((answer, session))
    }

    fn request(&self, body: &[u8], tool: Option<&'static str>) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::post(self.uri.path())
            .header("host", &self.host)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if self.session.is_some() || self.era == Era::Modern {
            request = request.header("mcp-protocol-version", self.era.revision());
        }
        if let (Era::Modern, Some(tool)) = (self.era, tool) {
            request = request
                .header("mcp-method", "tools/call")
                .header("mcp-name", tool);
        }
        let body = Bytes::copy_from_slice(body.trim_ascii_end());
        Ok(request.body(Full::new(body))?)
    }

    /// An idle connection, or a new one.
    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>> {
        loop {
            let idle = self
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop();
            let Some(mut connection) = idle else {
                break;
            };
            if connection.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let socket = TcpStream::connect(&self.host).await?;
        socket.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(socket)).await?;
        tokio::spawn(driver);
        Ok(connection)
    }
}
