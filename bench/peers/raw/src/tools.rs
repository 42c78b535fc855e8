//! The tools of the benchmark, with their answers written by hand.

use std::{borrow::Cow, fmt::Write as _, io::Write as _};

use bench_support::Adder;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::quote::Order;

/// The URI of the resource that the tool `update` changes.
pub(crate) const WATCHED: &str = "bench://watched";

/// Answers to every request of the benchmark, in both eras.
pub(crate) struct Tools {
    list: String,
    modern_list: String,
}

/// The work that remains after a line was handled.
pub(crate) enum Answer {
    /// The answer is in the buffer.
    Done,
    /// The same for the answer to `initialize`.
    Opened,
    /// The line was no request, and has no answer.
    Nothing,
    /// A subscription. Its acknowledgement is in the buffer. It receives updates under the id, if it asked for them.
    Listen(Option<Box<RawValue>>),
    /// The answer is in the buffer; the session receives updates from now on.
    Watched,
    /// The answer is in the buffer; all listeners must be notified.
    Updated,
    /// The answer must be computed by another task.
    Wait(Wait),
    /// Progress notifications, followed by the answer.
    Stream(Stream),
}

/// The progress notifications of one call, and its answer.
pub(crate) struct Stream {
    id: Box<RawValue>,
    token: Option<Box<RawValue>>,
    era: Era,
    sent: u64,
    n: u64,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    notifications: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Filter<'a> {
    #[serde(borrow, default, rename = "resourceSubscriptions")]
    resources: Vec<&'a str>,
}

