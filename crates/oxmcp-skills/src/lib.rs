//! [Agent Skills](https://agentskills.io) over the Model Context Protocol, for [oxmcp](https://docs.rs/oxmcp): servers offer
//! instructions for tasks, and hosts load them, verified. It is the official extension `io.modelcontextprotocol/skills`.
//!
//! A skill is a directory with a `SKILL.md`, which begins with the skill's name and description, and the files that it names.
//!
//! # A server
//!
//! [`Skills`] are read from a directory, from the program, or from a function, and added to a server:
//!
//! ```
//! use oxmcp::Server;
//! use oxmcp_skills::{ServerExt, Skills};
//!
//! const REFUNDS: &str = "---\nname: refunds\ndescription: Refund an order\n---\n\nAsk for the order number first.\n";
//!
//! let skills = Skills::embedded([("refunds/SKILL.md", REFUNDS)]).mention_in_instructions();
//! let server = Server::new("shop", "1.0.0").skills(skills);
//! # assert!(server.check().is_ok());
//! ```
//!
//! - It serves `skills/list`, `skills/get`, `resources/directory/read` and the files as resources, in every revision. Hosts without
//!   support for skills read them as resources, or as [prompts](Skills::also_as_prompts).
//! - All files are read at once, so that files and digests always match.
//!   [`reload_skills`](ServerExt::reload_skills) replaces all of them, or none if one has a mistake.
//! - [`Server::check`](oxmcp::Server::check) finds mistakes, and so does the server before it starts serving.
//!
//! # A host
//!
//! With the feature `host`, the module `host` lists and loads the skills of servers. It verifies what they send, and binds the
//! user's approval to it.
//!
//! # Features
//!
//! `server`, on by default, and `host`. The crate uses only the public API of `oxmcp`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod digest;
mod entry;
#[cfg(any(feature = "host", feature = "server"))]
mod frontmatter;
#[cfg(feature = "host")]
pub mod host;
#[cfg(any(feature = "host", feature = "server"))]
mod methods;
#[cfg(feature = "server")]
mod server;
#[cfg(any(feature = "host", feature = "server"))]
mod uri;

pub use digest::{Digest, InvalidDigest};
pub use entry::{MAX_FILES, MAX_TOTAL_BYTES, SkillEntry, SkillResource, SkillResources};
#[cfg(feature = "server")]
pub use server::{ServerExt, Skills};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/skills";

/// The code in the README is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
