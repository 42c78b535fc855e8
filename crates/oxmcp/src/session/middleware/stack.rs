//! The middleware of one direction, in the order of a program's layers.

use std::sync::Arc;

use crate::{
    debug::opaque_debug,
    error::Result,
    session::{
        middleware::{layer::MiddlewareLayer, next::Next, request::Request, response::Response},
        outbound::outgoing::Outgoing,
        task::BoxFuture,
    },
};

/// All middleware of one direction.
#[derive(Clone)]
pub(crate) struct Stack {
    layers: Vec<Arc<dyn MiddlewareLayer>>,
    innermost: Next,
    /// All layers around the innermost service, if there are any layers.
    whole: Option<Next>,
}

impl Stack {
    pub(crate) fn incoming() -> Self {
        Self {
            layers: Vec::new(),
            innermost: Next::handler(),
            whole: None,
        }
    }

    pub(crate) fn outgoing() -> Self {
        Self {
            layers: Vec::new(),
            innermost: Next::wire(),
            whole: None,
        }
    }

    /// Adds a layer inside the existing ones.
    pub(crate) fn push(&mut self, layer: impl MiddlewareLayer) {
        self.push_shared(Arc::new(layer));
    }

    /// Like [`push`](Self::push), for a layer that other stacks share.
    pub(crate) fn push_shared(&mut self, layer: Arc<dyn MiddlewareLayer>) {
        self.layers.push(layer);
        let innermost = self.innermost.clone();
        self.whole = Some(
            self.layers
                .iter()
                .rev()
                .fold(innermost, |next, layer| layer.wrap(next)),
        );
    }

    /// Passes an outgoing message to the chain.
    pub(crate) fn pass_outgoing(&self, message: Outgoing) -> BoxFuture<Result<Response>> {
        let next = self.whole.as_ref().unwrap_or(&self.innermost);
        next.begin(Request::outgoing(message))
    }

    /// The chain to pass requests to. `None` if there is no middleware.
    pub(crate) fn next(&self) -> Option<&Next> {
        self.whole.as_ref()
    }
}

opaque_debug!(Stack, |it| { layers: it.layers.len() });
