//! Sharing: sessions share cached answers, and stale ones are used when a server fails.

use oxmcp::{
    CacheMode, CacheOptions, Client, ClientSession, Limits, Result, Server,
    protocol::CacheHint,
    transport::{InMemory, Transport, in_memory},
};
use serde_json::json;
use tokio::time::{advance, sleep};

use crate::client::{
    cache::freshness::{SECOND, asked, listing, modern, tools},
    client, expect, refuse,
};
use crate::support::idle;

#[tokio::test(start_paused = true)]
async fn stale_answer_is_used_briefly_after_an_error() {
    for (stale_if_error, late, found) in [(10, 5, true), (10, 10, false), (0, 0, false)] {
        let options = CacheOptions {
            stale_if_error: SECOND * stale_if_error,
            ..CacheOptions::default()
        };
        let (mut peer, session) = modern(&client().cache(options)).await;
        asked(&mut peer, &session, tools("old", 60)).await;
        advance(SECOND * (60 + late)).await;
        let failed = json!({"code": -32603, "message": "no disk"});
        let wrong = json!({"code": -32602, "message": "no such thing"});
        for (error, helps) in [(failed, true), (wrong, false)] {
            let listed = listing(&session, CacheMode::Use);
            let request = expect(&mut peer, "tools/list").await;
            refuse(&mut peer, &request, error).await;
            let listed = listed.await.unwrap();
            assert_eq!(listed.is_ok(), found && helps, "{listed:?}");
        }
        // A call that refreshes gets no stale answer.
        let listed = listing(&session, CacheMode::Refresh);
        let request = expect(&mut peer, "tools/list").await;
        refuse(&mut peer, &request, json!({"code": -32603, "message": ""})).await;
        listed.await.unwrap().unwrap_err();
        // The server disconnects.
        drop(peer);
        sleep(SECOND / 100).await;
        assert_eq!(
            listing(&session, CacheMode::Use).await.unwrap().is_ok(),
            found
        );
        // The client closes the session.
        session.close().await.unwrap();
        let closed = listing(&session, CacheMode::Use).await.unwrap();
        assert!(closed.unwrap_err().is_closed());
    }
}

/// A transport that declares the peer's identity and the principal of the connection.
struct Named(InMemory, &'static str, Option<&'static str>);

impl Transport for Named {
    type Read = <InMemory as Transport>::Read;
    type Write = <InMemory as Transport>::Write;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        self.0.connect(limits).await
    }

    fn identity(&self) -> Option<String> {
        Some(self.1.into())
    }

    fn authorization(&self) -> Option<String> {
        self.2.map(Into::into)
    }
}

async fn named(
    client: &Client,
    server: &Server,
    name: &'static str,
    authorization: Option<&'static str>,
) -> ClientSession {
    let (near, far) = in_memory();
    server.connect(far).await.unwrap();
    client
        .connect(Named(near, name, authorization))
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn sessions_share_only_public_answers() {
    let ours = client();
    for (hint, shared) in [
        (CacheHint::public(SECOND * 60), [true, true, false, true]),
        (CacheHint::private(SECOND * 60), [true, false, false, false]),
    ] {
        let server = |tool: &str| Server::new("s", "1").tool(idle(tool)).cache_tools(hint);
        let name = if shared[1] { "public" } else { "private" };
        let first = named(&ours, &server("first"), name, Some("ann")).await;
        first.tools().all().await.unwrap();
        let cases = [
            (name, Some("ann")),
            (name, Some("bob")),
            ("other", Some("ann")),
            (name, None),
        ];
        for ((name, who), shared) in cases.into_iter().zip(shared) {
            let session = named(&ours, &server("second"), name, who).await;
            let tools = session.tools().all().await.unwrap();
            let expected = if shared { "first" } else { "second" };
            assert_eq!(tools[0].name, expected, "{hint:?} {name} {who:?}");
        }
        // Another client has its own cache.
        let theirs = named(&client(), &server("second"), name, Some("ann")).await;
        assert_eq!(theirs.tools().all().await.unwrap()[0].name, "second");
    }
}
