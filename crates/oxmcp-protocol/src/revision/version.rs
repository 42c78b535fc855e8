//! Revisions of the protocol, and the features of each.
//!
//! Only this file defines them: all other code calls the methods of [`Revision`].

use std::{fmt, ops::RangeBounds, str::FromStr};

use serde::{Deserialize, Serialize};

/// Defines the revisions, the oldest first: the name in Rust and on the wire, and the era.
macro_rules! revisions {
    ($($(#[doc = $doc:literal])+ $(#[cfg($cfg:meta)])? $revision:ident $name:literal $era:ident;)+) => {
        /// A revision of the Model Context Protocol.
        ///
        /// Revisions are ordered by age. The first four are *legacy*: a session is opened by `initialize`. From 2026-07-28 on
        /// they are *modern*: every request carries all the information that the server needs.
        /// See [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning).
        ///
        /// ```
        /// use oxmcp_protocol::Revision;
        ///
        /// assert_eq!(Revision::V2025_06_18.to_string(), "2025-06-18");
        /// assert_eq!("2026-07-28".parse(), Ok(Revision::LATEST));
        /// assert!(Revision::V2025_11_25 < Revision::LATEST && !Revision::V2025_11_25.is_modern());
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Revision {
            $(
                $(#[doc = $doc])+
                $(#[cfg($cfg)])?
                #[serde(rename = $name)]
                $revision,
            )+
        }

        impl Revision {
            /// All revisions, the oldest first.
            pub const ALL: [Self; COUNT] = [$($(#[cfg($cfg)])? Self::$revision),+];

            /// Returns the name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? Self::$revision => $name,)+
                }
            }

            const fn era(self) -> Era {
                match self {
                    $($(#[cfg($cfg)])? Self::$revision => Era::$era,)+
                }
            }
        }

        /// The number of revisions.
        pub(crate) const COUNT: usize = [$($(#[cfg($cfg)])? $name),+].len();
    };
}

/// The way in which a client introduces itself.
enum Era {
    /// By `initialize`, which opens a session.
    Legacy,
    /// In each request.
    Modern,
}

// A new revision is one row here. The compiler then demands a column of it in `differences!` below and in the tables of methods.
revisions! {
    /// [2024-11-05](https://modelcontextprotocol.io/specification/2024-11-05): the first.
    V2024_11_05 "2024-11-05" Legacy;

    /// [2025-03-26](https://modelcontextprotocol.io/specification/2025-03-26): streamable HTTP, batches, audio.
    V2025_03_26 "2025-03-26" Legacy;

    /// [2025-06-18](https://modelcontextprotocol.io/specification/2025-06-18): structured output, elicitation.
    V2025_06_18 "2025-06-18" Legacy;

    /// [2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25): icons, URL elicitation, sampling with tools.
    V2025_11_25 "2025-11-25" Legacy;

    /// [2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28): stateless.
    V2026_07_28 "2026-07-28" Modern;

    /// A revision for which nothing has been decided. A test shows that it does not compile.
    #[cfg(oxmcp_undecided_revision)]
    Undecided "2999-12-31" Modern;
}

impl Revision {
    /// The newest revision.
    pub const LATEST: Self = Self::latest(true);
    /// The newest revision whose sessions are opened by `initialize`.
    pub const LATEST_LEGACY: Self = Self::latest(false);

    const fn latest(modern: bool) -> Self {
        let mut latest = Self::V2024_11_05;
        let mut rest: &[Self] = &Self::ALL;
        while let [first, others @ ..] = rest {
            if modern || !first.is_modern() {
                latest = *first;
            }
            rest = others;
        }
        latest
    }

    /// Returns the revisions in a range, the oldest first.
    #[doc(hidden)]
    pub fn within(range: &impl RangeBounds<Self>) -> Vec<Self> {
        let revisions = Self::ALL.into_iter();
        revisions.filter(|it| range.contains(it)).collect()
    }

    /// Returns whether requests are stateless and carry all information in `_meta`, without `initialize`.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Returns whether the entries of listings have their own `_meta` (2025-06-18 and later). Extensions that describe tools and
    /// resources by it have no effect in other revisions.
    ///
    /// ```
    /// use oxmcp_protocol::Revision;
    ///
    /// assert!(Revision::LATEST.has_entry_metadata());
    /// assert!(!Revision::V2025_03_26.has_entry_metadata());
    /// ```
    #[must_use]
    pub const fn has_entry_metadata(self) -> bool {
        self.has_part_meta()
    }
}

/// A set of revisions: a column for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Revisions([bool; COUNT]);

impl Revisions {
    /// The columns in the order of [`Revision::ALL`].
    pub(crate) const fn new(columns: [bool; COUNT]) -> Self {
        Self(columns)
    }

    /// Returns whether the set has a revision.
    #[expect(
        clippy::indexing_slicing,
        reason = "the array has a column for each revision"
    )]
    pub(crate) const fn has(&self, revision: Revision) -> bool {
        self.0[revision as usize]
    }
}

/// The columns of a table: the revision has it, or has it not.
pub(crate) const Y: bool = true;
pub(crate) const N: bool = false;

/// Defines the differences between revisions, each with the revisions that have it. No other place in the code compares revisions.
macro_rules! differences {
    ($($(#[$doc:meta])+ $visibility:vis $name:ident: $columns:expr;)+) => {
        impl Revision {
            $(
                $(#[$doc])+
                #[doc(hidden)]
                #[must_use]
                $visibility const fn $name(self) -> bool {
                    const REVISIONS: Revisions = Revisions::new($columns);
                    REVISIONS.has(self)
                }
            )+
        }
    };
}

// The columns are the revisions in their order: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.
differences! {
    /// Messages can be sent in arrays.
    pub has_batches: [N, Y, N, N, N];

    /// A stream can begin with an event that has only an id, and end before the response: the client then resumes it.
    pub has_polling: [N, N, N, Y, N];

    /// Content can be audio.
    pub(crate) has_audio: [N, Y, Y, Y, Y];

    /// Tools have annotations.
    pub(crate) has_tool_annotations: [N, Y, Y, Y, Y];

    /// Progress can have a message.
    pub has_progress_messages: [N, Y, Y, Y, Y];

    /// Servers declare the completions capability.
    pub(crate) has_completions_capability: [N, Y, Y, Y, Y];

    /// Named items have a title for people in addition to the name for programs.
    pub(crate) has_titles: [N, N, Y, Y, Y];

    /// Parts of messages have their own `_meta`.
    pub(crate) has_part_meta: [N, N, Y, Y, Y];

    /// Annotations have the time of the last modification.
    pub(crate) has_last_modified: [N, N, Y, Y, Y];

    /// Content can be a link to a resource.
    pub(crate) has_resource_links: [N, N, Y, Y, Y];

    /// Tools have output schemas and return structured content.
    pub(crate) has_structured_content: [N, N, Y, Y, Y];

    /// Structured content can be any JSON, and not only an object.
    pub(crate) has_any_structured_content: [N, N, N, N, Y];

    /// Completion requests have the arguments that were already resolved.
    pub(crate) has_completion_context: [N, N, Y, Y, Y];

    /// Servers can request input from the user.
    pub has_elicitation: [N, N, Y, Y, Y];

    /// Servers can send the user to a URL, and clients declare whether they support forms, URLs or both.
    pub has_elicitation_modes: [N, N, N, Y, Y];

    /// URL elicitations have an id, by which the server reports their completion.
    pub has_elicitation_ids: [N, N, N, Y, N];

    /// Forms have titled choices, multiple choices, and defaults for all fields.
    pub has_rich_forms: [N, N, N, Y, Y];

    /// Named items have icons.
    pub(crate) has_icons: [N, N, N, Y, Y];

    /// Implementations have a description and a website.
    pub(crate) has_implementation_details: [N, N, N, Y, Y];

    /// Sampling has tools, and messages with several pieces of content.
    pub has_sampling_tools: [N, N, N, Y, Y];

    /// Sampling messages have their own `_meta`.
    pub(crate) has_sampling_message_meta: [N, N, N, Y, Y];

    /// Requests can continue as tasks.
    pub has_tasks: [N, N, N, Y, N];

    /// Clients notify servers of changes to their roots.
    pub(crate) has_roots_list_changed: [Y, Y, Y, Y, N];

    /// Results name their type and the server.
    pub(crate) has_result_types: [N, N, N, N, Y];

    /// Results state how long they may be cached.
    pub(crate) has_caching: [N, N, N, N, Y];

    /// Requests carry the responses to the server's input requests.
    pub has_input_responses: [N, N, N, N, Y];

    /// An unknown resource has its own error code.
    pub(crate) has_resource_not_found: [Y, Y, Y, Y, N];

    /// A server can refuse a request until the user has visited a URL.
    pub(crate) has_url_elicitation_required: [N, N, N, Y, N];
}

impl From<Revision> for String {
    fn from(revision: Revision) -> Self {
        revision.as_str().into()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error: no revision has this name, or this version of the crate does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownRevision;

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown MCP revision")
    }
}

impl std::error::Error for UnknownRevision {}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(name: &str) -> Result<Self, UnknownRevision> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == name)
            .ok_or(UnknownRevision)
    }
}
