//! Rounds that end before there is a result: by failures, by cancellation, by the end of the
//! session, and by timeouts.

use std::{future::IntoFuture, time::Duration};

use futures_util::FutureExt;
use oxmcp::{
    Accept, CancellationToken, Client, Error, Limits, RequestContext,
    middleware::{self, Next},
    protocol::{CreateMessageParams, CreateMessageResult, ElicitFormParams},
};
use serde_json::json;
use tokio::{
    sync::mpsc,
    task::yield_now,
    time::{Instant, sleep, timeout},
};

use crate::client::{
    answer, asks, calling, client, done, expect,
    requests::rounds::{MODERN, assert_silent, form, sample},
    session_of,
};

/// A client whose user takes an hour and reports the cancellation, and whose model fails at once.
fn slow_user() -> (Client, mpsc::Receiver<&'static str>) {
    let (sender, heard) = mpsc::channel(8);
    let client = client()
        .on_elicit(move |_: ElicitFormParams, cx: RequestContext| {
            let sender = sender.clone();
            async move {
                sender.send("asked").await.unwrap();
                tokio::select! {
                    () = sleep(Duration::from_secs(3600)) => {}
                    () = cx.cancelled() => sender.send("cancelled").await.unwrap(),
                }
                Accept(json!({"name": "late"}))
            }
        })
        .on_sample(|_: CreateMessageParams| async {
            Err::<CreateMessageResult, _>(Error::protocol(-1, "User rejected sampling request"))
        });
    (client, heard)
}

/// The next report of the handler, if there is one.
async fn next(heard: &mut mpsc::Receiver<&'static str>) -> Option<&'static str> {
    timeout(Duration::from_secs(60), heard.recv()).await.ok()?
}

#[tokio::test(start_paused = true)]
async fn first_failure_ends_other_questions_and_the_call() {
    let (client, mut heard) = slow_user();
    let (mut peer, session, _) = session_of(client, MODERN).await;
    let call = calling(&session);
    let request = expect(&mut peer, "tools/call").await;
    answer(
        &mut peer,
        &request,
        asks(json!({"a": form(), "b": sample()})),
    )
    .await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(
        (error.code().value(), error.message()),
        (-1, "User rejected sampling request")
    );
    assert_eq!(next(&mut heard).await, Some("asked"));
    assert_eq!(next(&mut heard).await, Some("cancelled"));
    assert_silent(&mut peer).await;
}

/// The error of a call that is ended while the user is asked.
async fn ended(end: impl AsyncFnOnce(&CancellationToken, oxmcp::ClientSession)) -> Error {
    let (client, mut heard) = slow_user();
    let (mut peer, session, _) = session_of(client, MODERN).await;
    let token = CancellationToken::new();
    let call = session.call_tool("t", ()).cancel_with(token.clone());
    let call = tokio::spawn(call.into_future());
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, asks(json!({"a": form()}))).await;
    assert_eq!(next(&mut heard).await, Some("asked"));
    end(&token, session).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(next(&mut heard).await, Some("cancelled"));
    error
}

#[tokio::test(start_paused = true)]
async fn token_or_session_end_cancels_the_questions() {
    let start = Instant::now();
    let error = ended(async |token, session| {
        token.cancel();
        drop(session);
    });
    assert!(error.await.is_cancelled());
    let error = ended(async |_, session| {
        tokio::spawn(async move { session.close().await });
    });
    assert!(error.await.is_closed());
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn dropped_call_cancels_the_questions() {
    let (client, mut heard) = slow_user();
    let (mut peer, session, _) = session_of(client, MODERN).await;
    let call = calling(&session);
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, asks(json!({"a": form()}))).await;
    assert_eq!(next(&mut heard).await, Some("asked"));
    call.abort();
    assert_eq!(next(&mut heard).await, Some("cancelled"));
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn deadline_pauses_during_questions_but_maximum_does_not() {
    let (client, _heard) = slow_user();
    let (mut peer, session, _) = session_of(client, MODERN).await;
    for (max_total, succeeds) in [(10_000, true), (1_000, false)] {
        let start = Instant::now();
        let call = session
            .call_tool("t", ())
            .timeout(Duration::from_secs(30))
            .max_total(Duration::from_secs(max_total));
        let call = tokio::spawn(call.into_future());
        let request = expect(&mut peer, "tools/call").await;
        answer(&mut peer, &request, asks(json!({"a": form()}))).await;
        if succeeds {
            let again = expect(&mut peer, "tools/call").await;
            sleep(Duration::from_secs(29)).await;
            answer(&mut peer, &again, done()).await;
            call.await.unwrap().unwrap();
            assert_eq!(start.elapsed(), Duration::from_secs(3629));
        } else {
            let error = call.await.unwrap().unwrap_err();
            assert!(
                error.is_timeout() && error.message().contains("1000s"),
                "{error}"
            );
            assert_eq!(start.elapsed(), Duration::from_secs(max_total));
        }
    }
    // A round that is not answered times out as any call does, and is cancelled on the wire.
    let call = session.call_tool("t", ()).timeout(Duration::from_secs(30));
    let call = tokio::spawn(call.into_future());
    let request = expect(&mut peer, "tools/call").await;
    let state = json!({"resultType": "input_required", "requestState": "s"});
    answer(&mut peer, &request, state).await;
    let again = expect(&mut peer, "tools/call").await;
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error.is_timeout() && error.message().contains("30s"),
        "{error}"
    );
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], again["id"]);
}

