//! A handler that holds a value that is not `Send` across an await.

use std::rc::Rc;

async fn count() -> String {
    let count = Rc::new(1);
    std::future::ready(()).await;
    count.to_string()
}

fn main() {
    let _ = oxmcp::Tool::new("count", "Count", count);
}
