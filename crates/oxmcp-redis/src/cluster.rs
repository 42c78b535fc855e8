//! Implementation of `Cluster` for Redis: shared keys, the prefix, and the facts that nodes compare.

use std::time::Duration;

use oxmcp::{Result, http::Cluster, keys::SharedKeys};

use crate::{scripts::millis, store::Redis};

/// The kind of these values.
const FACT: &str = "fact of a node";

/// The time for which a fact of a node is stored. Nodes renew it.
const LASTS: Duration = Duration::from_secs(60);

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
        command.arg(&key).arg(kept).arg("NX").arg("GET");
        let there: Option<Vec<u8>> = self
            .connection
            .run(command.arg("PX").arg(millis(LASTS)))
            .await?;
        let Some(there) = there else {
            return Ok(None);
        };
        let there = self.values.decode(FACT, &key, &there)?;
        let there = String::from_utf8_lossy(&there).into_owned();
        if there != value {
            return Ok(Some(there));
        }
        let mut command = redis::cmd("PEXPIRE");
        command.arg(&key).arg(millis(LASTS));
        self.connection.run::<()>(&command).await?;
        Ok(None)
    }
}
