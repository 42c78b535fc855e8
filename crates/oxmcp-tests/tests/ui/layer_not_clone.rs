//! A layer whose service serves one request at a time.

use std::time::Duration;

use tower::limit::RateLimitLayer;

fn main() {
    let layer = RateLimitLayer::new(1, Duration::from_secs(1));
    let _ = oxmcp::Server::new("slow", "1.0.0").layer(layer);
}
