//! The YAML frontmatter of a `SKILL.md`, as JSON. YAML 1.2 with its core schema, so that the same text means the same to all hosts;
//! anchors, tags, merge keys and keys that are not strings are refused.

#[cfg(any(feature = "host", test))]
mod compare;
mod read;
mod scalar;
mod split;
#[cfg(test)]
mod tests;

#[cfg(feature = "host")]
pub(crate) use compare::first_difference;
#[cfg(feature = "host")]
pub(crate) use read::MAX_BYTES;
pub(crate) use read::read;
