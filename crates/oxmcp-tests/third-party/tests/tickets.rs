//! Tickets between a client and a server in one process.

use oxmcp::{
    Client, ClientSession, ErrorCode, Extension, JsonSchema, RequestContext, Result, Revision,
    Server, SubscriptionEvent, Tool,
    protocol::{CallToolParams, ElicitFormParams, Notification, SubscriptionFilter},
    testing,
};
use serde_json::{Value, json};
use third_party::{
    client::{self, call},
    server::{self, Ticketed},
    wire::{
        Answered, CallOrTicket, Called, DESK, ID, LISTEN_KEY, Look, Number, Status, TICKETED, Tear,
    },
};
use tokio::sync::watch;

#[derive(serde::Deserialize, JsonSchema)]
struct Sure {
    sure: bool,
}

async fn stamp(cx: RequestContext) -> Result<String> {
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    cx.progress(1).message("the ink is wet").await;
    let Sure { sure } = cx.ask("sure", "Two stamps?").await?;
    Ok(format!("stamped, two: {sure}"))
}

fn desk() -> Extension {
    Extension::new(DESK)
}

/// A server with tools that return at once, that ask, that wait, and that fail.
fn office() -> (Server, watch::Receiver<bool>) {
    let (tell, is_cancelled) = watch::channel(false);
    let wait = move |cx: RequestContext| {
        let tell = tell.clone();
        async move {
            cx.cancelled().await;
            tell.send_replace(true);
            "nobody reads this"
        }
    };
    let fail = || async {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        Err::<String, _>(oxmcp::Error::invalid_params("no such form"))
    };
    let server = Server::new("office", "1.0.0")
        .extension(server::extension())
        .extension(desk())
        .tool(Tool::new("now", "Tell the time", || async { "noon" }).ticketed())
        .tool(Tool::new("stamp", "Stamp a form", stamp).ticketed())
        .tool(Tool::new("wait", "Wait", wait).ticketed())
        .tool(Tool::new("fail", "Fail", fail).ticketed());
    (server, is_cancelled)
}

/// A client that answers elicitations: it accepts, with `sure` false.
fn asked() -> Client {
    let accept = |_: ElicitFormParams| async { oxmcp::Accept(json!({"sure": false})) };
    Client::new("applicant", "1.0.0").on_elicit(accept)
}

async fn connect(server: &Server, extension: Extension) -> ClientSession {
    let client = asked().extension(extension);
    testing::connect(server).client(&client).await.unwrap()
}

fn tool(name: &str) -> CallToolParams {
    CallToolParams::new(name)
}

async fn ticket(session: &ClientSession, name: &str) -> u64 {
    let answer = session.request::<CallOrTicket>(tool(name));
    match answer.await.unwrap().read().unwrap() {
        Answered::Ticket(ticket) => ticket.number,
        Answered::Complete(result) => panic!("no ticket: {result:?}"),
    }
}

#[tokio::test]
async fn call_is_awaited_with_or_without_ticket() {
    let (server, _) = office();
    let session = connect(&server, client::extension()).await;
    let nothing = |_: &Value| panic!("a question");
    let now = call(&session, tool("now"), |_| panic!("a ticket"), nothing);
    assert_eq!(now.await.unwrap().to_text(), "noon");

    let mut seen = Vec::new();
    let hear = |ticket: &third_party::wire::Ticket| {
        seen.push((ticket.status.clone(), ticket.note.clone()));
    };
    let yes = |question: &Value| {
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], "Two stamps?");
        json!({"action": "accept", "content": {"sure": true}})
    };
    let stamped = call(&session, tool("stamp"), hear, yes).await.unwrap();
    assert_eq!(stamped.to_text(), "stamped, two: true");
    let wet = Some("the ink is wet".to_owned());
    assert!(seen.contains(&(Status::Asking, wet.clone())), "{seen:?}");
    assert_eq!(seen.last(), Some(&(Status::Served, wet)));

    let failed = call(&session, tool("fail"), |_| {}, nothing)
        .await
        .unwrap_err();
    assert!(failed.message().contains("no such form"), "{failed}");
}

