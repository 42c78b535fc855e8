//! The listener that a browser is redirected to: on loopback, for one login.

use std::time::Duration;

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    select,
    time::timeout,
};

use crate::error::{Error, Result};

/// The path of the redirect URI.
const PATH: &str = "/callback";
/// The maximum length of a request that is read, in bytes, and the time for it.
const MAX_HEAD: usize = 32 * 1024;
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of open connections; others wait to be accepted.
const MAX_CONNECTIONS: usize = 32;

/// A listener on 127.0.0.1.
pub(crate) struct Loopback {
    listener: TcpListener,
    redirect_uri: String,
}

impl Loopback {
    /// Listens at a port, or at any free one.
    ///
    /// # Errors
    /// If the port is in use.
    pub(crate) async fn bind(port: Option<u16>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
        let listener = listener.map_err(|error| {
            let at = port.map(|port| format!(" at port {port}"));
            Error::misuse(format!(
                "could not listen for the redirect on 127.0.0.1{}: {error}",
                at.unwrap_or_default()
            ))
        })?;
        let port = listener.local_addr()?.port();
        Ok(Self {
            listener,
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the answer with this `state`: other programs on this machine may connect, too, and a browser opens connections on
    /// which it sends nothing.
    ///
    /// # Errors
    /// If connections can no longer be accepted.
    pub(crate) async fn answer(self, state: &str) -> Result<String> {
        let mut open = FuturesUnordered::new();
        loop {
            select! {
                accepted = self.listener.accept(), if open.len() < MAX_CONNECTIONS => {
                    let (socket, _) = accepted?;
                    open.push(serve(socket, state));
                }
                Some(served) = open.next() => if let Some(answer) = served {
                    return Ok(answer);
                },
            }
        }
    }
}

/// Serves one request. Returns its target, if it is the answer with this `state`.
async fn serve(socket: TcpStream, state: &str) -> Option<String> {
    let read = timeout(HEAD_TIMEOUT, read_target(socket)).await;
    let (mut socket, target) = read.ok()?.ok()?;
    let query = target
        .strip_prefix(PATH)
        .and_then(|it| it.strip_prefix('?'));
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let is_ours = pairs.any(|(name, value)| name == "state" && value == state);
    let (status, text) = if is_ours {
        (
            "200 OK",
            "You can close this window and go back to the program.",
        )
    } else {
        ("404 Not Found", "There is nothing here.")
    };
    // The response is short enough for the socket to take it at once.
    let _ = respond(&mut socket, status, text).await;
    is_ours.then_some(target)
}

/// The target of a GET request, with the socket for the response.
async fn read_target(mut socket: TcpStream) -> Result<(TcpStream, String)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || socket.read_buf(&mut head).await? == 0 {
            return Err(Error::limit("the request is too long or incomplete"));
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    match (words.next(), words.next()) {
        (Some("GET"), Some(target)) => Ok((socket, target.to_owned())),
        _ => Err(Error::misuse("only GET is supported")),
    }
}

async fn respond(socket: &mut TcpStream, status: &str, text: &str) -> Result<()> {
    let page = format!("<!doctype html><meta charset=utf-8><title>Login</title><p>{text}");
    let length = page.len();
    // The page is fixed, and contains nothing of the request. The URL with the code is not sent to other sites.
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{page}"
    );
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};

    use tokio::{task::yield_now, time::Instant};

    use super::*;

    async fn ask(uri: &str, request: &str) -> String {
        let authority = uri.strip_prefix("http://").unwrap();
        let address = authority.split('/').next().unwrap();
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer).await;
        answer
    }

