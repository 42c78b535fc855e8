//! The methods of a server that add and reload skills.

use std::{future::Future, sync::Arc};

use oxmcp::{Error, Result, Server};
use tokio::task::spawn_blocking;

use super::{
    extension::{extension, template},
    registry::Registry,
    skills::Skills,
};
use crate::ID;

/// Methods of [`Server`] that add skills.
pub trait ServerExt: Sized {
    /// Adds skills: reads their files, serves them as resources, and declares the [extension](crate::ID) with its methods. It may
    /// be called several times. Each `SKILL.md` is also in the listing of resources.
    #[must_use]
    fn skills(self, skills: Skills) -> Self;

    /// Reads the sources of all skills again, and serves the result. Clients that listen for changes are notified that
    /// the resources have changed, and so are subscribers to the changed files.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use oxmcp::Server;
    /// use oxmcp_skills::{ServerExt, Skills};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// let text = |hint| format!("---\nname: refunds\ndescription: Refund an order\n---\n\n{hint}\n");
    /// let stored = Arc::new(Mutex::new(text("Ask for the number.")));
    ///
    /// let read = Arc::clone(&stored);
    /// let skills = Skills::from_fn(move || {
    ///     let text = read.lock().expect("not poisoned").clone();
    ///     Ok::<_, std::io::Error>([("refunds/SKILL.md", text)])
    /// });
    /// let server = Server::new("shop", "1.0.0").skills(skills);
    ///
    /// *stored.lock().expect("not poisoned") = text("Ask for the name.");
    /// server.reload_skills().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first mistake in the files, or if no skills were added to the server. The skills then stay unchanged.
    ///
    /// # Cancel safety
    /// The reload continues in the background if the future is dropped.
    fn reload_skills(&self) -> impl Future<Output = Result<()>> + Send;
}

impl ServerExt for Server {
    fn skills(self, skills: Skills) -> Self {
        let (server, registry) = match self.extension_state::<Registry>(ID) {
            Some(registry) => (self, registry),
            None => {
                let registry = Arc::new(Registry::default());
                let server = self.extension(extension(&registry));
                (server.resource_template(template(&registry)), registry)
            }
        };
        registry.add(server, &skills)
    }

    fn reload_skills(&self) -> impl Future<Output = Result<()>> + Send {
        let registry = self.extension_state::<Registry>(ID);
        let server = self.clone();
        async move {
            let registry = registry.ok_or_else(|| {
                Error::misuse("the server has no skills; add some with `Server::skills`")
            })?;
            let reloading = spawn_blocking(move || registry.reload(&server));
            reloading.await.map_err(|error| {
                Error::internal("could not reload the skills: their source panicked")
                    .with_source(error)
            })?
        }
    }
}
