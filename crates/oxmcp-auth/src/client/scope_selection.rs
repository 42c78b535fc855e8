//! Selection of the scopes to ask for, and bounds on asking for more.

use std::collections::HashMap;

use super::discovery::Discovered;
use crate::{
    challenge::Challenge,
    error::{AuthError, Result},
    scope::ScopeSet,
};

/// Times that more scopes are asked for on behalf of one operation.
const MAX_STEP_UPS: u32 = 2;
/// Operations that are remembered.
const MAX_OPERATIONS: usize = 256;

/// Which scopes to ask for.
///
/// See [Scope Selection Strategy](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-selection-strategy).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ScopeSelection {
    /// Scopes that are asked for instead of what the server says.
    pub fixed: Option<ScopeSet>,
    /// Whether `offline_access` is not asked for, although the authorization server offers it.
    pub without_offline_access: bool,
}

impl ScopeSelection {
    /// The scopes to ask for: those that were asked for before, joined by those of the challenge; without a challenge's, all
    /// that the MCP server's metadata names; and `offline_access`, if the authorization server has it.
    #[must_use]
    pub fn select(
        &self,
        challenge: Option<&Challenge>,
        discovered: &Discovered,
        before: &ScopeSet,
    ) -> ScopeSet {
        let challenged = challenge.and_then(Challenge::scope);
        if let Some(fixed) = &self.fixed {
            // What a request needs beyond them is still asked for: else it could never be served.
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

    /// The scopes to register a client with, where it asks for these: and for all others that the MCP server's metadata name, as far
    /// as the authorization server knows them. What a client has not registered with, it may be refused for ever.
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

/// As many scopes as are kept of one peer: it may name others each time.
fn bounded(scopes: &ScopeSet) -> ScopeSet {
    scopes.iter().collect()
}

/// What was asked for because requests lacked scopes, so that a server that is never content is not asked for ever.
///
/// ```
/// use oxmcp_auth::{ScopeSet, client::StepUps};
///
/// let mut step_ups = StepUps::default();
/// let requested = ScopeSet::parse("mcp:read");
/// let scopes = step_ups.step_up("tools/call", &requested, &ScopeSet::parse("mcp:write"))?;
/// step_ups.stepped_up("tools/call");
/// assert_eq!(scopes.to_string(), "mcp:read mcp:write");
/// // It was given, and it is not enough.
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
    /// The scopes to ask for after a request for an operation was refused: those that were requested, and those that it
    /// needs.
    ///
    /// # Errors
    ///
    /// If they were all requested already, or more was asked for too often.
    pub fn step_up(
        &self,
        operation: &str,
        requested: &ScopeSet,
        needed: &ScopeSet,
    ) -> Result<ScopeSet> {
        if requested.includes(needed) {
            return Err(AuthError::refused(
                format!(
                    "{operation:?} needs the scopes {:?}, which were requested, and the token is still not enough: they were \
                     not granted, or the user may not do this",
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
                    "{operation:?} was refused for want of scopes after {MAX_STEP_UPS} authorizations, and now needs {:?}: the \
                     server asks for more each time",
                    needed.to_string()
                ),
                Some("insufficient_scope"),
            ));
        }
        Ok(bounded(&requested.union(needed)))
    }

    /// Counts an authorization that was made for an operation. One that failed is none.
    pub fn stepped_up(&mut self, operation: &str) {
        if self.attempts.len() >= MAX_OPERATIONS && !self.attempts.contains_key(operation) {
            self.attempts.clear();
        }
        *self.attempts.entry(operation.to_owned()).or_default() += 1;
    }

    /// Forgets an operation that was served.
    pub fn served(&mut self, operation: &str) {
        self.attempts.remove(operation);
    }
}
