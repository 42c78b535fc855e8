//! Which question opens a session.

use crate::{
    client::{client::Client, connect::known_servers::Era},
    protocol::Revision,
};

/// The era of a revision.
pub(crate) fn era(revision: Revision) -> Era {
    if revision.is_modern() {
        Era::Modern(revision)
    } else {
        Era::Legacy
    }
}

/// The newest revision of an era.
pub(crate) fn newest(revisions: &[Revision], modern: bool) -> Option<Revision> {
    let revisions = revisions.iter().copied();
    revisions
        .filter(|revision| revision.is_modern() == modern)
        .max()
}

/// How a session is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Opening {
    /// By asking what the server speaks, in this revision.
    Probe(Revision),
    /// By `initialize`.
    Initialize,
    /// By `initialize`, which was right the last time.
    InitializeAgain,
}

impl Opening {
    /// How to begin, by what is known of the server.
    pub(crate) fn choose(client: &Client, server: Option<&str>, revisions: &[Revision]) -> Self {
        let Some(modern) = newest(revisions, true) else {
            return Self::Initialize;
        };
        match server.and_then(|server| client.verdicts().get(server)) {
            Some(Era::Legacy) => Self::InitializeAgain,
            Some(Era::Modern(revision)) if revisions.contains(&revision) => Self::Probe(revision),
            _ => Self::Probe(modern),
        }
    }

    /// What to try with a server that went away at this.
    pub(crate) fn instead(self, revisions: &[Revision]) -> Option<Self> {
        match self {
            Self::Probe(_) => newest(revisions, false).map(|_| Self::Initialize),
            Self::InitializeAgain => newest(revisions, true).map(Self::Probe),
            Self::Initialize => None,
        }
    }
}
