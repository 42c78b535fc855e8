//! The last step of every response: charges its bytes to the budget, drops it if the client stops reading, adds CORS headers, and
//! ends the connection while the endpoint closes.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{HeaderValue, Response, Version, header, request::Parts};

use crate::{
    http::server::{
        response::{Refused, ResponseBody},
        validation::{Cors, Policy},
    },
    limits::Limits,
    session::driver::budget::Budget,
};

/// Finishes the response to a request.
pub(crate) struct ResponseFinisher {
    cors: Option<Cors>,
    budget: Arc<Budget>,
    stall: Duration,
    is_http1: bool,
}

impl ResponseFinisher {
    /// # Errors
    /// The response to a CORS preflight, which the endpoint itself does not see.
    pub(crate) fn of(
        parts: &Parts,
        policy: &Policy,
        limits: &Limits,
        budget: &Arc<Budget>,
    ) -> Result<Self, Refused> {
        let cors = Cors::of(policy, parts);
        if let Some(response) = cors.as_ref().and_then(|cors| cors.preflight(parts)) {
            return Err(Box::new(response));
        }
        Ok(Self {
            cors,
            budget: Arc::clone(budget),
            stall: limits.http.stall,
            is_http1: parts.version < Version::HTTP_2,
        })
    }

    /// The finished response. While the endpoint `is_closing`, it is the last of its connection, so the client's next request goes
    /// to another node, or to this one after a restart.
    pub(crate) fn response(
        self,
        answer: Result<Response<ResponseBody>, Refused>,
        is_closing: bool,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let response = answer.unwrap_or_else(|refused| *refused);
        // An HTTP/1 server accepts a short body immediately, because it answers requests one after another.
        let watched = |body: ResponseBody| body.watched(&self.budget, self.stall, self.is_http1);
        let mut response = response.map(watched);
        if is_closing && self.is_http1 {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        if let Some(cors) = self.cors {
            cors.mark(&mut response);
        }
        Ok(response)
    }
}
