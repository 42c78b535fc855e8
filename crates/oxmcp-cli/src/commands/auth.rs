//! `oxmcp login`, `logout` and `auth list`: the stored logins.

use oxmcp::{Client, http::Endpoint};
use serde_json::json;

use crate::{
    failure::{Failure, Reason, Result},
    output, target,
    terminal::Terminal,
};

pub(crate) async fn login(url: &str, terminal: &Terminal) -> Result<()> {
    if !terminal.has_person() {
        return Err(Failure::new(
            Reason::PersonNeeded,
            "could not log in: this needs a terminal and a browser; run it in a terminal",
        ));
    }
    let endpoint = Endpoint::new(url).login(target::login(true)?);
    let session = Client::new("oxmcp", env!("CARGO_PKG_VERSION"))
        .connect(endpoint)
        .await?;
    // A server may let anybody connect and ask for a login later.
    session.tools().or_none().all().await?;
    crate::session::close(&session).await;
    terminal.note("logged in");
    Ok(())
}

pub(crate) async fn logout(url: &str, terminal: &Terminal) -> Result<()> {
    target::login(false)?.logout(url).await?;
    terminal.note("logged out");
    Ok(())
}

pub(crate) async fn list(as_json: bool) -> Result<()> {
    let stored = target::login(false)?.credentials().await?;
    if as_json {
        let all = stored.iter().map(|it| {
            json!({
                "resource": it.resource,
                "issuer": it.issuer,
                "scopes": it.scopes.to_string(),
                "refreshable": it.is_refreshable,
            })
        });
        return output::json(&all.collect::<Vec<_>>());
    }
    for it in &stored {
        output::text(&format!(
            "{} (issuer {}): {}",
            it.resource, it.issuer, it.scopes
        ))?;
    }
    Ok(())
}
