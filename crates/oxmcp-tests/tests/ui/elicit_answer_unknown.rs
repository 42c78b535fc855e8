use oxmcp::{Client, protocol::ElicitFormParams};

#[derive(serde::Serialize)]
struct Person {
    name: String,
}

async fn ask(_: ElicitFormParams) -> Person {
    Person { name: "Ann".into() }
}

fn main() {
    let _ = Client::new("my-app", "1.0.0").on_elicit(ask);
}
