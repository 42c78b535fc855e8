//! The requests of a group besides tool calls: prompts, resources, completion.

use oxmcp::{
    Error, ResourceWatch, Result,
    protocol::{
        CompleteParams, CompleteResult, CompletionReference, GetPromptResult, ReadResourceResult,
    },
    traits::IntoPromptArguments,
};

use super::{
    call::{expose_contents, expose_uris},
    session::GroupSession,
};

impl GroupSession {
    /// Gets a prompt by its name in the group, as [`ClientSession::get_prompt`](oxmcp::ClientSession::get_prompt) does.
    ///
    /// # Errors
    /// If no server lists the prompt, if its server is not connected, and those of a [`Call`](oxmcp::Call).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn get_prompt<Marker>(
        &self,
        name: impl AsRef<str>,
        arguments: impl IntoPromptArguments<Marker>,
    ) -> Result<GetPromptResult> {
        let shared = self.shared();
        let (server, name) = self.prompt_target(name.as_ref())?;
        let session = shared.session(server).await?;
        let mut result = session.get_prompt(name, arguments).await?;
        for message in &mut result.messages {
            expose_uris(shared, server, &mut message.content);
        }
        Ok(result)
    }

    /// Reads a resource: one that the group lists, one made from a template that it lists, or one that a result refers to.
    ///
    /// # Errors
    /// If it is not known which server has the resource, if the server is not connected, and those of a [`Call`](oxmcp::Call).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn read_resource(&self, uri: impl AsRef<str>) -> Result<ReadResourceResult> {
        let shared = self.shared();
        let (server, uri) = shared.route_uri(uri.as_ref())?;
        let session = shared.session(server).await?;
        let mut result = session.read_resource(uri).await?;
        for contents in &mut result.contents {
            expose_contents(shared, server, contents);
        }
        Ok(result)
    }

    /// Watches a resource, as [`ClientSession::watch_resource`](oxmcp::ClientSession::watch_resource) does. The watch has the URI
    /// of the server, and ends with the server's session.
    ///
    /// # Errors
    /// As for [`read_resource`](Self::read_resource).
    ///
    /// # Cancel safety
    /// As for [`ClientSession::watch_resource`](oxmcp::ClientSession::watch_resource).
    pub async fn watch_resource(&self, uri: impl AsRef<str>) -> Result<ResourceWatch> {
        let (server, uri) = self.shared().route_uri(uri.as_ref())?;
        let session = self.shared().session(server).await?;
        session.watch_resource(uri).await
    }

    /// Requests completions of an argument of a prompt or a resource template, by its name or pattern in the group.
    ///
    /// # Errors
    /// If no server lists the prompt or template, if its server is not connected, and those of a [`Call`](oxmcp::Call).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn complete(&self, mut params: CompleteParams) -> Result<CompleteResult> {
        let server = self.completion_route(&mut params)?;
        let session = self.shared().session(server).await?;
        session.complete(params).await
    }

    /// The server that completes an argument. The prompt or template gets its name there.
    ///
    /// # Errors
    /// If no server lists the prompt or template.
    pub(crate) fn completion_route(&self, params: &mut CompleteParams) -> Result<usize> {
        match &mut params.reference {
            CompletionReference::Prompt(prompt) => {
                let (server, name) = self.prompt_target(&prompt.name)?;
                prompt.name = name;
                Ok(server)
            }
            CompletionReference::Resource(template) => {
                let catalog = self.shared().catalog();
                let target = catalog.uris.template_target(&template.uri);
                let target = target.or_else(|| catalog.uris.target(&template.uri));
                let (server, uri) =
                    target.ok_or_else(|| Error::resource_not_found(&template.uri))?;
                template.uri = uri;
                Ok(server)
            }
            _ => Err(Error::invalid_params(
                "a group completes arguments of prompts and resource templates only",
            )),
        }
    }

    fn prompt_target(&self, name: &str) -> Result<(usize, String)> {
        let catalog = self.shared().catalog();
        let (server, name) = catalog.prompt_names.target(name).ok_or_else(|| {
            let name: String = name.chars().take(200).collect();
            Error::invalid_params(format!("no server of the group has the prompt `{name}`"))
        })?;
        Ok((server, name.to_owned()))
    }
}
