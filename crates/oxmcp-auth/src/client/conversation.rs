//! A sequence of requests that leads to one result.

use crate::{
    error::Result,
    exchange::{Request, Response},
    metadata::document::Tolerated,
    time::UnixTime,
};

/// A sequence of requests and responses that leads to one result. The caller gets a request, sends it, passes in the response,
/// and repeats this until there is a result.
///
/// Do not follow redirects. If no response arrives, drop the conversation.
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
    /// The result of the conversation.
    type Output;

    /// Returns the next request.
    ///
    /// # Errors
    ///
    /// If no request can be made.
    fn request(&mut self, now: UnixTime) -> Result<Request>;

    /// Receives the response to the last request. Returns the result, or `None` if another request must be sent.
    ///
    /// # Errors
    ///
    /// If the conversation has failed.
    fn receive(&mut self, response: &Response, now: UnixTime) -> Result<Option<Self::Output>>;

    /// Removes and returns the deviations that were tolerated in the responses so far, for a log.
    fn tolerated(&mut self) -> Vec<Tolerated> {
        Vec::new()
    }
}
