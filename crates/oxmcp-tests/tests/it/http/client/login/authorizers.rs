//! Custom authorizers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ::http::{HeaderMap, header::AUTHORIZATION};
use oxmcp::http::{Authorizer, RefusedRequest, RequestToAuthorize};

use super::*;

/// An authorizer that gives a wrong token until it was refused `is_good_after` times.
struct Counting {
    refusals: Arc<AtomicUsize>,
    is_good_after: usize,
    web: Web,
}

impl Authorizer for Counting {
    async fn authorize(&self, request: RequestToAuthorize<'_>) -> Result<HeaderMap> {
        assert_eq!(request.url, MCP);
        let token = if self.refusals.load(Ordering::Relaxed) >= self.is_good_after {
            self.web.fake().grant()
        } else {
            "wrong".to_owned()
        };
        let value = format!("Bearer {token}").parse().unwrap();
        Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }

    async fn refused(&self, refused: RefusedRequest<'_>) -> Result<bool> {
        assert_eq!(refused.operation, "initialize");
        assert_eq!(refused.authorized_by[AUTHORIZATION], "Bearer wrong");
        assert_eq!(
            refused.refused_before,
            self.refusals.load(Ordering::Relaxed)
        );
        self.refusals.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}

async fn refused(is_good_after: usize) -> (Result<ClientSession>, usize) {
    let refusals = Arc::new(AtomicUsize::new(0));
    let web = Web::new();
    let authorizer = Counting {
        refusals: Arc::clone(&refusals),
        is_good_after,
        web: web.clone(),
    };
    let endpoint = Endpoint::new(MCP).http_client(web).authorizer(authorizer);
    let session = client().connect(endpoint).await;
    (session, refusals.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn request_is_retried_with_authorizers_new_credentials() {
    let (session, refusals) = refused(2).await;
    call(&session.unwrap(), "add").await.unwrap();
    assert_eq!(refusals, 2);
}

#[tokio::test(start_paused = true)]
async fn request_is_sent_at_most_five_times() {
    let (session, refusals) = refused(100).await;
    assert!(session.unwrap_err().is_unauthorized());
    assert_eq!(refusals, 4);
}
