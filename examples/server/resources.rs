//! Resources: static, computed on each read, or many from a template; and subscriptions to their updates.
//!
//! `cargo run --example resources`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::sync::{
    Arc,
    atomic::{AtomicI32, Ordering},
};

use oxmcp::{
    JsonSchema, Resource, ResourceTemplate, Result, Server, protocol::SubscriptionFilter, testing,
};
use serde_json::json;

/// The variables of the template. The handler never gets a URI with missing or invalid values.
#[derive(serde::Deserialize, JsonSchema)]
struct Forecast {
    city: String,
    day: Day,
    /// Round to a multiple of this many degrees
    round_to: Option<i32>,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Day {
    Today,
    Tomorrow,
}

/// Returns `None` if the resource does not exist.
async fn forecast(
    Forecast {
        city,
        day,
        round_to,
    }: Forecast,
) -> Option<String> {
    let degrees = match &*city {
        "Paris" => 23,
        "São Paulo" => 31,
        _ => return None,
    };
    let step = round_to.unwrap_or(1).max(1);
    Some(format!("{day:?} in {city}: {} °C", degrees / step * step))
}

fn server(celsius: Arc<AtomicI32>) -> Server {
    let now = move || {
        let celsius = celsius.load(Ordering::Relaxed);
        async move { format!("{celsius} °C") }
    };
    let forecast = ResourceTemplate::new("weather://{city}/{day}{?round_to}", "forecast", forecast)
        .description("The forecast for a city")
        .complete("city", ["Paris", "São Paulo"]);
    Server::new("weather", "1.0.0")
        .resource(Resource::text(
            "weather://about",
            "about",
            "Made of thin air.",
        ))
        .resource(Resource::new("weather://now", "now", now).mime_type("text/plain"))
        .resource_template(forecast)
        // Lets clients subscribe to resources.
        .subscriptions()
}

#[tokio::main]
async fn main() -> Result<()> {
    let celsius = Arc::new(AtomicI32::new(20));
    let server = server(Arc::clone(&celsius));
    let session = testing::connect(&server).await?;
    let read = async |uri: &str| {
        let contents = session.read_resource(uri).await?.contents;
        let text = contents.first().and_then(|it| it.as_text());
        Ok::<_, oxmcp::Error>(text.unwrap_or_default().to_owned())
    };

    for resource in session.resources().all().await? {
        println!("{}: {}", resource.uri, read(&resource.uri).await?);
    }

    // The client expands the template into a URI. Characters that a URI cannot contain are percent-encoded.
    for template in session.resource_templates().all().await? {
        let values = json!({"city": "São Paulo", "day": "tomorrow", "round_to": 10});
        let uri = template.expand(values)?;
        println!("{uri}: {}", read(&uri).await?);
    }
    for uri in ["weather://Atlantis/today", "weather://Paris/yesterday"] {
        if let Err(error) = read(uri).await {
            println!("{}", error.message());
        }
    }

    // One call notifies all subscribers of the resource, and only them, in every revision.
    let filter = SubscriptionFilter::default().with_resource_subscription("weather://now");
    let mut updates = session.listen(filter).await?;
    celsius.store(21, Ordering::Relaxed);
    server.resource_updated("weather://now");
    if updates.next().await.is_some() {
        println!("updated: {}", read("weather://now").await?);
    }
    session.close().await
}