    #[tokio::test]
    async fn listener_accepts_only_its_own_response() {
        let loopback = Loopback::bind(None).await.unwrap();
        let uri = loopback.redirect_uri().to_owned();
        assert!(uri.starts_with("http://127.0.0.1:") && uri.ends_with("/callback"));
        let answer = tokio::spawn(loopback.answer("right"));
        for other in [
            "GET /callback?code=x&state=wrong HTTP/1.1\r\n\r\n",
            "GET /callback?code=x HTTP/1.1\r\n\r\n",
            "GET /other?state=right HTTP/1.1\r\n\r\n",
            "POST /callback?state=right HTTP/1.1\r\n\r\n",
            "GET /favicon.ico HTTP/1.1\r\n\r\n",
        ] {
            let said = ask(&uri, other).await;
            assert!(!said.starts_with("HTTP/1.1 200"), "{other}: {said}");
        }
        let right = "GET /callback?code=%3Cscript%3E&state=right HTTP/1.1\r\nHost: x\r\n\r\n";
        let said = ask(&uri, right).await;
        assert!(
            said.starts_with("HTTP/1.1 200") && !said.contains("script>"),
            "{said}"
        );
        assert_eq!(
            answer.await.unwrap().unwrap(),
            "/callback?code=%3Cscript%3E&state=right"
        );
    }

    /// Lets all tasks run that can.
    async fn settle() {
        for _ in 0..1000 {
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn excess_connections_wait_for_free_slots() {
        let loopback = Loopback::bind(None).await.unwrap();
        let address = loopback.listener.local_addr().unwrap();
        let mut idle = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut last = TcpStream::connect(address).await.unwrap();
        let right = b"GET /callback?state=right HTTP/1.1\r\n\r\n";
        last.write_all(right).await.unwrap();
        let answer = tokio::spawn(loopback.answer("right"));
        settle().await;
        assert!(!answer.is_finished(), "the last one was not accepted");
        idle.pop();
        let target = answer.await.unwrap().unwrap();
        assert_eq!(target, "/callback?state=right");
    }

    #[tokio::test]
    async fn oversized_head_is_not_fully_read() {
        let loopback = Loopback::bind(None).await.unwrap();
        let address = loopback.listener.local_addr().unwrap();
        let answer = tokio::spawn(loopback.answer("right"));
        let pad = "x".repeat(MAX_HEAD * 4);
        let long = format!("GET /callback?state=right&pad={pad} HTTP/1.1\r\n\r\n");
        let mut socket = TcpStream::connect(address).await.unwrap();
        // The socket may be closed before everything is written.
        let _ = socket.write_all(long.as_bytes()).await;
        let mut said = String::new();
        let _ = socket.read_to_string(&mut said).await;
        assert_eq!(said, "");
        assert!(!answer.is_finished());
        answer.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn silent_connection_is_closed() {
        let loopback = Loopback::bind(None).await.unwrap();
        let address = loopback.listener.local_addr().unwrap();
        let answer = tokio::spawn(loopback.answer("right"));
        let begun = Instant::now();
        let mut idle = TcpStream::connect(address).await.unwrap();
        let said = idle.read(&mut [0]).await;
        assert_eq!(said.unwrap(), 0);
        let took = begun.elapsed();
        assert!((HEAD_TIMEOUT..HEAD_TIMEOUT * 2).contains(&took), "{took:?}");
        answer.abort();
    }

    #[tokio::test]
    async fn silent_connections_do_not_delay_the_answer() {
        let loopback = Loopback::bind(None).await.unwrap();
        let uri = loopback.redirect_uri().to_owned();
        let authority = uri.strip_prefix("http://").unwrap();
        let address = authority.split('/').next().unwrap();
        let idle = TcpStream::connect(address).await.unwrap();
        let answer = tokio::spawn(loopback.answer("right"));
        let said = ask(&uri, "GET /favicon.ico HTTP/1.1\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.1 404"), "{said}");
        let still = idle.into_std().unwrap().read(&mut [0]);
        let still = still.map_err(|error| error.kind());
        assert_eq!(still, Err(ErrorKind::WouldBlock), "its end was waited for");
        let said = ask(&uri, "GET /callback?state=right HTTP/1.1\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        assert!(answer.await.unwrap().is_ok());
    }
}
