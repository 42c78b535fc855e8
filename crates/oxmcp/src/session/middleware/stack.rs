use std::{fmt, sync::Arc};

use super::{MiddlewareLayer, Next};

/// All middleware of one direction.
#[derive(Clone)]
pub(crate) struct Stack {
    layers: Vec<Arc<dyn Fn(Next) -> Next + Send + Sync>>,
    innermost: Next,
    /// All layers around the innermost, where there are any.
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

    /// Adds a layer inside those that are there.
    pub(crate) fn push(&mut self, layer: impl MiddlewareLayer) {
        self.layers
            .push(Arc::new(move |next: Next| layer.wrap(next)));
        let innermost = self.innermost.clone();
        self.whole = Some(
            self.layers
                .iter()
                .rev()
                .fold(innermost, |next, layer| layer(next)),
        );
    }

    /// What to hand a request to. `None` where there is no middleware.
    pub(crate) fn next(&self) -> Option<&Next> {
        self.whole.as_ref()
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("layers", &self.layers.len())
            .finish_non_exhaustive()
    }
}
