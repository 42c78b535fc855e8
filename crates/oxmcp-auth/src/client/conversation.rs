//! Requests that lead to one result.

use crate::{
    error::Result,
    exchange::{Request, Response},
    time::UnixTime,
};

/// Requests and responses that lead to one result: whoever does the I/O asks for a request, sends it, hands in the response,
/// and does so again until there is a result.
///
/// A request follows no redirects. Where no response comes at all, the conversation is dropped.
///
/// ```
/// use oxmcp_auth::{AuthError, Request, Response, UnixTime, client::Conversation};
///
/// fn run<C: Conversation>(
///     mut conversation: C,
///     now: UnixTime,
///     send: impl Fn(Request) -> Response,
/// ) -> Result<C::Output, AuthError> {
///     loop {
///         let response = send(conversation.request(now)?);
///         if let Some(result) = conversation.receive(&response, now)? {
///             return Ok(result);
///         }
///     }
/// }
/// ```
pub trait Conversation {
    /// What it leads to.
    type Output;

    /// The next request.
    ///
    /// # Errors
    ///
    /// If none can be made.
    fn request(&mut self, now: UnixTime) -> Result<Request>;

    /// Takes the response to the last request. Without a result, another request is to be sent.
    ///
    /// # Errors
    ///
    /// If the conversation has failed.
    fn receive(&mut self, response: &Response, now: UnixTime) -> Result<Option<Self::Output>>;
}
