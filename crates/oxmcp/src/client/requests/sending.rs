//! What a call is made of, and the future that makes it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{
    client::requests::{call::Draft, results::read},
    error::Result,
    protocol::Method,
    session::{BoxFuture, CallResult, PlainCall},
};

/// A call that is made when it is first polled. Nearly all are a [`PlainCall`] and nothing else, and so this is by hand, too.
pub(crate) struct Sending<M: Method> {
    pub(crate) draft: Draft<M::Params>,
    plain: PlainCall,
    /// How often tools had been listed when it was made.
    listed: u64,
    /// What there is to do for all other calls.
    rest: Option<BoxFuture<Result<M::Result>>>,
}

impl<M: Method> Sending<M> {
    pub(crate) fn new(draft: Draft<M::Params>) -> Self {
        Self {
            draft,
            plain: PlainCall::new(),
            listed: 0,
            rest: None,
        }
    }

    /// Goes on with what the call was answered, if it was made.
    fn go_on(
        &mut self,
        answer: Option<Result<CallResult>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<M::Result>> {
        self.give_up();
        let mut ready = self.draft.ready.take();
        let listed = self.listed;
        let rest = self.rest.insert(Box::pin(async move {
            let first = match answer {
                Some(answer) => {
                    ready.note_visits(&answer);
                    answer
                }
                None => ready.exchange_once::<M>().await,
            };
            let result = ready.complete::<M>(first, listed).await?;
            read::<M>(&ready.session, result)
        }));
        rest.as_mut().poll(cx)
    }

    fn give_up(&mut self) {
        let connection = self.draft.ready.session.connection();
        self.plain.give_up(connection, M::NAME);
    }
}

impl<M: Method> Future for Sending<M> {
    type Output = Result<M::Result>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(rest) = &mut this.rest {
            return rest.as_mut().poll(cx);
        }
        let is_new = this.plain.is_new();
        if is_new {
            this.draft.prepare::<M>()?;
            this.listed = this.draft.ready.listed();
        }
        let answer = match this.draft.ready.outgoing::<M>() {
            Some(mut outgoing) if !is_new || outgoing.is_plain() => {
                Some(ready!(this.plain.poll(&mut outgoing, cx)))
            }
            _ => None,
        };
        match answer {
            // What has an outline is complete, and that is all that nearly all calls are.
            Some(Ok(result)) if result.outline.is_some() => {
                Poll::Ready(read::<M>(&this.draft.ready.session, result))
            }
            answer => this.go_on(answer, cx),
        }
    }
}

impl<M: Method> Drop for Sending<M> {
    fn drop(&mut self) {
        self.give_up();
    }
}
