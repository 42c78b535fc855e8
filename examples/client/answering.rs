//! A client with handlers for elicitation, sampling and roots. The same handlers work with servers of every revision.
//!
//! `cargo run --example answering`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]
#![expect(clippy::indexing_slicing, reason = "missing JSON members are null")]

use oxmcp::{
    Accept, Client, RequestContext, Result, Revision,
    protocol::{CreateMessageParams, CreateMessageResult, ElicitFormParams, Root, SamplingContent},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};

/// The user's input to the form. Fields without a value get the form's defaults.
#[derive(serde::Serialize)]
struct Order {
    tea: &'static str,
    cups: Option<u8>,
}

/// The elicitation handler. A real client would show the form and the name of the server, and wait for the user.
async fn show_form(form: ElicitFormParams, cx: RequestContext) -> Accept<Order> {
    let server = cx.peer_info().map_or("a server", |info| &info.name);
    println!("  {server} asks the user: {}", form.message);
    Accept(Order {
        tea: "green",
        cups: None,
    })
}

/// The sampling handler. A real client would ask the user for permission, and then call a model.
async fn ask_model(asked: CreateMessageParams) -> CreateMessageResult {
    let pieces = asked.messages.iter().flat_map(|message| &message.content);
    let said: Vec<&str> = pieces.filter_map(SamplingContent::as_text).collect();
    println!("  the model is asked: {}", said.join(" "));
    CreateMessageResult::new("parrot", said.join(" "))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let client = Client::new("answering", "1.0.0")
        .on_elicit(show_form)
        .on_sample(ask_model)
        .roots([Root::new("file:///home/me/teahouse").with_name("Teahouse")]);

    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        println!("A server of {revision}:");
        let (peer, transport) = ScriptedPeer::new().await;
        let server = tokio::spawn(serve(peer, revision));
        let client = client.clone().revisions([revision]);
        let session = client.connect(transport).await?;
        session.call_tool("order", ()).await?;
        for answer in server.await.expect("the script does not panic")? {
            println!("  => {answer}");
        }
    }
    Ok(())
}

/// The questions that the server asks during the call of its tool, as `(key, method, params)`.
fn questions() -> [(&'static str, &'static str, Value); 3] {
    let tea = json!({"type": "string", "enum": ["black", "green"]});
    let fields = json!({"tea": tea, "cups": {"type": "integer", "default": 2}});
    let form = json!({"type": "object", "properties": fields, "required": ["tea"]});
    let said = json!({"role": "user", "content": {"type": "text", "text": "Polly wants tea"}});
    [
        (
            "advice",
            "sampling/createMessage",
            json!({"messages": [said], "maxTokens": 20}),
        ),
        (
            "order",
            "elicitation/create",
            json!({"message": "Which tea?", "requestedSchema": form}),
        ),
        ("roots", "roots/list", json!({})),
    ]
}

/// A scripted server. Legacy servers send the questions as requests; modern servers return them as the result of the call.
async fn serve(mut peer: ScriptedPeer, revision: Revision) -> Result<Vec<Value>> {
    let result = |id: &Value, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    if revision.is_modern() {
        // A client with only this revision sends no opening request, so the first request is the call.
        let call = peer.receive().await?["id"].clone();
        let asked = questions().map(|(key, method, params)| {
            (key.to_owned(), json!({"method": method, "params": params}))
        });
        let asked = serde_json::Map::from_iter(asked);
        let asked = json!({"resultType": "input_required", "inputRequests": asked});
        let again = peer.ask(result(&call, asked)).await?;
        peer.send(result(&again["id"], json!({"content": []})))
            .await?;
        let answer = |(key, ..): (&str, _, _)| again["params"]["inputResponses"][key].clone();
        return Ok(questions().map(answer).into());
    }
    let opening = peer.receive().await?["id"].clone();
    let info = json!({"name": "teahouse", "version": "1.0.0"});
    let opened = json!({"protocolVersion": revision, "capabilities": {}, "serverInfo": info});
    peer.send(result(&opening, opened)).await?;
    peer.receive().await?; // notifications/initialized
    let call = peer.receive().await?["id"].clone();
    let mut answers = Vec::new();
    for (key, method, params) in questions() {
        let asked = json!({"jsonrpc": "2.0", "id": key, "method": method, "params": params});
        answers.push(peer.ask(asked).await?["result"].clone());
    }
    peer.send(result(&call, json!({"content": []}))).await?;
    Ok(answers)
}