/// A client whose user takes a second.
fn user() -> Client {
    client().on_elicit(|_: ElicitFormParams| async {
        sleep(Duration::from_secs(1)).await;
        Accept(json!({"name": "Ann"}))
    })
}

#[tokio::test(start_paused = true)]
async fn closing_session_lets_a_call_finish_its_rounds() {
    for middleware in [false, true] {
        let client = if middleware {
            let pass = |request, next: Next| async move { next.run(request).await };
            user().outgoing_layer(middleware::from_fn(pass))
        } else {
            user()
        };
        // The session is closed before the server asks, once it has asked, while the user is asked, and after that.
        for closed in 0..4 {
            let (mut peer, session, _) = session_of(client.clone(), MODERN).await;
            let call = calling(&session);
            let start = Instant::now();
            let close = || {
                let session = session.clone();
                tokio::spawn(async move { session.close().await })
            };
            let mut closing = Vec::new();
            let request = expect(&mut peer, "tools/call").await;
            if closed == 0 {
                closing.push(close());
                yield_now().await;
            }
            answer(&mut peer, &request, asks(json!({"a": form()}))).await;
            if closed == 1 {
                closing.push(close());
            }
            if closed == 2 {
                sleep(Duration::from_millis(500)).await;
                closing.push(close());
            }
            let again = expect(&mut peer, "tools/call").await;
            if closed == 3 {
                closing.push(close());
                yield_now().await;
            }
            let once_more = asks(json!({"a": form()}));
            answer(&mut peer, &again, once_more).await;
            let again = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &again, done()).await;
            call.await.unwrap().unwrap();
            for closing in closing {
                closing.await.unwrap().unwrap();
            }
            assert_eq!(start.elapsed(), Duration::from_secs(2), "{closed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn closing_session_waits_as_long_for_rounds() {
    let (client, mut heard) = slow_user();
    let (mut peer, session, _) = session_of(client, MODERN).await;
    let call = calling(&session);
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, asks(json!({"a": form()}))).await;
    assert_eq!(next(&mut heard).await, Some("asked"));
    let start = Instant::now();
    session.close().await.unwrap();
    assert_eq!(start.elapsed(), Limits::default().drain);
    assert!(call.await.unwrap().unwrap_err().is_closed());
    assert_eq!(next(&mut heard).await, Some("cancelled"));

    // A manual call ends with its first answer, whether the caller reads the answer or not.
    for looks in [true, false] {
        let (mut peer, session, _) = session_of(user(), MODERN).await;
        let mut call = Box::pin(session.call_tool("t", ()).manual());
        assert!((&mut call).now_or_never().is_none());
        let request = expect(&mut peer, "tools/call").await;
        let start = Instant::now();
        let closing = tokio::spawn({
            let session = session.clone();
            async move { session.close().await }
        });
        yield_now().await;
        answer(&mut peer, &request, asks(json!({"a": form()}))).await;
        if looks {
            call.await.unwrap();
        } else {
            yield_now().await;
            drop(call);
        }
        closing.await.unwrap().unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO, "{looks}");
    }
}
