//! A view that talks through a bridge to a server, in legacy and modern revisions.

use std::time::Instant;

use oxmcp::{ClientSession, Revision, protocol::Implementation};
use oxmcp_apps::host::{Action, AppBridge, HostCapabilities};
use serde_json::{Value, json};

use crate::{URI, clock, revisions, session};

/// A view, its bridge, and the session of the host.
struct Host {
    bridge: AppBridge,
    session: ClientSession,
    now: Instant,
}

impl Host {
    async fn new(revision: Revision) -> Self {
        let session = session(&clock(), revision).await;
        let mut capabilities = HostCapabilities::default();
        capabilities.server_tools = true;
        capabilities.server_resources = true;
        let tools = session.tools().all().await.unwrap();
        let bridge = AppBridge::new(Implementation::new("host", "1.0.0"), capabilities);
        let mut host = Self {
            bridge: bridge.tools(tools),
            session,
            now: tokio::time::Instant::now().into_std(),
        };
        host.request(0, "ui/initialize", json!({})).await;
        let initialized = json!({"jsonrpc": "2.0", "method": "ui/notifications/initialized"});
        host.bridge.receive(&initialized.to_string(), host.now);
        host
    }

    /// The answer to a request of the view.
    async fn request(&mut self, id: i64, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut actions = self.bridge.receive(&request.to_string(), self.now);
        while let Some(action) = actions.pop() {
            match action {
                Action::Send(answer) => {
                    let answer: Value = serde_json::from_str(&answer).unwrap();
                    assert_eq!(answer["id"], id);
                    return answer;
                }
                Action::Forward(request) => {
                    let answer = request.forward(&self.session).await;
                    actions.extend(self.bridge.answer(answer));
                }
                Action::Report(_) => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
        panic!("no answer")
    }
}

#[tokio::test]
async fn view_reaches_its_server() {
    for revision in revisions() {
        let mut host = Host::new(revision).await;
        let wound = host.request(1, "tools/call", json!({"name": "wind"})).await;
        assert_eq!(wound["result"]["content"][0]["text"], "wound", "{revision}");
        let page = host.request(2, "resources/read", json!({"uri": URI})).await;
        assert_eq!(page["result"]["contents"][0]["uri"], URI);
        let listed = host.request(3, "resources/list", json!({})).await;
        assert_eq!(listed["result"]["resources"][0]["uri"], URI);
        let templates = host.request(4, "resources/templates/list", json!({})).await;
        assert_eq!(templates["result"]["resourceTemplates"], json!([]));
        let tools = host.request(5, "tools/list", json!({})).await;
        let tools = tools["result"]["tools"].as_array().unwrap().clone();
        let names: Vec<_> = tools
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["now", "plain", "wind"]);
    }
}

#[tokio::test]
async fn view_gets_the_errors_of_its_server() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let mut host = Host::new(revision).await;
        let missing = host
            .request(1, "resources/read", json!({"uri": "ui://none"}))
            .await;
        assert!(missing["error"]["code"].is_i64(), "{missing}");
        // The server is asked for nothing that the view may not do.
        let refused = host.request(2, "tools/call", json!({"name": "stop"})).await;
        assert_eq!(refused["error"]["code"], -32000);
        let bad = host
            .request(3, "resources/list", json!({"cursor": "nonsense"}))
            .await;
        assert!(bad["error"]["message"].is_string());
        // The bridge goes on after errors.
        let fine = host.request(4, "tools/call", json!({"name": "now"})).await;
        assert_eq!(
            fine["result"]["content"][0]["text"],
            "ten past two, as shown"
        );
    }
}

#[tokio::test]
async fn lost_session_is_an_error_for_the_view() {
    let mut host = Host::new(Revision::LATEST).await;
    host.session.close().await.unwrap();
    let failed = host.request(1, "tools/call", json!({"name": "now"})).await;
    assert!(failed["error"]["message"].is_string(), "{failed}");
}
