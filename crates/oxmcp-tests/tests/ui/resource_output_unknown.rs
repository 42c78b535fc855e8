//! A resource whose handler returns a type of its own.

struct Report {
    #[expect(dead_code, reason = "it is never read")]
    lines: Vec<String>,
}

async fn report() -> Report {
    Report { lines: Vec::new() }
}

fn main() {
    let _ = oxmcp::Resource::new("app://report", "report", report);
}
