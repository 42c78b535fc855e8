//! Shared state: the first argument of any handler.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{
    Client, CompletionInput, JsonSchema, Prompt, RequestContext, Resource, ResourceTemplate,
    Revision, Server, Tool, ToolError,
    protocol::{ElicitAction, ElicitFormParams, LoggingLevel},
    testing, with_state,
};
use serde_json::json;

/// A state that counts its uses.
#[derive(Default)]
struct Db(AtomicUsize);

impl Db {
    fn say(&self, what: &str) -> String {
        format!("{what} {}", self.0.fetch_add(1, Ordering::Relaxed))
    }

    async fn method(self: Arc<Self>) -> String {
        self.say("method")
    }
}

#[derive(serde::Deserialize, JsonSchema)]
struct Query {
    sql: String,
}

async fn query(db: Arc<Db>, Query { sql }: Query) -> oxmcp::Result<String> {
    Ok(db.say(&sql))
}

async fn query_in(db: Arc<Db>, cx: RequestContext, Query { sql }: Query) -> String {
    db.say(&format!("{sql} in {}", cx.revision()))
}

async fn status(db: Arc<Db>) -> String {
    db.say("status")
}

async fn status_in(db: Arc<Db>, cx: RequestContext) -> String {
    db.say(cx.revision().as_str())
}

async fn tables(db: Arc<Db>, completing: CompletionInput) -> Vec<String> {
    vec![db.say(&completing.value)]
}

async fn tables_in(db: Arc<Db>, cx: RequestContext, completing: CompletionInput) -> Vec<String> {
    tables(db, completing.clone())
        .await
        .into_iter()
        .map(|table| format!("{table} in {}", cx.revision()))
        .collect()
}

fn server(db: &Arc<Db>) -> Server {
    let db = || Arc::clone(db);
    let closure = |db: Arc<Db>, Query { sql }: Query| async move { db.say(&sql) };
    Server::new("database", "1.0.0")
        .tools([
            Tool::new("query", "", with_state(db(), query)),
            Tool::new("query_in", "", with_state(db(), query_in)),
            Tool::new("status", "", with_state(db(), status)),
            Tool::new("status_in", "", with_state(db(), status_in)),
            Tool::new("closure", "", with_state(db(), closure)),
            Tool::new("method", "", with_state(db(), Db::method)),
        ])
        .prompt(
            Prompt::new("ask", "", with_state(db(), query))
                .complete("sql", with_state(db(), tables)),
        )
        .prompt(Prompt::new("ask_in", "", with_state(db(), query_in)))
        .prompt(Prompt::new("hello", "", with_state(db(), status)))
        .prompt(Prompt::new("hello_in", "", with_state(db(), status_in)))
        .resource(Resource::new("db:status", "s", with_state(db(), status)))
        .resource(Resource::new("db:in", "i", with_state(db(), status_in)))
        .resource_template(
            ResourceTemplate::new("query:{sql}", "q", with_state(db(), query))
                .complete("sql", with_state(db(), tables_in)),
        )
        .resource_template(ResourceTemplate::new(
            "in:{sql}",
            "i",
            with_state(db(), query_in),
        ))
}

/// The same server, with a state that is given once.
fn scoped(db: &Arc<Db>) -> Server {
    let closure = |db: Arc<Db>, Query { sql }: Query| async move { db.say(&sql) };
    Server::new("database", "1.0.0").state(Arc::clone(db), |s| {
        s.tool(query_tool::tool)
            .tools([query_in_tool::tool, status_tool::tool])
            .tool(status_in_tool::tool(s.state()))
            .tool(Tool::new("closure", "", s.with_state(closure)))
            .tool(Tool::new("method", "", s.with_state(Db::method)))
            .prompt(
                Prompt::new("ask", "", s.with_state(query)).complete("sql", s.with_state(tables)),
            )
            .prompts([
                Prompt::new("ask_in", "", s.with_state(query_in)),
                Prompt::new("hello", "", s.with_state(status)),
                Prompt::new("hello_in", "", s.with_state(status_in)),
            ])
            .resource(status_resource::resource)
            .resources([Resource::new("db:in", "i", s.with_state(status_in))])
            .resource_template(
                ResourceTemplate::new("query:{sql}", "q", s.with_state(query))
                    .complete("sql", s.with_state(tables_in)),
            )
            .resource_templates([in_template::template])
    })
}

