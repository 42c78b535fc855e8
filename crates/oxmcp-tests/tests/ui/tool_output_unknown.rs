//! A handler that returns a type of its own.

#[derive(serde::Serialize, oxmcp::JsonSchema)]
struct Weather {
    celsius: f64,
}

async fn weather() -> Weather {
    Weather { celsius: 22.5 }
}

fn main() {
    let _ = oxmcp::Tool::new("weather", "Tell the weather", weather);
}
