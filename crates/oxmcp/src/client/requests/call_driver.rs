//! [`CallDriver`], which makes tool calls for the client if the first response may not be the result yet.

use std::sync::Arc;

use crate::{
    client::requests::call_answer::CallAnswer,
    error::Result,
    session::{connection::Connection, outbound::options::CallOptions, task::BoxFuture},
};

/// The functions with which a module above this one makes the calls of tools: it may continue if the server has responded with
/// something other than the result. They get the connection of the session, because the client's features, on which sessions
/// depend, hold the driver.
pub(crate) struct CallDriver {
    /// The result types after which the driver continues.
    pub(crate) result_types: &'static [&'static str],
    /// Makes a call in the session of a connection.
    pub(crate) call: fn(&Arc<Connection>, DrivenCall) -> BoxFuture<Result<CallAnswer>>,
}

/// A tool call that a driver makes. Its params and options fit the session.
pub(crate) struct DrivenCall {
    /// A JSON object without a `_meta`.
    pub(crate) params: Vec<u8>,
    pub(crate) options: CallOptions,
    /// Whether the input requests of the server are left to the caller.
    pub(crate) is_manual: bool,
}