#[derive(Deserialize)]
pub(crate) struct Pair {
    pub(crate) a: i64,
    pub(crate) b: i64,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Count {
    n: u64,
}

impl Tools {
    /// The tools, and `dummies` more that only fill the list.
    pub(crate) fn new(dummies: usize) -> Self {
        let list = list(dummies);
        let modern_list =
            format!(r#""resultType":"complete","ttlMs":0,"cacheScope":"private",{list}"#);
        Self { list, modern_list }
    }

    pub(crate) fn answer(&self, line: &[u8], out: &mut Vec<u8>) -> Answer {
        // Validating UTF-8 once for the whole line is cheaper than for each of its strings.
        let request = str::from_utf8(line)
            .ok()
            .and_then(|line| serde_json::from_str::<Request<'_>>(line).ok());
        let Some(request) = request else {
            put(
                out,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not a request"}}"#,
            );
            put(out, "\n");
            return Answer::Done;
        };
        let Some(id) = request.id else {
            return Answer::Nothing;
        };
        match self.dispatch(id, &request.method, &request.params, out) {
            Ok(answer) => answer,
            Err(Fault(code, message)) => {
                start(out, id);
                let message = serde_json::Value::from(message);
                write!(out, r#""error":{{"code":{code},"message":{message}}}}}"#)
                    .expect("writing to a Vec cannot fail");
                put(out, "\n");
                Answer::Done
            }
        }
    }

    fn dispatch(
        &self,
        id: &RawValue,
        method: &str,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Fault> {
        let modern = params
            .meta
            .as_ref()
            .is_some_and(|meta| meta.version.is_some());
        let era = if modern { Era::Modern } else { Era::Legacy };
        match method {
            "tools/call" => return call(id, era, params, out),
            "tools/list" if modern => result(out, id, &self.modern_list),
            "tools/list" => result(out, id, &self.list),
            "initialize" => {
                result(out, id, INITIALIZE);
                return Ok(Answer::Opened);
            }
            "subscriptions/listen" if modern => {
                let filter = params.notifications.map_or("{}", RawValue::get);
                let watches = serde_json::from_str::<Filter<'_>>(filter)?
                    .resources
                    .contains(&WATCHED);
                acknowledge(out, id, filter);
                return Ok(Answer::Listen(watches.then(|| id.to_owned())));
            }
            "resources/subscribe" if params.uri.as_deref() == Some(WATCHED) => {
                result(out, id, "");
                return Ok(Answer::Watched);
            }
            "server/discover" => result(out, id, DISCOVER),
            "ping" => result(out, id, ""),
            _ => return Err(Fault(-32601, format!("no method {method}"))),
        }
        Ok(Answer::Done)
    }
}

struct Fault(i32, String);

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self(-32602, error.to_string())
    }
}

fn call(id: &RawValue, era: Era, params: &Params<'_>, out: &mut Vec<u8>) -> Result<Answer, Fault> {
    let name = params.name.as_deref().unwrap_or_default();
    let arguments = params.arguments.map_or("{}", RawValue::get);
    match name {
        "echo" => {
            let Echo { text } = serde_json::from_str(arguments)?;
            text_result(out, id, era, &text);
        }
        "quote" => {
            let order: Order<'_> = serde_json::from_str(arguments)?;
            let quote = order.quote().map_err(|e| Fault(-32602, e))?;
            structured_result(out, id, era, &serde_json::to_string(&quote)?);
        }
        "wait" => {
            let (id, pair) = (id.to_owned(), serde_json::from_str(arguments)?);
            return Ok(Answer::Wait(Wait { id, era, pair }));
        }
        "update" => {
            text_result(out, id, era, "updated");
            return Ok(Answer::Updated);
        }
        "stream" => {
            let Count { n } = serde_json::from_str(arguments)?;
            let token = params.meta.as_ref().and_then(|meta| meta.progress_token);
            let (id, token) = (id.to_owned(), token.map(RawValue::to_owned));
            return Ok(Answer::Stream(Stream {
                id,
                token,
                era,
                sent: 0,
                n,
            }));
        }
        _ if name == "add" || name.starts_with("dummy_") => {
            let Pair { a, b } = serde_json::from_str(arguments)?;
            text_result(out, id, era, &a.saturating_add(b).to_string());
        }
        _ => return Err(Fault(-32602, format!("no tool {name}"))),
    }
    Ok(Answer::Done)
}

impl Stream {
    /// Appends one message, and returns whether there are more.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> bool {
        if self.sent == self.n {
            text_result(out, &self.id, self.era, "done");
            return false;
        }
        self.sent += 1;
        if let Some(token) = &self.token {
            let (sent, n) = (self.sent, self.n);
            put(
                out,
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#,
            );
            put(out, token.get());
            writeln!(out, r#","progress":{sent},"total":{n}}}}}"#)
                .expect("writing to a Vec cannot fail");
        }
        true
    }
}

pub(crate) fn text_result(out: &mut Vec<u8>, id: &RawValue, era: Era, text: &str) {
    content(out, id, era, text);
    put(out, "}}\n");
}

/// A result with the JSON as structured content, and as text for clients that do not know structured content.
fn structured_result(out: &mut Vec<u8>, id: &RawValue, era: Era, json: &str) {
    content(out, id, era, json);
    put(out, r#","structuredContent":"#);
    put(out, json);
    put(out, "}}\n");
}

/// The beginning of a result, without its end.
fn content(out: &mut Vec<u8>, id: &RawValue, era: Era, text: &str) {
    start(out, id);
    put(
        out,
        if era == Era::Modern {
            r#""result":{"resultType":"complete","#
        } else {
            r#""result":{"#
        },
    );
    put(out, r#""content":[{"type":"text","text":"#);
    serde_json::to_writer(&mut *out, text).expect("writing to a Vec cannot fail");
    put(out, "}]");
}

fn result(out: &mut Vec<u8>, id: &RawValue, members: &str) {
    start(out, id);
    put(out, r#""result":{"#);
    put(out, members);
    put(out, "}}\n");
}

/// Acknowledges the whole requested filter.
fn acknowledge(out: &mut Vec<u8>, id: &RawValue, filter: &str) {
    put(
        out,
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":"#,
    );
    put(out, filter);
    put(
        out,
        r#","_meta":{"io.modelcontextprotocol/subscriptionId":"#,
    );
    put(out, id.get());
    put(out, "}}}\n");
}

fn start(out: &mut Vec<u8>, id: &RawValue) {
    put(out, r#"{"jsonrpc":"2.0","id":"#);
    put(out, id.get());
    put(out, ",");
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

const INITIALIZE: &str = r#""protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"raw","version":"1.0.0"}"#;
const DISCOVER: &str = r#""resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"raw","version":"1.0.0"}}"#;

fn list(dummies: usize) -> String {
    let pair = r#"{"type":"object","properties":{"a":{"type":"integer","format":"int64"},"b":{"type":"integer","format":"int64"}},"required":["a","b"]}"#;
    let mut list = format!(
        r#""tools":[{{"name":"add","description":"Add two integers","inputSchema":{pair}}},{{"name":"echo","description":"Give the text back","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}},"required":["text"]}}}},{{"name":"stream","description":"Report progress n times","inputSchema":{{"type":"object","properties":{{"n":{{"type":"integer","format":"uint64","minimum":0}}}},"required":["n"]}}}}"#
    );
    for i in 0..dummies {
        write!(
            list,
            r#",{{"name":"dummy_{i:03}","description":"Add two integers","inputSchema":{pair}}}"#
        )
        .expect("writing to a String cannot fail");
    }
    list.push(']');
    list
}

/// A call that waits for its sum.
pub(crate) struct Wait {
    pub(crate) id: Box<RawValue>,
    pub(crate) era: Era,
    pub(crate) pair: Pair,
}

impl Wait {
    /// Appends the answer when the sum is there.
    pub(crate) async fn answer(self, adder: &Adder, out: &mut Vec<u8>) {
        if let Some(sum) = adder.add(self.pair.a, self.pair.b).await {
            text_result(out, &self.id, self.era, &sum.to_string());
        }
    }
}
