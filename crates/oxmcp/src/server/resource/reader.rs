use std::sync::{Arc, OnceLock};

use tokio::sync::OwnedSemaphorePermit;

use crate::{
    Result, Revision,
    codec::uri_template::Captures,
    protocol::{CacheHint, CacheScope, ReadResourceResult, encode_result},
    server::ask::Asks,
    session::{Body, BoxFuture, Encode, Pace, RequestContext, Work},
};

/// What is to be read: cheap to clone, so that a handler can be begun again.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) uri: Arc<str>,
    /// What a template's variables stand for.
    pub(crate) captures: Arc<Captures>,
    /// What the handler holds until its result has been written.
    pub(crate) held: Held,
}

/// See [`Target::held`].
pub(crate) type Held = Arc<OnceLock<OwnedSemaphorePermit>>;

/// A result, and what was held for it.
#[derive(Debug)]
struct Holding {
    result: ReadResourceResult,
    _held: Held,
}

impl Encode for Holding {
    fn encode(&mut self, out: &mut Vec<u8>, revision: Revision, stamp: Option<&str>) -> Result<()> {
        encode_result(out, &mut self.result, revision, stamp)
    }
}

/// A read that has begun, or that could not.
pub(crate) type Begun = Result<BoxFuture<Result<ReadResourceResult>>>;

/// A handler whose type has been forgotten.
pub(crate) type ErasedHandler = Arc<dyn Fn(RequestContext, Target) -> Begun + Send + Sync>;

/// What reads a resource, or all resources of a template.
pub(crate) struct Reader {
    pub(super) handler: ErasedHandler,
    pub(super) mime_type: Option<String>,
    pub(super) hint: Option<CacheHint>,
    pub(super) asks: Asks,
    /// Whether only some callers may read it.
    pub(super) is_restricted: bool,
    pub(super) pace: Arc<Pace>,
}

impl Reader {
    /// Reads.
    pub(super) fn read(self: &Arc<Self>, context: RequestContext, target: Target) -> Work {
        let later = |(context, target)| -> BoxFuture<Result<Body>> {
            let reader = Arc::clone(self);
            Box::pin(async move { reader.begin(context, target).await })
        };
        let now = |(context, target)| self.begin(context, target);
        let is_alone = context.is_alone();
        Work::paced(&self.pace, is_alone, (context, target), now, later)
    }

    /// Begins the handler. It may be begun again with the same target.
    fn begin(self: &Arc<Self>, context: RequestContext, target: Target) -> BoxFuture<Result<Body>> {
        let uri = Arc::clone(&target.uri);
        let held = Arc::clone(&target.held);
        let begun = (self.handler)(context, target);
        let reader = Arc::clone(self);
        Box::pin(async move {
            let mut result = begun?.await?;
            reader.fill_in(&mut result, &uri);
            Ok(Body::of(Holding {
                result,
                _held: held,
            }))
        })
    }

    /// Says what the handler has left to the definition to say.
    fn fill_in(&self, result: &mut ReadResourceResult, uri: &str) {
        for contents in &mut result.contents {
            if contents.uri.is_empty() {
                uri.clone_into(&mut contents.uri);
            }
            // What has another URI is another resource, of another type perhaps.
            if contents.mime_type.is_none() && contents.uri == uri {
                contents.mime_type.clone_from(&self.mime_type);
            }
        }
        if let Some(mut hint) = self.hint {
            if self.is_restricted {
                hint.scope = CacheScope::Private;
            }
            result.ttl_ms.get_or_insert_with(|| hint.ttl_ms());
            result.cache_scope.get_or_insert(hint.scope);
        }
    }
}
