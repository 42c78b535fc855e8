//! Sessions in Redis: a hash for each session, whose fields change independently. It has a field for the initial record of the
//! client, which never changes, and one for each setting and for each resource that the client watches.
//!
//! Sessions are counted in sorted sets by their expiry. In a cluster these are in another slot than the session, so a session is
//! counted before it is created, and removed from the count after it ends: a failure in between leaves a count that expires with
//! its session.

use std::{collections::HashMap, time::Duration};

use oxmcp::{
    Error, Result,
    store::{
        CreateOutcome, SessionChange, SessionRecord, SessionStore, StoredSession, TOMBSTONE, hashed,
    },
};

use crate::{
    names::Names,
    scripts::{Invocation, Script, millis, script},
    store::Redis,
    values::Undecoded,
};

script!(CREATE, "sessions/create.lua");
script!(SET, "sessions/set.lua");
script!(TOUCH, "sessions/touch.lua");
script!(REMOVE, "sessions/remove.lua");
script!(ADMIT, "sessions/admit.lua");
script!(COUNT, "sessions/count.lua");
script!(LEAVE, "sessions/leave.lua");

/// The kinds of values. A value of one kind cannot be opened as one of another.
const RECORD: &str = "session";
const LEVEL: &str = "log level of a session";
const WATCHED: &str = "URI that a session watches";

/// The fields of the initial record, of the key under which the sessions of the principal are counted, and of settings.
const RECORD_FIELD: &str = "record";
const PRINCIPAL_FIELD: &str = "principal";
const INITIALIZED_FIELD: &str = "initialized";
const LEVEL_FIELD: &str = "level";

/// The prefix of the field of a URI, which is followed by the hash of the URI.
const URI_FIELD: &str = "uri:";

/// The most bytes of the initial record.
const MAX_RECORD: usize = 256 << 10;

/// The most fields of a session, nearly all of which are URIs. An endpoint allows fewer.
const MAX_FIELDS: usize = 10_000;

impl Redis {
    /// The fields of a record, including those of its URIs, which change independently.
    fn session_fields(
        &self,
        key: &str,
        mut record: SessionRecord,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let watched = std::mem::take(&mut record.subscribed);
        let json = serde_json::to_vec(&record).map_err(unwritable)?;
        if json.len() > MAX_RECORD || watched.len() > MAX_FIELDS {
            return Err(Error::limit(format!(
                "session record is too large: the limit is {MAX_RECORD} bytes and {MAX_FIELDS} resource subscriptions"
            )));
        }
        let mut fields = vec![(
            RECORD_FIELD.to_owned(),
            self.values.encode(RECORD, key, &json)?,
        )];
        for uri in watched {
            fields.push(self.watched(key, &uri)?);
        }
        Ok(fields)
    }

    /// The invocation of a script that counts a session, among all and among those under the key of its principal.
    fn counting(&self, script: &Script, principal: &str, id: &str) -> Invocation {
        let sessions = self.names.sessions();
        let mut script = match principal {
            "" => script.keys(&[&sessions]),
            _ => script.keys(&[&sessions, principal]),
        };
        script.arg(Names::session_hash(id));
        script
    }

    /// Removes a session from the counts.
    async fn leave(&self, principal: &str, id: &str) -> Result<()> {
        let script = self.counting(&LEAVE, principal, id);
        self.connection.invoke(&script).await
    }

    fn watched(&self, key: &str, uri: &str) -> Result<(String, Vec<u8>)> {
        let kept = self.values.encode(WATCHED, key, uri.as_bytes())?;
        Ok((uri_field(uri), kept))
    }

    /// The record of a session with these fields.
    fn session_record(
        &self,
        key: &str,
        fields: &HashMap<String, Vec<u8>>,
    ) -> Result<Option<SessionRecord>, Undecoded> {
        let Some(record) = fields.get(RECORD_FIELD) else {
            return Ok(None);
        };
        let json = self.values.decode(RECORD, key, record)?;
        let mut record: SessionRecord = serde_json::from_slice(&json).map_err(unreadable)?;
        if fields.contains_key(INITIALIZED_FIELD) {
            record.apply(SessionChange::Initialized);
        }
        if let Some(level) = fields.get(LEVEL_FIELD) {
            let level = self.values.decode(LEVEL, key, level)?;
            record.apply(SessionChange::LogLevel(
                serde_json::from_slice(&level).map_err(unreadable)?,
            ));
        }
        for (field, uri) in fields {
            if field.starts_with(URI_FIELD) {
                let uri = self.values.decode(WATCHED, key, uri)?;
                let uri = String::from_utf8(uri).map_err(|error| Undecoded {
                    error: Error::internal("could not read a session: damaged URI")
                        .with_source(error),
                    is_damaged: true,
                })?;
                record.apply(SessionChange::Watch(uri));
            }
        }
        Ok(Some(record))
    }
}

