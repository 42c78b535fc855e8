//! A structured result without a schema.

use oxmcp::Structured;

#[derive(serde::Serialize)]
struct Weather {
    celsius: f64,
}

async fn weather() -> Structured<Weather> {
    Structured(Weather { celsius: 22.5 })
}

fn main() {
    let _ = oxmcp::Tool::new("weather", "Tell the weather", weather);
}
