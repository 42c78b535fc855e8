//! Selection of the scopes to request, and bounds on requests for more.

use std::collections::HashMap;

use super::discovery::Discovered;
use crate::{
    challenge::Challenge,
    error::{AuthError, Result},
    scope::ScopeSet,
};

/// The most authorizations for additional scopes on behalf of one operation.
const MAX_STEP_UPS: u32 = 2;
/// The most operations that are remembered.
const MAX_OPERATIONS: usize = 256;

/// The strategy that selects the scopes to request.
///
/// See [Scope Selection Strategy](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-selection-strategy).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ScopeSelection {
    /// The scopes to request instead of those that the server names.
    pub fixed: Option<ScopeSet>,
    /// Whether `offline_access` is not requested, even if the authorization server offers it.
    pub without_offline_access: bool,
}

impl ScopeSelection {
    /// Returns the scopes to request: those that were requested before, those of the challenge or, if it has none, all that the
    /// MCP server's metadata names, and `offline_access` if the authorization server offers it.
    #[must_use]
    pub fn select(
        &self,
        challenge: Option<&Challenge>,
        discovered: &Discovered,
        before: &ScopeSet,
    ) -> ScopeSet {
        let challenged = challenge.and_then(Challenge::scope);
        if let Some(fixed) = &self.fixed {
            // The scopes that a request needs beyond the fixed ones are still requested: otherwise it could never be served.
            return match challenged.filter(|_| !before.is_empty()) {
                Some(more) => bounded(&fixed.union(before).union(&more)),
                None => fixed.clone(),
            };
        }
        let own = challenged.filter(|it| !it.is_empty()).or_else(|| {
            let metadata = discovered.resource_metadata.as_ref()?;
            let supported = metadata.scopes_supported.as_ref()?;
            Some(supported.iter().collect())
        });
        let mut scopes = before.union(&own.unwrap_or_default());
        let offered = discovered.server.scopes_supported.iter().flatten();
        if !self.without_offline_access && offered.into_iter().any(|it| it == "offline_access") {
            scopes.insert("offline_access");
        }
        bounded(&scopes)
    }

    /// Returns the scopes with which to register a client that requests the scopes `asked`.
    ///
    /// They are these, and all others that the MCP server's metadata names, as far as the authorization server supports them.
    /// Some servers never grant a scope with which a client did not register.
    #[must_use]
    pub fn to_register(&self, asked: &ScopeSet, discovered: &Discovered) -> ScopeSet {
        if self.fixed.is_some() {
            return asked.clone();
        }
        let metadata = discovered.resource_metadata.as_ref();
        let supported = metadata.and_then(|it| it.scopes_supported.as_ref());
        let known = discovered.server.scopes_supported.as_ref();
        let is_known = |scope: &&String| known.is_none_or(|it| it.contains(scope));
        let later: ScopeSet = supported.into_iter().flatten().filter(is_known).collect();
        bounded(&asked.union(&later))
    }
}

/// The scopes, up to the number that is kept of one peer, which may name others each time.
fn bounded(scopes: &ScopeSet) -> ScopeSet {
    scopes.iter().collect()
}

/// A counter of the authorizations that were made because requests lacked scopes. It stops a server that demands more scopes
/// each time from causing endless authorizations.
///
/// ```
/// use oxmcp_auth::{ScopeSet, client::StepUps};
///
/// let mut step_ups = StepUps::default();
/// let requested = ScopeSet::parse("mcp:read");
/// let scopes = step_ups.step_up("tools/call", &requested, &ScopeSet::parse("mcp:write"))?;
/// step_ups.stepped_up("tools/call");
/// assert_eq!(scopes.to_string(), "mcp:read mcp:write");
/// // The scope was granted, and the request was refused again.
/// assert!(step_ups.step_up("tools/call", &scopes, &ScopeSet::parse("mcp:write")).is_err());
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
///
/// See [Step-Up Authorization Flow](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#step-up-authorization-flow).
#[derive(Debug, Default)]
pub struct StepUps {
    attempts: HashMap<String, u32>,
}

impl StepUps {
    /// Returns the scopes to request after an operation was refused: those that were requested before, and those that the
    /// operation needs.
    ///
    /// # Errors
    ///
    /// If all needed scopes were requested already, or there were too many authorizations for the operation.
    pub fn step_up(
        &self,
        operation: &str,
        requested: &ScopeSet,
        needed: &ScopeSet,
    ) -> Result<ScopeSet> {
        if requested.includes(needed) {
            return Err(AuthError::refused(
                format!(
                    "{operation:?} was refused although the scopes {:?} were requested: they were not granted, or the user is \
                     not allowed to do this",
                    needed.to_string()
                ),
                Some("insufficient_scope"),
            ));
        }
        if self
            .attempts
            .get(operation)
            .is_some_and(|it| *it >= MAX_STEP_UPS)
        {
            return Err(AuthError::refused(
                format!(
                    "{operation:?} still lacks the scopes {:?} after {MAX_STEP_UPS} authorizations: the server asks for more \
                     each time",
                    needed.to_string()
                ),
                Some("insufficient_scope"),
            ));
        }
        Ok(bounded(&requested.union(needed)))
    }

    /// Counts an authorization that was made for an operation. Do not count one that failed.
    pub fn stepped_up(&mut self, operation: &str) {
        if self.attempts.len() >= MAX_OPERATIONS && !self.attempts.contains_key(operation) {
            self.attempts.clear();
        }
        *self.attempts.entry(operation.to_owned()).or_default() += 1;
    }

    /// Resets the count of an operation that was served.
    pub fn served(&mut self, operation: &str) {
        self.attempts.remove(operation);
    }
}