/// Query.
#[oxmcp::tool(name("query"))]
async fn query_tool(#[state] db: Arc<Db>, sql: String) -> oxmcp::Result<String> {
    query(db, Query { sql }).await
}

/// Query.
#[oxmcp::tool(name("query_in"))]
async fn query_in_tool(#[state] db: Arc<Db>, cx: RequestContext, sql: String) -> String {
    query_in(db, cx, Query { sql }).await
}

/// Tell whether it is up.
#[oxmcp::tool(name("status"))]
async fn status_tool(#[state] db: Arc<Db>) -> String {
    status(db).await
}

/// Tell whether it is up.
#[oxmcp::tool(name("status_in"))]
async fn status_in_tool(#[state] db: Arc<Db>, cx: RequestContext) -> String {
    status_in(db, cx).await
}

#[oxmcp::resource("db:status")]
async fn status_resource(#[state] db: Arc<Db>) -> String {
    status(db).await
}

#[oxmcp::resource("in:{sql}")]
async fn in_template(#[state] db: Arc<Db>, cx: RequestContext, sql: String) -> String {
    query_in(db, cx, Query { sql }).await
}

#[tokio::test]
async fn handlers_of_every_kind_share_one_state() {
    let each_way = |revision| [server, scoped].map(|make| (revision, make));
    for (revision, make) in Revision::ALL.into_iter().flat_map(each_way) {
        let db = Arc::new(Db::default());
        let server = make(&db);
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let mut said = Vec::new();
        let sql = json!({"sql": "a"});
        for (name, arguments) in [
            ("query", &sql),
            ("query_in", &sql),
            ("status", &json!({})),
            ("status_in", &json!({})),
            ("closure", &sql),
            ("method", &json!({})),
        ] {
            let result = session.call_tool(name, arguments).await.unwrap();
            said.push(result.content[0].as_text().unwrap().to_owned());
        }
        for (name, arguments) in [
            ("ask", Some(("sql", "p"))),
            ("ask_in", Some(("sql", "p"))),
            ("hello", None),
            ("hello_in", None),
        ] {
            let prompt = session.get_prompt(name, arguments).await.unwrap();
            let text = prompt.messages[0].content.as_text().unwrap();
            said.push(text.to_owned());
        }
        for uri in ["db:status", "db:in", "query:r", "in:r"] {
            let read = session.read_resource(uri).await.unwrap();
            said.push(read.contents[0].as_text().unwrap().to_owned());
        }
        let topics = session.complete_prompt("ask", "sql", "c").await.unwrap();
        said.extend(topics.completion.values);
        let topics = session.complete_resource("query:{sql}", "sql", "c");
        said.extend(topics.await.unwrap().completion.values);

        let expected = [
            "a", "a in REV", "status", "REV", "a", "method", //
            "p", "p in REV", "status", "REV", //
            "status", "REV", "r", "r in REV", "c",
        ];
        let mut expected: Vec<_> = (expected.iter().enumerate())
            .map(|(n, what)| format!("{} {n}", what.replace("REV", revision.as_str())))
            .collect();
        expected.push(format!("c 15 in {revision}"));
        assert_eq!(said, expected);
    }
}

