//! Hierarchy of scopes, some of which imply others.

use std::collections::BTreeMap;

use crate::scope::ScopeSet;

/// Scopes that imply others.
/// [MCP](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#runtime-insufficient-scope-errors)
/// leaves the hierarchy to each server.
///
/// ```
/// use oxmcp_auth::{ScopeSet, server::ScopeHierarchy};
///
/// let scopes = ScopeHierarchy::new()
///     .implies("admin", ["files:write"])
///     .implies("files:write", ["files:read"]);
/// let granted = ScopeSet::parse("admin");
/// assert!(scopes.satisfies(&granted, &ScopeSet::parse("files:read")));
/// assert!(!scopes.satisfies(&granted, &ScopeSet::parse("files:read mail:send")));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScopeHierarchy {
    implied: BTreeMap<String, Vec<String>>,
}

impl ScopeHierarchy {
    /// Creates a hierarchy in which no scope implies another.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the scopes that a scope implies. They imply their own implied scopes in turn.
    #[must_use]
    pub fn implies<S: Into<String>>(
        mut self,
        scope: impl Into<String>,
        implied: impl IntoIterator<Item = S>,
    ) -> Self {
        let all = self.implied.entry(scope.into()).or_default();
        all.extend(implied.into_iter().map(Into::into));
        self
    }

    /// Returns whether each of the needed scopes was granted, or is implied by one that was.
    #[must_use]
    pub fn satisfies(&self, granted: &ScopeSet, needed: &ScopeSet) -> bool {
        if granted.includes(needed) {
            return true;
        }
        let reached = self.reached(granted);
        needed.iter().all(|scope| reached.contains(&scope))
    }

    /// The scopes that were granted, with all that they imply.
    fn reached<'a>(&'a self, granted: &'a ScopeSet) -> Vec<&'a str> {
        let mut reached: Vec<&str> = granted.iter().collect();
        let mut next = 0;
        while let Some(scope) = reached.get(next) {
            let implied = self.implied.get(*scope).into_iter().flatten();
            for scope in implied.map(String::as_str) {
                if !reached.contains(&scope) {
                    reached.push(scope);
                }
            }
            next += 1;
        }
        reached
    }
}
