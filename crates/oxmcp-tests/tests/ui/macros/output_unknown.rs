//! Results of a type that a tool, a prompt or a resource cannot return.

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
