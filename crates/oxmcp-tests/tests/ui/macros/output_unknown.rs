//! Results that neither a model, a prompt nor a client can be given.

struct Report;

/// Report.
#[oxmcp::tool]
async fn tool() -> Report {
    Report
}

/// Report.
#[oxmcp::prompt]
async fn prompt() -> Report {
    Report
}

#[oxmcp::resource("app://report")]
async fn resource() -> Report {
    Report
}

fn main() {}
