//! Transports: streams of JSON-RPC messages between two peers, and nothing more.
//!
//! A [`Transport`] connects and gives two halves, one that reads messages and one that writes them. Calls,
//! cancellation, timeouts and sessions are made of messages by the layer above; a transport knows nothing of them.
//!
//! | transport | for |
//! |---|---|
//! | [`stdio()`] | a server that a client starts: its own standard input and output |
//! | [`Command`] | a client that starts its server as a process, with the feature `client` |
//! | [`in_memory`] | tests, and peers that live in one process |
//! | [`io()`], [`stream`] | any byte stream: Unix sockets, TCP |
//! | `http::Endpoint` | a URL, with the feature `http-client` |
//! | [`Logging`] | any other transport, with one log line for each message |
//! | [`boxed()`] | any other transport, chosen while the program runs |
//!
//! You can write your own: see [`Transport`], and the specification's page on
//! [custom transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-transports).

// The files of this module:
//
// | `traits` | [`Transport`], its halves, and the frames that they carry |
// | `stdio`, `command` | the two ends of stdio: the streams of this process; a process that is started |
// | `io`, `memory` | byte streams, pairs in memory |
// | `logging`, `boxed` | a log around another transport; any transport as one type |
// | `principal` | [`Principal`]: the caller of a message, if a transport knows it |
// | `mirror` | headers that repeat parts of messages, for transports that have headers |

mod boxed;
#[cfg(feature = "client")]
mod command;
pub(crate) mod io;
mod logging;
mod memory;
#[cfg_attr(
    not(feature = "client"),
    expect(dead_code, reason = "clients alone learn what is to be mirrored")
)]
pub(crate) mod mirror;
pub(crate) mod principal;
mod stdio;
pub(crate) mod traits;

pub use boxed::{BoxReadHalf, BoxTransport, BoxWriteHalf, boxed};
#[cfg(feature = "client")]
pub use command::{Command, CommandReader, CommandWriter, Stderr};
pub use io::{Io, LineReader, LineWriter, io, stream};
pub use logging::{Logging, LoggingReader, LoggingWriter};
pub use memory::{InMemory, in_memory};
pub use mirror::Mirror;
pub use principal::Principal;
pub use stdio::{Stdio, StdioReader, StdioWriter, stdio};
pub use traits::{
    CurrentLogin, Frame, Messages, MessagesIter, PersonWait, PersonWaits, ReadHalf, Startup,
    Transport, WriteHalf,
};
