//! Revisions of the protocol, and the features of each.
//!
//! Only this file defines them: all other code calls the methods of [`Revision`].

use std::{fmt, ops::RangeBounds, str::FromStr};

use serde::{Deserialize, Serialize};

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
    /// [2024-11-05](https://modelcontextprotocol.io/specification/2024-11-05): the first.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// [2025-03-26](https://modelcontextprotocol.io/specification/2025-03-26): streamable HTTP, batches, audio.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// [2025-06-18](https://modelcontextprotocol.io/specification/2025-06-18): structured output, elicitation.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// [2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25): icons, URL elicitation, sampling with tools.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// [2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28): stateless.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl Revision {
    /// All revisions, the oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision whose sessions are opened by `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revisions in a range, the oldest first.
    #[doc(hidden)]
    pub fn within(range: &impl RangeBounds<Self>) -> Vec<Self> {
        let revisions = Self::ALL.into_iter();
        revisions.filter(|it| range.contains(it)).collect()
    }

    /// Whether requests are stateless and carry all information in `_meta`, without `initialize`.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }
}

/// The features of each revision. No other place in the code compares revisions.
impl Revision {
    const fn since(self, first: Self) -> bool {
        self as u8 >= first as u8
    }

    const fn until(self, last: Self) -> bool {
        self as u8 <= last as u8
    }

    const fn only(self, one: Self) -> bool {
        self as u8 == one as u8
    }
}

/// Defines the differences between revisions, each with the revisions that have it.
macro_rules! differences {
    ($($(#[$doc:meta])+ $visibility:vis $name:ident: $range:ident $revision:ident;)+) => {
        impl Revision {
            $(
                $(#[$doc])+
                #[doc(hidden)]
                #[must_use]
                $visibility const fn $name(self) -> bool {
                    self.$range(Self::$revision)
                }
            )+
        }
    };
}

differences! {
    /// Messages can be sent in arrays.
    pub has_batches: only V2025_03_26;

    /// A stream can begin with an event that has only an id, and end before the response: the client then resumes it.
    pub has_polling: only V2025_11_25;

    /// Content can be audio.
    pub(crate) has_audio: since V2025_03_26;

    /// Tools have annotations.
    pub(crate) has_tool_annotations: since V2025_03_26;

    /// Progress can have a message.
    pub has_progress_messages: since V2025_03_26;

    /// Servers declare the completions capability.
    pub(crate) has_completions_capability: since V2025_03_26;

    /// Named items have a title for people in addition to the name for programs.
    pub(crate) has_titles: since V2025_06_18;

    /// Parts of messages have a `_meta` of their own.
    pub(crate) has_part_meta: since V2025_06_18;

    /// Annotations have the time of the last modification.
    pub(crate) has_last_modified: since V2025_06_18;

    /// Content can be a link to a resource.
    pub(crate) has_resource_links: since V2025_06_18;

    /// Tools have output schemas and return structured content.
    pub(crate) has_structured_content: since V2025_06_18;

    /// Structured content can be any JSON, and not only an object.
    pub(crate) has_any_structured_content: since V2026_07_28;

    /// Completion requests have the arguments that were already resolved.
    pub(crate) has_completion_context: since V2025_06_18;

    /// Servers can request input from the user.
    pub has_elicitation: since V2025_06_18;

    /// Servers can send the user to a URL, and clients declare whether they support forms, URLs or both.
    pub has_elicitation_modes: since V2025_11_25;

    /// URL elicitations have an id, by which the server reports their completion.
    pub has_elicitation_ids: only V2025_11_25;

    /// Forms have titled choices, multiple choices, and defaults for all fields.
    pub has_rich_forms: since V2025_11_25;

    /// Named items have icons.
    pub(crate) has_icons: since V2025_11_25;

    /// Implementations have a description and a website.
    pub(crate) has_implementation_details: since V2025_11_25;

    /// Sampling has tools, and messages with several pieces of content.
    pub has_sampling_tools: since V2025_11_25;

    /// Sampling messages have a `_meta` of their own.
    pub(crate) has_sampling_message_meta: since V2025_11_25;

    /// Requests can continue as tasks.
    pub(crate) has_tasks: only V2025_11_25;

    /// Clients notify servers of changes to their roots.
    pub(crate) has_roots_list_changed: until V2025_11_25;

    /// Results name their type and the server.
    pub(crate) has_result_types: since V2026_07_28;

    /// Results say for how long they may be cached.
    pub(crate) has_caching: since V2026_07_28;

    /// Requests carry the responses to the server's input requests.
    pub has_input_responses: since V2026_07_28;

    /// An unknown resource has an error code of its own.
    pub(crate) has_resource_not_found: until V2025_11_25;

    /// A server can refuse a request until the user has visited a URL.
    pub(crate) has_url_elicitation_required: only V2025_11_25;
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

/// No revision has this name, or this version of the crate does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownRevision;

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no revision of MCP that this crate knows has this name")
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
