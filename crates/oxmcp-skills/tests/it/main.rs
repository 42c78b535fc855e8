//! Servers that offer skills, and hosts that load them, in one process and in all revisions.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

mod host;
mod lies;
mod mistakes;
mod reload;
mod server;

use oxmcp::{ClientSession, Revision, Server, testing};
use oxmcp_skills::{ServerExt, Skills};
use serde_json::{Value, json};

/// A `SKILL.md` with a byte order mark and line breaks of Windows.
const REFUNDS: &str = "\u{feff}---\r\nname: refunds\r\ndescription: Refund an order\r\nmetadata:\r\n  since: 2026-01-31\r\n  version: 1.0\r\n---\r\n\r\nSee [limits](references/limits.md) and logo.png.\r\n";
const LIMITS: &str = "# Limits\n\nAt most 100 €.\n";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0";
const REPORT: &str = "---\nname: report\ndescription: Write the daily report\n---\n\nWrite it.\n";
const CHARTS: &str =
    "---\nname: charts\ndescription: Draw a chart\nallowed-tools: Bash\n---\n\nDraw it.\n";

/// Two skills, one of which contains a third.
fn skills() -> Skills {
    Skills::embedded([
        ("refunds/SKILL.md", REFUNDS.as_bytes()),
        ("refunds/references/limits.md", LIMITS.as_bytes()),
        ("refunds/logo.png", PNG),
        ("team/report/SKILL.md", REPORT.as_bytes()),
        ("team/report/parts/charts/SKILL.md", CHARTS.as_bytes()),
        ("team/README.md", b"not part of a skill"),
    ])
}

fn shop() -> Server {
    Server::new("shop", "1.0.0").skills(skills().prefix("shop"))
}

async fn session(server: &Server, revision: Revision) -> ClientSession {
    let connect = testing::connect(server).revision(revision);
    connect.await.unwrap()
}

/// A custom request, with raw params and result.
macro_rules! raw_method {
    ($($method:ident $name:literal;)*) => {$(
        struct $method;

        impl oxmcp::protocol::Method for $method {
            const NAME: &'static str = $name;
            type Params = oxmcp_raw::Raw;
            type Result = oxmcp_raw::Raw;
        }
    )*};
}

mod oxmcp_raw {
    /// Params or a result as they are on the wire.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(transparent)]
    pub(crate) struct Raw(pub(crate) serde_json::Value);

    impl oxmcp::protocol::Payload for Raw {}
}

raw_method! {
    ListSkills "skills/list";
    GetSkill "skills/get";
    ReadDirectory "resources/directory/read";
}

async fn ask<M>(session: &ClientSession, params: Value) -> oxmcp::Result<Value>
where
    M: oxmcp::protocol::Method<Params = oxmcp_raw::Raw, Result = oxmcp_raw::Raw>,
{
    let mut result = session.request::<M>(oxmcp_raw::Raw(params)).await?.0;
    // They are the protocol's own.
    let members = result.as_object_mut().unwrap();
    members.remove("_meta");
    members.remove("resultType");
    Ok(result)
}

async fn list(session: &ClientSession) -> Value {
    ask::<ListSkills>(session, json!({})).await.unwrap()
}
