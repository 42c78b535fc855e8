//! The tool `order` of nodes, whose effects are counted: each order is a line in the file that the variable `ORDERS` names.

use std::{
    env,
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use oxmcp::{JsonSchema, RequestContext, Server, Tool, ToolError};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Order {
    number: u32,
    /// Whether the user is asked before the order is made.
    asks: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    sure: bool,
}

/// Adds the tool, if there is a file for its effects.
pub(crate) fn offer(server: Server) -> oxmcp::Result<Server> {
    let Some(file) = env::var_os("ORDERS") else {
        return Ok(server);
    };
    let file: Arc<Path> = PathBuf::from(file).into();
    server.add_tools([Tool::new(
        "order",
        "Make an order, once",
        move |cx: RequestContext, order: Order| make(cx, Arc::clone(&file), order),
    )])?;
    Ok(server)
}

async fn make(cx: RequestContext, file: Arc<Path>, order: Order) -> Result<String, ToolError> {
    let Order { number, asks } = order;
    if asks {
        let Sure { sure } = cx.ask("sure", format!("Make order {number}?")).await?;
        if !sure {
            return Err(ToolError::new("nothing was ordered"));
        }
    }
    // Appended by one write, so that the lines of several processes do not mix.
    append(&file, &format!("{number}\n")).map_err(|error| ToolError::new(error.to_string()))?;
    Ok(format!("ordered {number}"))
}

fn append(file: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(line.as_bytes())
}
