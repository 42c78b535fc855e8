//! Middleware: user code around requests and notifications, both incoming and outgoing.
//!
//! It sees every well-formed request whose sender is known and every notification, even those with unknown methods. It does not
//! see `notifications/cancelled` and `notifications/progress`, which belong to calls in flight, nor messages that are refused
//! before dispatch: malformed messages, a request whose id is in use, a request beyond the limits.
//!
//! A middleware is a function of a [`Request`] and the [`Next`] in the chain, made with [`from_fn()`], or any
//! [`tower::Layer`](tower_layer::Layer) whose service takes a [`Request`] and returns a [`Response`]. It is added with
//! `Server::layer` and `Client::layer` for incoming messages, and with `outgoing_layer` for outgoing ones. The layer that was
//! added first is outermost: it sees a request first and its response last.
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

// The files of this module:
//
// | `request`, `response` | the input and the result of a middleware |
// | `next` | the chain, and its two ends: the handler and the wire |
// | `layer` | layers of tower, and layers made of a function |

mod layer;
pub(crate) mod next;
mod request;
pub(crate) mod response;

pub use layer::{FromFn, FromFnLayer, MiddlewareLayer, from_fn};
pub use response::Response;

pub use crate::session::connection::{Next, Request};
