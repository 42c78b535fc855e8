//! How long a store may take.

use std::{future::Future, time::Duration};

use tokio::time::timeout;

use super::BoxFuture;
use crate::{Error, Result};

/// One whose database has gone away often says nothing at all, and there are requests, and the ends of sessions, that wait for
/// it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a store does, or that it takes too long.
pub(super) fn in_time<'a, T>(
    done: impl Future<Output = Result<T>> + Send + 'a,
) -> BoxFuture<'a, Result<T>> {
    Box::pin(async move {
        match timeout(PATIENCE, done).await {
            Ok(done) => done,
            Err(_) => Err(Error::timeout(format!(
                "the store has not answered within {PATIENCE:?}"
            ))),
        }
    })
}
