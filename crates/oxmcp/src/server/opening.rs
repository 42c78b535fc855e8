//! Opening sessions: what `initialize` agrees on, and what its answer and that of `server/discover` say. Clients that say the
//! same of themselves are answered the same, so that it is worked out once.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;

use crate::{
    Error, Result, Revision,
    json::Text,
    protocol::{
        DiscoverResult, InitializeParams, InitializeResult, Method, SubscriptionFilter,
        encode_result, into_text, method, unsupported_version,
    },
    server::{features::Features, subscription::Topics},
    session::{Line, Peer},
};

/// More kinds of clients than that are read anew each time: to find one among many costs as much.
const MAX_KNOWN: usize = 16;
/// What is longer is not kept.
const MAX_SAID: usize = 4 << 10;

/// What a session was opened with.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) peer: Arc<Peer>,
    /// What the client hears of, since it was told that it would.
    pub(super) awaited: Topics,
}

/// What was answered of late, by a server in one state.
#[derive(Default)]
pub(crate) struct Openings {
    known: ArcSwap<Vec<Arc<Known>>>,
    discovered: OnceLock<(Revision, Line)>,
}

/// What clients sent that said this of themselves, and got.
struct Known {
    params: Box<str>,
    opening: Arc<Opening>,
    result: Line,
}

impl Features {
    /// What is agreed on with who sends this with `initialize`, and the answer.
    ///
    /// # Errors
    /// Where the params do not fit, or no revision does.
    pub(super) fn opening(&self, params: Text<'_>) -> Result<(Arc<Opening>, Line)> {
        let known = self.openings.known.load();
        let said = params.get();
        if let Some(known) = known.iter().find(|known| *known.params == *said) {
            return Ok((Arc::clone(&known.opening), known.result.clone()));
        }
        let (opening, result) = self.agree(params)?;
        let (opening, result) = (Arc::new(opening), Line::from(result));
        if said.len() <= MAX_SAID {
            let mut newer = Vec::with_capacity(MAX_KNOWN);
            newer.push(Arc::new(Known {
                params: said.into(),
                opening: Arc::clone(&opening),
                result: result.clone(),
            }));
            newer.extend(known.iter().take(MAX_KNOWN - 1).cloned());
            // One that another thread adds just now may be lost: it is read once more then.
            self.openings.known.store(Arc::new(newer));
        }
        Ok((opening, result))
    }

    /// Agrees on the revision that the client asked for, or the newest legacy one that is served.
    fn agree(&self, params: Text<'_>) -> Result<(Opening, Box<str>)> {
        let params: InitializeParams = params.parse().map_err(|error| {
            let name = method::Initialize::NAME;
            Error::invalid_params(format!("the params of {name} do not fit: {error}"))
        })?;
        let served = self.revisions.iter().copied();
        let mut served = served.filter(|revision| !revision.is_modern());
        let asked = params.protocol_version.parse().ok();
        let asked = asked.filter(|asked| served.clone().any(|revision| revision == *asked));
        let Some(revision) = asked.or_else(|| served.next()) else {
            return Err(unsupported_version(
                &self.revisions,
                &params.protocol_version,
            ));
        };
        let capabilities = self.capabilities();
        let awaited = SubscriptionFilter::default()
            .with_tools_list_changed(true)
            .with_prompts_list_changed(true)
            .with_resources_list_changed(true)
            .narrowed(&capabilities);
        let peer = Peer {
            revision,
            implementation: Some(params.client_info),
            capabilities: params.capabilities,
        };
        let opening = Opening {
            peer: Arc::new(peer),
            awaited: awaited.into(),
        };
        let mut result = InitializeResult::new(revision, capabilities, self.info.clone());
        result.instructions.clone_from(&self.instructions);
        let mut out = Vec::new();
        encode_result(&mut out, &mut result, revision, None)?;
        into_text(out).map(|json| (opening, json))
    }

    /// What the server says of itself to a modern client.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(super) fn discovered(&self, revision: Revision) -> Result<Line> {
        let known = self.openings.discovered.get();
        if let Some((_, known)) = known.filter(|(known, _)| *known == revision) {
            return Ok(known.clone());
        }
        let mut result = DiscoverResult::new(self.revisions.clone(), self.capabilities());
        result.instructions.clone_from(&self.instructions);
        result.ttl_ms = Some(self.discover_cache.ttl_ms());
        result.cache_scope = Some(self.discover_cache.scope);
        let mut out = Vec::new();
        encode_result(&mut out, &mut result, revision, Some(&self.stamp))?;
        let json = Line::from(into_text(out)?);
        // The first revision that is asked for is that of most clients.
        let _ = self.openings.discovered.set((revision, json.clone()));
        Ok(json)
    }
}

impl fmt::Debug for Openings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Openings")
            .field("known", &self.known.load().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;

    fn params(name: &str) -> String {
        format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{name}","version":"1"}}}}"#
        )
    }

    fn open(features: &Features, name: &str) -> Arc<Opening> {
        let params = params(name);
        features.opening(Text::checked(&params)).unwrap().0
    }

    #[test]
    fn those_who_say_the_same_share_what_was_agreed_on() {
        let server = Server::new("s", "1");
        let features = server.features();
        let first = open(&features, "a");
        assert!(Arc::ptr_eq(&first, &open(&features, "a")));
        let other = open(&features, "b");
        assert_eq!(other.peer.implementation.as_ref().unwrap().name, "b");
        for number in 0..MAX_KNOWN {
            open(&features, &number.to_string());
        }
        assert_eq!(features.openings.known.load().len(), MAX_KNOWN);
        assert!(!Arc::ptr_eq(&first, &open(&features, "a")));
        open(&features, &"x".repeat(MAX_SAID));
        let known = features.openings.known.load();
        assert!(known.iter().all(|known| known.params.len() <= MAX_SAID));
    }

    #[test]
    fn a_server_that_has_changed_says_so() {
        let server = Server::new("s", "1");
        let said = |server: &Server| {
            let features = server.features();
            let revision = Revision::LATEST;
            let params = params("a");
            let (_, opened) = features.opening(Text::checked(&params)).unwrap();
            [features.discovered(revision).unwrap(), opened]
        };
        let before = said(&server);
        assert_eq!(before, said(&server));
        let server = server.instructions("be kind");
        for (said, before) in said(&server).iter().zip(&before) {
            assert!(said.contains("be kind") && !before.contains("be kind"));
        }
    }
}
