//! A handler that holds something across an await that cannot go to another thread.

use std::rc::Rc;

async fn count() -> String {
    let count = Rc::new(1);
    std::future::ready(()).await;
    count.to_string()
}

fn main() {
    let _ = oxmcp::Tool::new("count", "Count", count);
}
