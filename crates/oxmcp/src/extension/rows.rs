//! The parts of an extension, with their types forgotten.

use std::sync::Arc;

use serde_json::Value;

use super::arguments::{ExtensionArguments, IntoAnswer};
use crate::{
    Error, Result, Revision,
    json::{Logged, Text},
    protocol::{Method, Notification, encode_payload, into_text},
    session::{Body, BoxFuture, Handler, HandlerFuture, Pace, RequestContext},
};

/// The handler of a method: it reads the params and begins.
type Answerer =
    Arc<dyn Fn(RequestContext, Text<'_>) -> Result<BoxFuture<Result<Body>>> + Send + Sync>;

/// The handler of a notification. `None` where the params cannot be read.
type Listener = Arc<dyn Fn(RequestContext, Text<'_>) -> Option<BoxFuture<()>> + Send + Sync>;

/// What of a value in a filter is granted to the caller.
pub(super) type Grant = Arc<dyn Fn(&RequestContext, Value) -> Option<Value> + Send + Sync>;

/// A name, and the revisions that have it.
#[derive(Clone)]
pub(super) struct Name {
    pub(super) name: &'static str,
    pub(super) revisions: Vec<Revision>,
}

impl Name {
    pub(super) fn is_in(&self, name: &str, revision: Revision) -> bool {
        self.name == name && self.revisions.contains(&revision)
    }

    /// Whether both mean the same in some revision.
    pub(super) fn clashes(&self, other: &Self) -> bool {
        let mut revisions = self.revisions.iter();
        revisions.any(|revision| other.is_in(self.name, *revision))
    }
}

/// A method that this side serves.
#[derive(Clone)]
pub(crate) struct Served {
    pub(super) name: Name,
    pub(super) answerer: Answerer,
    /// How the handler fared so far.
    pub(super) pace: Arc<Pace>,
}

impl Served {
    pub(super) fn new<M, Arguments, H>(revisions: Vec<Revision>, handler: H) -> Self
    where
        M: Method,
        Arguments: ExtensionArguments<M::Params>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoAnswer<M::Result>> + Send + 'static,
    {
        let answerer = move |context: RequestContext, params: Text<'_>| {
            let unfit = |why: &dyn std::fmt::Display| {
                Error::invalid_params(format!("the params of {} do not fit: {why}", M::NAME))
            };
            // An array would pass as an object's members in their order.
            if !params.is_object() {
                return Err(unfit(&"they must be an object"));
            }
            let arguments =
                Arguments::read(context.clone(), params.get()).map_err(|error| unfit(&error))?;
            let running = handler.call(arguments).run();
            let future: BoxFuture<Result<Body>> = Box::pin(async move {
                let answer = running.await.into_answer()?;
                encode::<M>(&context, answer)
            });
            Ok(future)
        };
        let name = M::NAME;
        Self {
            name: Name { name, revisions },
            answerer: Arc::new(answerer),
            pace: Arc::new(Pace::new()),
        }
    }

    /// Begins to serve a request.
    pub(crate) fn begin(
        &self,
        context: RequestContext,
        params: Text<'_>,
    ) -> Result<BoxFuture<Result<Body>>> {
        (self.answerer)(context, params)
    }

    pub(crate) fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }
}

fn encode<M: Method>(context: &RequestContext, mut answer: M::Result) -> Result<Body> {
    let mut out = Vec::new();
    let stamp = context.parts().connection.role().stamp();
    encode_payload(&mut out, &mut answer, context.revision(), stamp)?;
    into_text(out).map(Body::Json)
}

/// A notification that this side takes.
#[derive(Clone)]
pub(super) struct Heard {
    pub(super) name: Name,
    pub(super) listener: Listener,
}

impl Heard {
    pub(super) fn new<N, Arguments, H>(revisions: Vec<Revision>, handler: H) -> Self
    where
        N: Notification,
        Arguments: ExtensionArguments<N::Params>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output = ()> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let listener = move |context: RequestContext, params: Text<'_>| {
            let arguments = Arguments::read(context, params.get()).map_err(|error| {
                tracing::debug!(method = N::NAME, error = %Logged(&error), "a notification that cannot be read was ignored");
            });
            let arguments = arguments.ok()?;
            let handler = Arc::clone(&handler);
            // Called where the handlers run: a panic must not reach whoever queues it.
            let job: BoxFuture<()> = Box::pin(async move { handler.call(arguments).run().await });
            Some(job)
        };
        let name = N::NAME;
        Self {
            name: Name { name, revisions },
            listener: Arc::new(listener),
        }
    }
}

/// A key of the filters of subscriptions.
#[derive(Clone)]
pub(super) struct ListenKey {
    pub(super) key: String,
    pub(super) grant: Grant,
}

/// A header of HTTP that repeats a member of a method's params.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) method: &'static str,
    pub(super) member: String,
    pub(super) header: String,
}
