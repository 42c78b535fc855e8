//! Log messages outside of any request.

use oxmcp::{
    Result, Revision,
    protocol::{LoggingLevel, LoggingMessageParams},
};
use serde_json::json;

use crate::server::logging::messages::{MESSAGE, chatty, client};
use crate::support::{LEGACY, script};

#[tokio::test]
async fn q1_a_session_can_be_told_outside_any_request() -> Result<()> {
    let say = |level| {
        LoggingMessageParams::new(level, &"hello")
            .unwrap()
            .with_logger("doors")
    };
    for revision in LEGACY {
        let server = chatty().logging();
        let mut peer = client(&server, revision).await;
        let session = server.sessions().next().unwrap();
        session.log(say(LoggingLevel::Debug)).await?;
        session.log(say(LoggingLevel::Notice)).await?;
        let heard = peer.receive().await?;
        assert_eq!(heard["method"], MESSAGE);
        assert_eq!(
            heard["params"],
            json!({"level": "notice", "logger": "doors", "data": "hello"})
        );
    }

    let server = chatty().logging();
    let _peer = script(&server).await;
    let session = server.sessions().next().unwrap();
    let modern = session.log(say(LoggingLevel::Alert)).await.unwrap_err();
    assert!(
        modern.is_unsupported() && modern.message().contains("RequestContext::log"),
        "{modern}"
    );

    let server = chatty();
    let _peer = client(&server, Revision::V2025_11_25).await;
    let session = server.sessions().next().unwrap();
    let undeclared = session.log(say(LoggingLevel::Alert)).await.unwrap_err();
    assert!(
        undeclared.message().contains("Server::logging()"),
        "{undeclared}"
    );
    Ok(())
}