fn uri_field(uri: &str) -> String {
    format!("{URI_FIELD}{}", hashed(uri))
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::internal("could not serialize a session").with_source(error)
}

/// A record that is valid JSON, but not a session, may come from a newer release.
fn unreadable(error: serde_json::Error) -> Undecoded {
    let is_damaged = error.is_syntax() || error.is_eof();
    let failed = match is_damaged {
        true => Error::internal("could not read a session: damaged JSON"),
        false => Error::internal("could not read a session: a newer release may have written it"),
    };
    Undecoded {
        error: failed.with_source(error),
        is_damaged,
    }
}

impl SessionStore for Redis {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        let key = self.names.of_session(id).record();
        let principal = record.principal.as_deref();
        let principal = principal.map_or_else(String::new, |it| self.names.principal(it));
        let mut script = CREATE.keys(&[&key]);
        script.arg(millis(lasts));
        script.arg(PRINCIPAL_FIELD).arg(&principal);
        for (field, value) in self.session_fields(&key, record)? {
            script.arg(field).arg(value);
        }
        let mut admit = self.counting(&ADMIT, &principal, id);
        admit
            .arg(millis(lasts))
            .arg(self.max_sessions)
            .arg(max_per_owner);
        let admitted: String = self.connection.invoke(&admit).await?;
        match admitted.as_str() {
            "principal full" => return Ok(CreateOutcome::PrincipalFull),
            "full" => return Ok(CreateOutcome::Full),
            _ => {}
        }
        if self.connection.invoke(&script).await? {
            return Ok(CreateOutcome::Created);
        }
        if admitted == "admitted" {
            self.leave(&principal, id).await?;
        }
        Ok(CreateOutcome::Exists)
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        let key = self.names.of_session(id).record();
        let mut command = redis::cmd("HGETALL");
        let fields: HashMap<String, Vec<u8>> = self.connection.run(command.arg(&key)).await?;
        let record = match self.session_record(&key, &fields) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(undecoded) if undecoded.is_damaged => {
                tracing::warn!(error = %undecoded.error, "ignoring a damaged session record");
                return Ok(None);
            }
            Err(undecoded) => return Err(undecoded.into()),
        };
        let version = fields.get("version").and_then(|it| str::from_utf8(it).ok());
        let version = version.and_then(|it| it.parse().ok());
        let version = version
            .ok_or_else(|| Error::internal("could not read a session: it has no version"))?;
        Ok(Some(StoredSession::new(record, version)))
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        let key = self.names.of_session(id).record();
        let (field, value) = match change {
            SessionChange::Initialized => (INITIALIZED_FIELD.to_owned(), b"1".to_vec()),
            SessionChange::LogLevel(level) => {
                let level = serde_json::to_vec(&level).map_err(unwritable)?;
                let level = self.values.encode(LEVEL, &key, &level)?;
                (LEVEL_FIELD.to_owned(), level)
            }
            SessionChange::Watch(uri) => self.watched(&key, &uri)?,
            SessionChange::Unwatch(uri) => (uri_field(&uri), Vec::new()),
        };
        let mut script = SET.keys(&[&key]);
        script.arg(field).arg(value).arg(MAX_FIELDS);
        match self.connection.invoke::<Option<i64>>(&script).await? {
            None => Ok(None),
            Some(version) => {
                let version = u64::try_from(version);
                let too_many = |_| Error::limit("too many resource subscriptions in one session");
                version.map(Some).map_err(too_many)
            }
        }
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        let names = self.names.of_session(id);
        let mut script = TOUCH.keys(&[&names.record(), &names.streams()]);
        script.arg(millis(lasts));
        let touched: Option<(u64, String)> = self.connection.invoke(&script).await?;
        let Some((version, principal)) = touched else {
            return Ok(None);
        };
        let mut count = self.counting(&COUNT, &principal, id);
        let counted = self.connection.invoke::<()>(count.arg(millis(lasts))).await;
        if let Err(error) = counted {
            // The next touch counts the session again.
            tracing::debug!(%error, "could not count a session; retrying when it is used next");
        }
        Ok(Some(version))
    }

    async fn remove(&self, id: &str) -> Result<()> {
        let mut script = REMOVE.keys(&[&self.names.of_session(id).record()]);
        let principal: String = self
            .connection
            .invoke(script.arg(millis(TOMBSTONE)))
            .await?;
        self.leave(&principal, id).await
    }
}
