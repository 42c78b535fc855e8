//! A tool of a generic function. A tool has one schema, so its function has no generics.

/// Say it again.
#[oxmcp::tool]
async fn echo<T>(text: T) -> String
where
    T: Into<String>,
{
    text.into()
}

fn main() {}
