//! One connection to a server, and the requests that it carries.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, Uri,
    header::{HOST, PROXY_AUTHORIZATION},
    uri::{Authority, Scheme},
};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1},
};
use tokio::task::coop::unconstrained;

use crate::http::client::transport::connector::{Relay, Socket};
use crate::http::client::transport::http2::Http2;
use crate::http::client::transport::pool::Pool;
use crate::{Error, Result, json::Logged, session::with_causes};

/// What a server says over TLS to who does not speak it: the type of an alert, and the number of the version's family.
/// See [the record layer](https://www.rfc-editor.org/rfc/rfc8446#section-5.1).
const TLS_ALERT: [u8; 2] = [21, 3];

pub(crate) type Sent = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

/// Where a connection leads to.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    scheme: Scheme,
    authority: Authority,
}

impl Origin {
    pub(crate) fn of(uri: &Uri) -> Result<Self> {
        let parts = (uri.scheme().cloned(), uri.authority().cloned());
        let (Some(scheme), Some(authority)) = parts else {
            return Err(Error::misuse("a request needs a whole URL"));
        };
        Ok(Self { scheme, authority })
    }

    pub(crate) fn is_of(&self, uri: &Uri) -> bool {
        uri.scheme() == Some(&self.scheme) && uri.authority() == Some(&self.authority)
    }

    /// What requests name it by.
    pub(crate) fn host(&self) -> Result<HeaderValue> {
        let usual = usual_port(&self.scheme);
        let port = self.authority.port_u16().filter(|port| *port != usual);
        let host = self.authority.host();
        let host = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        HeaderValue::try_from(host).map_err(|_| Error::misuse("the host of the URL cannot be sent"))
    }
}

/// Where servers are whose URLs name no port.
pub(crate) fn usual_port(scheme: &Scheme) -> u16 {
    if *scheme == Scheme::HTTPS { 443 } else { 80 }
}

/// A connection.
pub(crate) enum Connection {
    Http1(Box<Http1>),
    Http2(Http2),
}

/// One that carries a request at a time. Whoever waits for the answer drives it, so that it needs no task of its own.
pub(crate) struct Http1 {
    origin: Origin,
    host: HeaderValue,
    relay: Option<Relay>,
    /// How long it may lie unused, once the server has said something.
    idle: Option<Duration>,
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once it is closed.
    driver: Option<http1::Connection<Socket, Full<Bytes>>>,
    /// Whether the other side turned out to speak TLS.
    has_tls: bool,
}

