//! A template whose input does not say what its fields are.

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