#[tokio::test]
async fn torn_ticket_cancels_its_call_and_notifies_listeners() {
    let (server, mut is_cancelled) = office();
    let session = connect(&server, client::extension()).await;
    let number = ticket(&session, "wait").await;
    let other = ticket(&session, "wait").await;
    let filter = SubscriptionFilter::default().with_other(LISTEN_KEY, json!([number]));
    let mut changes = session.listen(filter).await.unwrap();
    for number in [other, number] {
        session.request::<Tear>(Number { number }).await.unwrap();
    }
    is_cancelled.wait_for(|it| *it).await.unwrap();
    let Some(SubscriptionEvent::Other { method, params, .. }) = changes.next().await else {
        panic!("nothing was heard");
    };
    let told: Value = serde_json::from_str(params.unwrap().get()).unwrap();
    assert_eq!(method, Called::NAME);
    assert_eq!(
        (&told["number"], &told["status"]),
        (&json!(number), &json!("torn"))
    );
    // The result of the torn ticket's call is dropped.
    let torn = session.request::<Look>(Number { number }).await.unwrap();
    assert!(torn.status == Status::Torn && torn.result.is_none());
    let unknown = session
        .request::<Look>(Number { number: 99 })
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::INVALID_PARAMS);
}

#[tokio::test]
async fn clients_without_the_extension_are_answered_normally() {
    let (server, _) = office();
    for extension in [None, Some(Extension::new(ID).calls::<Look>(..))] {
        for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
            let client = asked();
            let client = match &extension {
                // A client of the first revision, which this server does not support.
                Some(extension) => client.extension(extension.clone()),
                None => client,
            };
            let connecting = testing::connect(&server).client(&client);
            let session = connecting.revision(revision).await.unwrap();
            let stamped = session.call_tool("stamp", ()).await.unwrap();
            assert_eq!(stamped.to_text(), "stamped, two: false", "{revision}");
            let refused = session
                .request::<Look>(Number { number: 1 })
                .await
                .unwrap_err();
            let is_told = refused.is_unsupported()
                || refused.code() == ErrorCode::MISSING_CLIENT_CAPABILITY
                || refused.code() == ErrorCode::METHOD_NOT_FOUND;
            assert!(is_told, "{revision}: {refused}");
        }
    }
}

#[tokio::test]
async fn extension_declares_revision_and_marks_its_tools() {
    let (server, _) = office();
    let session = connect(&server, client::extension()).await;
    let declared = session.server_capabilities().extensions.clone();
    let declared = declared.and_then(|all| all.get(ID).cloned());
    assert_eq!(declared, Some(json!({"maxTickets": 100, "revision": "2"})));
    let tools = session.tools().all().await.unwrap();
    let marked = tools
        .iter()
        .filter(|it| it.meta.get(TICKETED) == Some(&json!(true)));
    assert_eq!(marked.count(), tools.len());
}

#[tokio::test]
async fn server_lacking_a_requirement_is_refused() {
    let now = || Tool::new("now", "Tell the time", || async { "noon" });
    let lacks = |server: Server| server.check().unwrap_err().message().to_owned();
    let server = || Server::new("office", "1.0.0");
    let without_desk = lacks(server().extension(server::extension()).tool(now()));
    assert!(
        without_desk.contains(ID) && without_desk.contains(DESK),
        "{without_desk}"
    );
    let without_tools = lacks(server().extension(desk()).extension(server::extension()));
    assert!(
        without_tools.contains(ID) && without_tools.contains("tools"),
        "{without_tools}"
    );
    let without_it = lacks(server().tool(now().ticketed()));
    assert!(without_it.contains(ID), "{without_it}");
    for extensions in [[desk(), server::extension()], [server::extension(), desk()]] {
        let server = extensions.into_iter().fold(server(), Server::extension);
        server.tool(now().ticketed()).check().unwrap();
    }
}

#[tokio::test]
async fn tickets_are_limited() {
    let (server, _) = office();
    let session = connect(&server, client::extension()).await;
    let mut numbers = Vec::new();
    for _ in 0..100 {
        numbers.push(ticket(&session, "wait").await);
    }
    session
        .request::<CallOrTicket>(tool("wait"))
        .await
        .unwrap_err();
    session
        .request::<Tear>(Number { number: numbers[7] })
        .await
        .unwrap();
    assert_eq!(ticket(&session, "wait").await, 101);
}
