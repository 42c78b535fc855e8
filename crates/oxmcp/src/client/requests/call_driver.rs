//! [`CallDriver`], which makes the calls of tools in the place of the client where their answer may be none yet.

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

/// The way in which a room above this one makes the calls of tools: it may go on where the server has answered with something else
/// than the result. Features and sessions hold it without its type, since requests stand on them.
pub(crate) struct CallDriver {
    /// The types of results that it goes on with.
    pub(crate) result_types: &'static [&'static str],
    /// Makes a call. Where the flag says that the call is manual, what the server asks for before it gives a result is left to the
    /// caller.
    pub(crate) call: fn(CallRequest, bool) -> BoxFuture<Result<CallAnswer>>,
}

/// The driver of the calls of a method in a session, if it has one.
pub(crate) fn driver_of<M: Method>(session: &ClientSession) -> Option<Arc<CallDriver>> {
    // The comparison is made by the compiler. A method of the user's own reads the results itself.
    if TypeId::of::<M>() != TypeId::of::<CallTool>() {
        return None;
    }
    let driver = session.state().driver.clone()?;
    driver.downcast().ok()
}
