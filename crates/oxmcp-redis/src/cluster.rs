//! Redis as a cluster of nodes: its keys, its prefix, and the facts that nodes compare.

use std::time::Duration;

use oxmcp::{Result, SharedKeys, http::Cluster};

use crate::{scripts::millis, store::Redis};

/// The kind of these values.
const FACT: &str = "fact of a node";

/// The time for which a fact of a node is known to the others.
const LASTS: Duration = Duration::from_secs(24 * 60 * 60);

impl Cluster for Redis {
    fn shared_keys(&self) -> SharedKeys {
        self.values.keys().clone()
    }

    fn for_server(self, name: &str) -> Self {
        match self.has_prefix {
            true => self,
            false => self.prefix(name),
        }
    }

    async fn compare(&self, fact: &str, value: &str) -> Result<Option<String>> {
        let key = self.names.fact(fact);
        let kept = self.values.encode(FACT, &key, value.as_bytes())?;
        let mut command = redis::cmd("SET");
        command.arg(&key).arg(kept).arg("PX").arg(millis(LASTS));
        let before: Option<Vec<u8>> = self.connection.run(command.arg("GET")).await?;
        let Some(before) = before else {
            return Ok(None);
        };
        let before = self.values.decode(FACT, &key, &before)?;
        let before = String::from_utf8_lossy(&before).into_owned();
        Ok((before != value).then_some(before))
    }
}
