//! The host's side: the skills of a server, loaded and verified.
//!
//! A host opens a session with a server, gives the server a label, lists its skills, asks the user, and loads the one that is
//! needed. Nothing is read before it is needed.
//!
//! ```
//! use oxmcp::{Server, testing};
//! use oxmcp_skills::{ServerExt, Skills, host::SessionExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let refunds = "---\nname: refunds\ndescription: Refund an order\n---\n\nSee [limits](limits.md).\n";
//! # let files = [("refunds/SKILL.md", refunds), ("refunds/limits.md", "At most 100 €.")];
//! # let server = Server::new("shop", "1.0.0").skills(Skills::embedded(files));
//! let session = testing::connect(&server).await?;
//! let skills = session.skills("shop");
//!
//! let list = skills.list().await?;
//! let skill = &list.skills()[0];
//! assert_eq!((skill.name(), skill.description()), ("refunds", "Refund an order"));
//!
//! // The user agrees; the approval can be stored.
//! let approval = skill.approval().expect("it has digests");
//!
//! let loaded = skills.load_approved(&approval).await?;
//! assert!(loaded.for_model().starts_with("Skill \"refunds\" of the MCP server \"shop\""));
//! let limits = loaded.read("limits.md").await?;
//! assert_eq!(limits.text(), Some("At most 100 €."));
//! # Ok(())
//! # }
//! ```
//!
//! # The duties of a host
//!
//! The types do this:
//!
//! - A skill is identified by the label of its server and its URI ([`SkillId`]), never by the URI or the name alone.
//! - A file is read only when it is needed. It is returned only if its size and digest match the entry, and a `SKILL.md` only if its
//!   frontmatter does, too.
//! - A [`LoadedSkill`] reads only the files of its entry, and only from its server.
//! - An [`Approval`] is bound to all files; it no longer covers the skill once one of them changes.
//! - What a host keeps for a server is bounded.
//!
//! The host must do this:
//!
//! - Treat skills as untrusted input, of a higher risk than a call of a tool, and give them to the model with their origin
//!   ([`LoadedSkill::for_model`]). A digest shows that a file matches the entry, not that it can be trusted.
//! - Run no code that a skill contains or asks for, and honor no hook or `allowed-tools` in its frontmatter, without the user's
//!   approval of exactly that.
//! - Let users tell skills with the same name apart ([`collisions`]), and let none replace a local one.
//! - Ask again for a skill within a skill: reading its `SKILL.md` as a file of the outer skill does not load it.
//!
//! See the
//! [specification](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#security-considerations).

mod approval;
mod content;
mod error;
mod id;
mod list;
mod loaded;
mod origin;
mod requests;
mod server_skills;
mod skill;
mod verify;

pub use approval::Approval;
pub use content::SkillContent;
pub use error::SkillError;
pub use id::SkillId;
pub use list::{RejectedEntry, SkillList, collisions};
pub use loaded::LoadedSkill;
pub use server_skills::{ServerSkills, SessionExt};
pub use skill::Skill;
