//! Finishing of responses: charges their bytes to the budget, drops those that a client does not read, and adds CORS headers.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{Response, Version, request::Parts};

use crate::{
    http::server::{
        cors::Cors,
        response::{Refused, ResponseBody},
        validation::Policy,
    },
    limits::Limits,
    session::driver::budget::Budget,
};

/// The finishing of the response to a request.
pub(super) struct Finish {
    cors: Option<Cors>,
    budget: Arc<Budget>,
    stall: Duration,
    is_taken: bool,
}

impl Finish {
    /// # Errors
    /// The response to a preflight, which is not a request to the endpoint.
    pub(super) fn of(
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
            // An HTTP/1 server takes a short body at once, since it answers requests one after another.
            is_taken: parts.version < Version::HTTP_2,
        })
    }

    pub(super) fn response(
        self,
        answer: Result<Response<ResponseBody>, Refused>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let response = answer.unwrap_or_else(|refused| *refused);
        let watched = |body: ResponseBody| body.watched(&self.budget, self.stall, self.is_taken);
        let mut response = response.map(watched);
        if let Some(cors) = self.cors {
            cors.mark(&mut response);
        }
        Ok(response)
    }
}
