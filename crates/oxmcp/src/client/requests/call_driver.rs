//! [`CallDriver`], which makes tool calls for the client if the first response may not be the result yet.

use std::{any::TypeId, sync::Arc};

use oxmcp_protocol::{Method, method::CallTool};

use crate::{
    client::{
        requests::call_request::{CallAnswer, CallRequest},
        session::ClientSession,
    },
    error::Result,
    session::task::BoxFuture,
};

/// The functions with which a module above this one makes the calls of tools: it may continue if the server has responded with
/// something other than the result. Features and sessions hold the driver with its type erased, since the modules of requests
/// depend on them.
pub(crate) struct CallDriver {
    /// The result types after which the driver continues.
    pub(crate) result_types: &'static [&'static str],
    /// Makes a call. If the flag says that the call is manual, the input requests of the server are left to the caller.
    pub(crate) call: fn(CallRequest, bool) -> BoxFuture<Result<CallAnswer>>,
}

/// The driver of the calls of a method in a session, if it has one.
pub(crate) fn driver_of<M: Method>(session: &ClientSession) -> Option<Arc<CallDriver>> {
    // The compiler evaluates the comparison. A method that users define reads the results itself.
    if TypeId::of::<M>() != TypeId::of::<CallTool>() {
        return None;
    }
    let driver = session.state().driver.clone()?;
    driver.downcast().ok()
}
