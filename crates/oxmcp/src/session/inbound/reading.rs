//! Reading the params, results and answers of the peer: strictly, and leniently if that fails and is tolerated.

#[cfg(feature = "server")]
use oxmcp_protocol::{InputRequest, Revision};
use oxmcp_protocol::{
    Payload,
    lenient::{Leniency, Tolerated},
};
use serde::de::DeserializeOwned;
#[cfg(feature = "server")]
use serde_json::value::RawValue;

use crate::session::connection::Connection;

impl Connection {
    /// Whether a leniency is tolerated. If so, it is logged.
    pub(crate) fn tolerates(&self, leniency: Leniency) -> bool {
        let role = self.role();
        let deviation = Tolerated::new(leniency, "");
        role.tolerance()
            .tolerate(role.peer_name().as_deref(), "", deviation)
    }

    /// Reads params or a result of the peer.
    ///
    /// # Errors
    /// If the text cannot be read, not even leniently.
    pub(crate) fn read<T: Payload + DeserializeOwned>(
        &self,
        method: &str,
        json: &str,
    ) -> serde_json::Result<T> {
        self.read_noting(method, json, |_| ())
    }

    /// [`read`](Self::read), with what was tolerated for `note`.
    ///
    /// # Errors
    /// If the text cannot be read, not even leniently.
    pub(crate) fn read_noting<T: Payload + DeserializeOwned>(
        &self,
        method: &str,
        json: &str,
        note: impl FnOnce(&[Tolerated]),
    ) -> serde_json::Result<T> {
        let role = self.role();
        role.tolerance()
            .read(|| role.peer_name(), method, json, note)
    }

    /// Reads what could not be read strictly, if anything is tolerated: `read` returns the value with what was tolerated.
    pub(crate) fn read_by<T>(
        &self,
        method: &str,
        read: impl FnOnce() -> Option<(T, Vec<Tolerated>)>,
    ) -> Option<T> {
        let role = self.role();
        role.tolerance().read_by(|| role.peer_name(), method, read)
    }

    /// Checks an answer of the peer against its question, and normalizes it. One that does not fit is read leniently, if that is
    /// tolerated.
    ///
    /// # Errors
    /// If the answer does not fit, with a description of the problem.
    #[cfg(feature = "server")]
    pub(crate) fn check_answer(
        &self,
        request: &InputRequest,
        answer: &RawValue,
        revision: Revision,
    ) -> Result<Box<RawValue>, String> {
        request.check_answer(answer, revision).or_else(|problem| {
            let mend = || request.mend_answer(answer, revision);
            let mended = self.read_by(request.method(), mend).ok_or(problem)?;
            request.check_answer(&mended, revision)
        })
    }
}
