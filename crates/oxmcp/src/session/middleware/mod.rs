//! Middleware: your code around requests and notifications, both incoming and outgoing.
//!
//! It sees every notification and every well-formed request from a known sender, even with unknown methods. It does not see
//! `notifications/cancelled` and `notifications/progress`, which belong to calls in flight, or messages that are rejected
//! before dispatch: malformed messages, duplicate request IDs, and requests beyond the limits.
//!
//! A middleware is a function of a [`Request`] and the [`Next`] in the chain, wrapped by [`from_fn()`], or any
//! [`tower::Layer`](tower_layer::Layer) whose service takes a [`Request`] and returns a [`Response`]. Add it with
//! `Server::layer` and `Client::layer` for incoming messages, and with `outgoing_layer` for outgoing ones. The first layer is
//! outermost: it sees a request first and its response last.
//!
//! ```
//! use std::time::Instant;
//! use oxmcp::{Server, middleware::{self, Next, Request}};
//!
//! let server = Server::new("timed", "1.0.0").layer(middleware::from_fn(
//!     |request: Request, next: Next| async move {
//!         let method = request.method().to_owned();
//!         let start = Instant::now();
//!         let response = next.run(request).await;
//!         eprintln!("{method}: {} after {:?}", if response.is_ok() { "ok" } else { "failed" }, start.elapsed());
//!         response
//!     },
//! ));
//! # let _ = server;
//! ```
//!
//! # Layers of tower
//!
//! A layer's service must be [`Clone`], because requests are concurrent and each runs on a clone of it. tower's `TimeoutLayer`
//! and `ConcurrencyLimitLayer` fit. Its `RateLimitLayer` does not: the service counts the requests itself and cannot be cloned,
//! because each clone would have the whole rate. Share a counter between the calls of a [`from_fn()`] instead.
//!
//! # The end of a request
//!
//! A middleware is notified of the end of every request, even without a response. [`Next::run`] then returns an error that
//! [`is_cancelled`](crate::Error::is_cancelled), and the result of the middleware is dropped. There are three cases:
//!
//! - **Cancellation.** The peer sends `notifications/cancelled`, or over HTTP closes a response that belongs to no session. The
//!   handler may continue for [`Limits::cancel_grace`](crate::Limits::cancel_grace), and is then dropped.
//! - **Timeout.** A peer that has waited long enough cancels the request, so this is the same case. If a call of this side
//!   times out, `Next::run` in the outgoing middleware returns an error that [`is_timeout`](crate::Error::is_timeout).
//! - **End of the session.** Requests that are still running after the drain are answered with an error, and their handlers are
//!   cancelled as above. [`Server::run`](crate::Server::run) and `StreamableHttp::close` wait for the middleware. Outgoing
//!   calls return an error that [`is_closed`](crate::Error::is_closed).
//!
//! The middleware may continue for a second after the handler was dropped, and is then dropped as well. The same applies to
//! outgoing middleware if the future of its call is dropped: the call is cancelled, `Next::run` returns the error, and the
//! middleware continues in the background for at most a second. If the runtime shuts down, or a middleware panics, the layers
//! around it are dropped: put cleanup that must always run into a destructor.
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
//! use oxmcp::{Server, middleware::{self, Next, Request}};
//!
//! static RUNNING: AtomicUsize = AtomicUsize::new(0);
//!
//! let server = Server::new("counted", "1.0.0").layer(middleware::from_fn(
//!     |request: Request, next: Next| async move {
//!         RUNNING.fetch_add(1, Relaxed);
//!         let response = next.run(request).await;
//!         RUNNING.fetch_sub(1, Relaxed);
//!         if response.as_ref().is_err_and(|error| error.is_cancelled()) {
//!             eprintln!("cancelled");
//!         }
//!         response
//!     },
//! ));
//! # let _ = server;
//! ```

mod layer;
pub(crate) mod next;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod stack;

pub use layer::{FromFn, FromFnLayer, MiddlewareLayer, from_fn};
pub use next::Next;
pub use request::Request;
pub use response::Response;
