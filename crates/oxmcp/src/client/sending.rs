//! A call that was awaited.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{
    Result,
    client::{Call, decode::read},
    protocol::Method,
    session::{BoxFuture, CallResult, PlainCall},
};

/// A call that is made when it is first polled. Nearly all are a [`PlainCall`] and nothing else, and so this is by hand, too.
pub(super) struct Sending<M: Method> {
    /// `None` where there is `rest`.
    call: Option<Call<M>>,
    plain: PlainCall,
    /// How often tools had been listed when it was made.
    listed: u64,
    /// What there is to do for all other calls.
    rest: Option<BoxFuture<Result<M::Result>>>,
}

impl<M: Method> Sending<M> {
    pub(super) fn new(call: Call<M>) -> Self {
        Self {
            call: Some(call),
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
        let Some(Call { mut ready, .. }) = self.call.take() else {
            return Poll::Pending;
        };
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
        if let Some(call) = &self.call {
            self.plain.give_up(call.ready.session.connection(), M::NAME);
        }
    }
}

impl<M: Method> Future for Sending<M> {
    type Output = Result<M::Result>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(rest) = &mut this.rest {
            return rest.as_mut().poll(cx);
        }
        let Some(call) = &mut this.call else {
            return Poll::Pending;
        };
        let is_new = this.plain.is_new();
        if is_new {
            call.prepare()?;
            this.listed = call.ready.listed();
        }
        let answer = match call.ready.outgoing::<M>() {
            Some(mut outgoing) if !is_new || outgoing.is_plain() => {
                Some(ready!(this.plain.poll(&mut outgoing, cx)))
            }
            _ => None,
        };
        match answer {
            // What has an outline is complete, and that is all that nearly all calls are.
            Some(Ok(result)) if result.outline.is_some() => {
                Poll::Ready(read::<M>(&call.ready.session, result))
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
