//! Asking how arguments may be completed.

use crate::{
    client::{Call, ClientSession},
    protocol::{CompleteParams, CompletionReference, method},
};

impl ClientSession {
    /// Asks how an argument may be completed. [`complete_prompt`](Self::complete_prompt) and
    /// [`complete_resource`](Self::complete_resource) are shorter, where nothing else is settled yet.
    /// See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
    ///
    /// ```
    /// use oxmcp::protocol::{CompleteParams, CompletionReference};
    ///
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let deploy = CompletionReference::prompt("deploy");
    /// let params = CompleteParams::new(deploy, "version", "1.").settled("service", "shop");
    /// let versions = session.complete(params).await?.completion.values;
    /// # let _ = versions;
    /// # Ok(())
    /// # }
    /// ```
    pub fn complete(&self, params: CompleteParams) -> Call<method::Complete> {
        self.request(params)
    }

    /// Asks how an argument of a prompt may be completed, of which `value` was typed.
    pub fn complete_prompt(
        &self,
        name: impl Into<String>,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Call<method::Complete> {
        let reference = CompletionReference::prompt(name);
        self.complete(CompleteParams::new(reference, argument, value))
    }

    /// Asks how a variable of a resource template may be completed, of which `value` was typed.
    pub fn complete_resource(
        &self,
        uri_template: impl Into<String>,
        variable: impl Into<String>,
        value: impl Into<String>,
    ) -> Call<method::Complete> {
        let reference = CompletionReference::resource(uri_template);
        self.complete(CompleteParams::new(reference, variable, value))
    }
}