/// A state that is not shared shows that each call gets its own clone.
#[tokio::test]
async fn state_is_cloned_for_each_call() {
    async fn push(mut list: Vec<u8>) -> usize {
        list.push(0);
        list.len()
    }
    let server =
        Server::new("list", "1.0.0").tool(Tool::new("push", "", with_state(vec![7], push)));
    let session = testing::connect(&server).await.unwrap();
    for _ in 0..2 {
        let len: usize = session.call_tool("push", ()).structured().await.unwrap();
        assert_eq!(len, 2);
    }
}

/// The schema covers the input alone, and a handler that takes the context can ask.
#[tokio::test]
async fn tool_with_state_is_listed_normally_and_asks() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Sure {}
    async fn drop(
        db: Arc<Db>,
        cx: RequestContext,
        Query { sql }: Query,
    ) -> Result<String, ToolError> {
        let Sure {} = cx.ask("sure", "Sure?").await?;
        Ok(db.say(&sql))
    }
    async fn answer(asked: Arc<Db>, _params: ElicitFormParams) -> ElicitAction {
        asked.say("asked");
        ElicitAction::Accept
    }
    let (db, asked) = (Arc::new(Db::default()), Arc::new(Db::default()));
    let server = Server::new("database", "1.0.0").tools([
        Tool::new("drop", "", with_state(db, drop)),
        Tool::new("without", "", |Query { sql }: Query| async move { sql }),
    ]);
    let client = Client::new("tests", "1.0.0").on_elicit(with_state(Arc::clone(&asked), answer));
    let session = testing::connect(&server).client(&client).await.unwrap();
    let tools = session.tools().all().await.unwrap();
    assert_eq!(tools[0].input_schema.get(), tools[1].input_schema.get());
    let dropped = session
        .call_tool("drop", json!({"sql": "all"}))
        .await
        .unwrap();
    assert_eq!(dropped.content[0].as_text(), Some("all 0"));
    assert_eq!(asked.0.load(Ordering::Relaxed), 1);
}

/// Hooks take the state as well, and features that are added later belong to the same server.
#[tokio::test]
async fn hooks_on_both_sides_receive_state_first() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Sure {}
    async fn drop(_db: Arc<Db>, cx: RequestContext) -> Result<(), ToolError> {
        cx.log(LoggingLevel::Info, "asking").await;
        let Sure {} = cx.ask("sure", "Sure?").await?;
        Ok(())
    }
    async fn answer(app: Arc<Db>, _params: ElicitFormParams) -> ElicitAction {
        app.say("asked");
        ElicitAction::Accept
    }
    let (db, app) = (Arc::new(Db::default()), Arc::new(Db::default()));
    let server = Server::new("database", "1.0.0")
        .state(Arc::clone(&db), |s| {
            s.on_initialized(|db, _session| async move {
                db.say("initialized");
            })
            .on_subscribe(
                |db, _cx, uri| async move {
                    db.say(&uri);
                    Ok(())
                },
                |db, _session, uri| async move {
                    db.say(&uri);
                },
            )
            .tool(Tool::new("drop", "", s.with_state(drop)))
        })
        .logging()
        .resource(Resource::text("db:1", "one", "1"));
    let logged = Arc::new(tokio::sync::Semaphore::new(0));
    let client = Client::new("tests", "1.0.0")
        .log_level(LoggingLevel::Info)
        .state((Arc::clone(&app), Arc::clone(&logged)), |s| {
            s.on_log(|(app, logged), _message, _session| async move {
                app.say("logged");
                logged.add_permits(1);
            })
        })
        .state(Arc::clone(&app), |s| s.on_elicit(answer));
    let session = testing::connect(&server)
        .client(&client)
        .revision(Revision::LATEST_LEGACY)
        .await
        .unwrap();
    session.call_tool("drop", ()).await.unwrap();
    let _permit = logged.acquire().await.unwrap();
    session.subscribe("db:1").await.unwrap();
    session.unsubscribe("db:1").await.unwrap();
    assert_eq!(app.0.load(Ordering::Relaxed), 2);
    assert_eq!(db.0.load(Ordering::Relaxed), 3);
}
