//! The requests of a host. Entries are read one by one, so that one that breaks a rule does not hide the others.

use std::time::Duration;

use oxmcp::protocol::{Method, PaginatedParams, Payload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest time for which a list counts as fresh.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// The request `skills/list`.
pub(super) struct ListSkills;

impl Method for ListSkills {
    const NAME: &'static str = "skills/list";
    type Params = PaginatedParams;
    type Result = ListSkillsResult;
}

/// The request `skills/get`.
pub(super) struct GetSkill;

impl Method for GetSkill {
    const NAME: &'static str = "skills/get";
    type Params = GetSkillParams;
    type Result = GetSkillResult;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListSkillsResult {
    pub(super) skills: Vec<Value>,
    #[serde(default)]
    pub(super) next_cursor: Option<String>,
    #[serde(default)]
    ttl_ms: Option<f64>,
}

impl ListSkillsResult {
    /// The time for which the page stays fresh.
    pub(super) fn ttl(&self) -> Duration {
        let ttl = self.ttl_ms.unwrap_or_default() / 1000.0;
        let ttl = Duration::try_from_secs_f64(ttl.max(0.0));
        ttl.map_or(MAX_TTL, |it| it.min(MAX_TTL))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GetSkillParams {
    pub(super) uri: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GetSkillResult {
    pub(super) skill: Value,
}

impl Payload for ListSkillsResult {}
impl Payload for GetSkillParams {}
impl Payload for GetSkillResult {}
