//! Questions of servers: one handler answers all, and knows which server asks.

use oxmcp::{
    Accept, RequestContext, Server, Tool, ToolError,
    protocol::{CreateMessageParams, CreateMessageResult, ElicitFormParams, Root},
};

use crate::support::{Name, Remote, clients, connect, say};

/// A server that asks for a name, for the model, and for the roots.
fn asking(name: &str) -> Server {
    let tool = Tool::new("ask", "Asks", |cx: RequestContext| async move {
        let form: Name = cx.ask("name", "Your name?").await?;
        let sampled = cx
            .sample("model", CreateMessageParams::new(vec![], 10))
            .await?;
        let roots = cx.roots().await?;
        let said = serde_json::to_string(&sampled.content).unwrap_or_default();
        let roots: Vec<_> = roots.into_iter().map(|it| it.uri).collect();
        Ok::<_, ToolError>(format!("{} {said} {roots:?}", form.name))
    });
    Server::new(name, "1.0.0").tool(tool)
}

#[tokio::test(start_paused = true)]
async fn one_handler_answers_all_servers() {
    for client in clients() {
        let client = client
            .on_elicit(|_: ElicitFormParams, cx: RequestContext| async move {
                let name = cx.server_label().unwrap_or_default();
                Accept(Name { name })
            })
            .on_sample(|_: CreateMessageParams, cx: RequestContext| async move {
                let said = format!("for {}", cx.server_label().unwrap_or_default());
                CreateMessageResult::new("model", said)
            })
            .roots([Root::new("file:///tea")]);
        // Both servers claim the same name: the label is the host's.
        let (first, second) = (Remote::new(asking("bank")), Remote::new(asking("bank")));
        let group = connect(client, &[("first", &first), ("second", &second)]).await;
        for label in ["first", "second"] {
            let answer = say(&group, &format!("{label}_ask")).await.unwrap();
            assert!(answer.starts_with(&format!("{label} ")), "{answer}");
            assert!(answer.contains(&format!("for {label}")), "{answer}");
            assert!(answer.contains("file:///tea"), "{answer}");
        }
        group.add_roots([Root::new("file:///more")]).unwrap();
        assert!(
            say(&group, "second_ask")
                .await
                .unwrap()
                .contains("file:///more")
        );
        group.remove_roots(["file:///tea"]);
        assert!(
            !say(&group, "first_ask")
                .await
                .unwrap()
                .contains("file:///tea")
        );
    }
}
