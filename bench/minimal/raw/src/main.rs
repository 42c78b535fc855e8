//! The smallest server over stdio: one tool, written by hand.

use std::io;

use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    arguments: Pair,
}

#[derive(Deserialize)]
struct Pair {
    a: i64,
    b: i64,
}

fn answer(request: &Request<'_>) -> Result<serde_json::Value, String> {
    match request.method.as_str() {
        "initialize" => Ok(
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "minimal", "version": "1.0.0"}}),
        ),
        "ping" => Ok(json!({})),
        "tools/list" => {
            let integer = json!({"type": "integer"});
            let schema = json!({"type": "object", "properties": {"a": integer, "b": integer},
                "required": ["a", "b"]});
            let add =
                json!({"name": "add", "description": "Add two integers", "inputSchema": schema});
            Ok(json!({"tools": [add]}))
        }
        "tools/call" => {
            let params = request.params.map_or("{}", RawValue::get);
            let call: Call = serde_json::from_str(params).map_err(|e| e.to_string())?;
            let Pair { a, b } = call.arguments;
            if call.name != "add" {
                return Err(format!("no tool {}", call.name));
            }
            let text = a.saturating_add(b).to_string();
            Ok(json!({"content": [{"type": "text", "text": text}]}))
        }
        method => Err(format!("no method {method}")),
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let (mut lines, mut output) = (BufReader::new(stdin()).lines(), stdout());
    while let Some(line) = lines.next_line().await? {
        let Ok(request) = serde_json::from_str::<Request<'_>>(&line) else {
            continue;
        };
        let Some(id) = request.id else { continue };
        let answer = match answer(&request) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(message) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": message}})
            }
        };
        output.write_all(format!("{answer}\n").as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}