impl Connection {
    /// Speaks HTTP to where a URI leads.
    pub(crate) async fn open(mut socket: Socket, uri: &Uri) -> Result<Self> {
        let origin = Origin::of(uri)?;
        if socket.is_http2 {
            return Ok(Self::Http2(Http2::open(socket, origin).await?));
        }
        let relay = socket.relay.take();
        let opened = http1::handshake(socket).await;
        let (sender, driver) = opened.map_err(|error| failed(&error))?;
        Ok(Self::Http1(Box::new(Http1 {
            host: origin.host()?,
            origin,
            relay,
            idle: None,
            sender,
            driver: Some(driver),
            has_tls: false,
        })))
    }

    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::Http1(connection) => &connection.origin,
            Self::Http2(connection) => &connection.origin,
        }
    }

    /// How long it may lie unused.
    pub(crate) fn idle(&self) -> Duration {
        match self {
            Self::Http1(connection) => connection.idle.unwrap_or(Pool::USUAL),
            Self::Http2(_) => Pool::LONGEST,
        }
    }

    /// The same connection for others, where it can be shared.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Http2(shared) => shared.share().map(Self::Http2),
            Self::Http1(_) => None,
        }
    }

    /// Whether a request would be sent now, or have to wait until others are answered.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Http2(connection) => connection.has_room(),
            Self::Http1(_) => true,
        }
    }

    /// Whether the server may say of a request that was sent that it has not served it.
    pub(crate) fn may_refuse(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Takes the room that a request needs, until it is dropped.
    pub(crate) fn occupy(&mut self) {
        if let Self::Http2(connection) = self {
            connection.occupy();
        }
    }

    /// Why a request got no answer, in words.
    pub(crate) async fn why(&mut self, error: &hyper::Error) -> String {
        match self {
            Self::Http1(connection) => connection.why(error),
            Self::Http2(connection) => connection.why(error).await,
        }
    }

    /// Sends a request, and waits for the head of its answer.
    ///
    /// # Errors
    /// With the request in it, where nothing of it was sent.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Sent {
        match self {
            Self::Http1(connection) => connection.send(request).await,
            Self::Http2(connection) => connection.send(request).await,
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Waits until the server closes it.
    pub(crate) async fn ended(&mut self) {
        let Self::Http1(connection) = self else {
            return;
        };
        poll_fn(|cx| {
            connection.drive(cx);
            match connection.driver {
                Some(_) => Poll::Pending,
                None => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Http1 {
    async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Sent {
        self.address(&mut request);
        // The answer comes from the driver below and from nowhere else, so that nobody needs to be woken for it.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let sent = poll_fn(|cx| {
            self.drive(cx);
            answer
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
        })
        .await;
        // Servers say the same each time.
        if self.idle.is_none()
            && let Ok(response) = &sent
        {
            self.idle = Some(idle(response.headers()));
        }
        sent
    }

    fn why(&self, error: &hyper::Error) -> String {
        let text = with_causes(error);
        // Many a server with TLS closes without a word.
        let is_mute = self.idle.is_none() && error.is_incomplete_message();
        if self.has_tls {
            format!("{text}: what answers there speaks TLS: begin its URL with https://")
        } else if is_mute && self.origin.scheme == Scheme::HTTP {
            format!("{text}, and nothing came: if it speaks TLS there, begin its URL with https://")
        } else {
            text
        }
    }

    /// Whether it can carry another request.
    pub(crate) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Goes on with what there is to send and to receive.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(ended) = Pin::new(driver).poll(cx)
        {
            let unread = self.driver.take().map(|it| it.into_parts().read_buf);
            self.has_tls = unread.is_some_and(|it| it.starts_with(&TLS_ALERT));
            if let Err(error) = ended {
                tracing::debug!(error = %Logged(&error), "a connection broke off");
            }
        }
    }

    /// Says in a request where it goes.
    fn address(&self, request: &mut Request<Full<Bytes>>) {
        let headers = request.headers_mut();
        // An entry would make room for one more, which is seldom needed.
        if !headers.contains_key(HOST) {
            headers.insert(HOST, self.host.clone());
        }
        match &self.relay {
            Some(relay) => {
                if let Some(credentials) = &relay.credentials {
                    headers.insert(PROXY_AUTHORIZATION, credentials.clone());
                }
            }
            None => {
                let path = request.uri().path_and_query().cloned();
                *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
            }
        }
    }
}

/// How long a connection may lie unused by what the server says of it: a second less than it waits itself, since what is
/// sent then is on its way for a while.
fn idle(headers: &HeaderMap) -> Duration {
    let said = headers.get("keep-alive").and_then(|it| it.to_str().ok());
    let mut params = said.unwrap_or_default().split(',');
    let waits = params.find_map(|param| {
        let (name, seconds) = param.split_once('=')?;
        let is_timeout = name.trim().eq_ignore_ascii_case("timeout");
        seconds.trim().parse().ok().filter(|_| is_timeout)
    });
    waits.map_or(Pool::USUAL, |seconds: u64| {
        Duration::from_secs(seconds.saturating_sub(1)).min(Pool::LONGEST)
    })
}

pub(crate) fn failed(error: &hyper::Error) -> Error {
    Error::unreachable(with_causes(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_as_the_url_names_it() {
        for (url, host) in [
            ("http://a/x", "a"),
            ("http://a:80/", "a"),
            ("http://a:443/", "a:443"),
            ("https://a:443/", "a"),
            ("https://me@[::1]:8080/", "[::1]:8080"),
        ] {
            let origin = Origin::of(&url.parse().unwrap()).unwrap();
            assert_eq!(origin.host().unwrap(), host, "{url}");
        }
    }
}
