use oxmcp::{Client, protocol::CreateMessageParams};

async fn ask(_: CreateMessageParams) -> String {
    "four".into()
}

fn main() {
    let _ = Client::new("my-app", "1.0.0").on_sample(ask);
}
