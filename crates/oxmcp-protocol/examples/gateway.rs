//! A gateway in the middle: it renames the tools of a call and fits the answer to an older client.
//!
//! `cargo run -p oxmcp-protocol --example gateway`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;

use oxmcp_protocol::{
    Method, Revision,
    message::Message,
    method::{CallTool, ListTools},
};

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"math__add","arguments":{"a":1,"b":2}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[
    {"name":"add","title":"Add","inputSchema":{"type":"object"},"outputSchema":{"type":"number"}}]}}"#;

fn main() -> Result<(), Box<dyn Error>> {
    // To the server: the prefix that selected it is removed.
    let mut message = Message::parse(CALL.as_bytes())?;
    if let Message::Request(request) = &mut message
        && request.method == CallTool::NAME
    {
        let mut params = request.params_of::<CallTool>()?;
        params.name = params.name.trim_start_matches("math__").into();
        request.set_params(&params)?;
    }
    print!("{}", String::from_utf8(message.encode())?);

    // To a client of 2025-03-26, which knows neither titles nor output schemas.
    let mut message = Message::parse(LIST.as_bytes())?;
    if let Message::Response(response) = &mut message {
        response.fit(ListTools::NAME, Revision::V2025_03_26)?;
    }
    print!("{}", String::from_utf8(message.encode())?);

    // An invalid message gets an error that says why.
    if let Err(error) = Message::parse(br#"{"jsonrpc":"2.0","id":9}"#) {
        let refusal = Message::from(error.into_response());
        print!("{}", String::from_utf8(refusal.encode())?);
    }
    Ok(())
}
