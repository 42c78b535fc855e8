//! Metrics of requests and sessions, as exported by the OpenTelemetry SDK.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

use std::{collections::BTreeSet, future::pending, time::Duration};

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
    data::{AggregatedMetrics, MetricData},
};
use oxmcp::{Client, Revision, Server, Tool, ToolError, testing::connect};
use oxmcp_opentelemetry::Metrics;
use serde_json::json;

struct Recorded {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
    metrics: Metrics,
}

impl Recorded {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        let metrics = Metrics::with_meter(&provider.meter("test"));
        Self {
            provider,
            exporter,
            metrics,
        }
    }

    /// The time series of a metric: their attributes, and the number of values.
    fn series(&self, name: &str) -> BTreeSet<String> {
        self.provider.force_flush().unwrap();
        let exported = self.exporter.get_finished_metrics().unwrap();
        let last = exported.last().unwrap();
        let metrics = last.scope_metrics().flat_map(|scope| scope.metrics());
        let mut all = BTreeSet::new();
        for metric in metrics.filter(|metric| metric.name() == name) {
            assert_eq!(metric.unit(), "s");
            let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
                panic!("{name} is no histogram");
            };
            for point in histogram.data_points() {
                let mut attributes: Vec<_> = point
                    .attributes()
                    .map(|it| format!("{}={}", it.key, it.value))
                    .collect();
                attributes.sort();
                all.insert(format!("{} x{}", attributes.join(" "), point.count()));
            }
        }
        all
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_recorded_by_both_sides() {
    for revision in Revision::ALL {
        let recorded = Recorded::new();
        let fails = Tool::new("fails", "Fail", || async {
            Err::<(), _>(ToolError::new("no"))
        });
        let stuck = Tool::new("stuck", "Never end", || async { pending::<()>().await });
        let server = Server::new("s", "1")
            .layer(recorded.metrics.incoming())
            .tool(Tool::new("add", "Add", || async { 3 }))
            .tools([fails, stuck]);
        let client = Client::new("c", "1").outgoing_layer(recorded.metrics.outgoing());
        let client = client.revisions([revision]);
        let session = connect(&server).client(&client).await.unwrap();
        for tool in ["add", "add", "fails"] {
            session.call_tool(tool, json!({})).await.unwrap();
        }
        for unknown in 0..20 {
            let call = session.call_tool(format!("unknown_{unknown}"), json!({}));
            call.await.unwrap_err();
        }
        let stuck = session.call_tool("stuck", json!({}));
        stuck.timeout(Duration::from_secs(5)).await.unwrap_err();
        tokio::time::sleep(Duration::from_secs(10)).await;
        for (name, end, version) in [
            (
                "mcp.server.operation.duration",
                "cancelled",
                format!(" mcp.protocol.version={revision}"),
            ),
            ("mcp.client.operation.duration", "timeout", String::new()),
        ] {
            let mut series = recorded.series(name);
            series.retain(|it| it.contains("tools/call"));
            let call = format!(
                "gen_ai.operation.name=execute_tool gen_ai.tool.name=TOOL mcp.method.name=tools/call{version}"
            );
            let call = |tool: &str| call.replace("TOOL", tool);
            let expected = [
                format!("{} x2", call("add")),
                format!("error.type=tool_error {} x1", call("fails")),
                format!("error.type={end} {} x1", call("stuck")),
                format!(
                    "error.type=-32602 {} rpc.response.status_code=-32602 x20",
                    call("_OTHER")
                ),
            ];
            assert_eq!(series, BTreeSet::from(expected), "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_are_recorded_at_their_end() {
    let recorded = Recorded::new();
    let server = Server::new("s", "1").layer(recorded.metrics.incoming());
    let connecting = connect(&server).revision(Revision::LATEST_LEGACY);
    let session = connecting.await.unwrap();
    let timer = recorded.metrics.client_session();
    session.ping().await.unwrap();
    session.close().await.unwrap();
    drop(timer);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let version = format!("mcp.protocol.version={} x1", Revision::LATEST_LEGACY);
    assert_eq!(
        recorded.series("mcp.server.session.duration"),
        BTreeSet::from([version])
    );
    assert_eq!(
        recorded.series("mcp.client.session.duration"),
        BTreeSet::from([" x1".to_owned()])
    );
    let pings = recorded.series("mcp.server.operation.duration");
    assert!(
        pings.iter().any(|it| it.contains("mcp.method.name=ping")),
        "{pings:?}"
    );
}
