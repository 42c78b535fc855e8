//! The input of a template has no JSON Schema.

#[derive(serde::Deserialize)]
struct Row {
    id: u32,
}

async fn row(Row { id }: Row) -> String {
    id.to_string()
}

fn main() {
    let _ = oxmcp::ResourceTemplate::new("db://{id}", "row", row);
}
