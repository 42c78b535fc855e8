//! STUB
use super::{Meta, Revision};
use crate::{Error, Result};
use serde::Serialize;
use serde_json::value::RawValue;

pub trait Payload: Serialize + Send + Sync {
    fn meta_mut(&mut self) -> &mut Meta;
    fn project(&mut self, to: Revision) {
        let _ = to;
    }
}
macro_rules! p { ($($t:ident)*) => { $(impl Payload for super::$t { fn meta_mut(&mut self) -> &mut Meta { &mut self.meta } })* } }
p!(CallToolParams CallToolResult PaginatedParams ListToolsResult ReadResourceParams ReadResourceResult ListResourcesResult ListResourceTemplatesResult SubscribeParams EmptyResult GetPromptParams GetPromptResult ListPromptsResult CompleteParams CompleteResult SetLevelParams EmptyParams InitializeParams InitializeResult DiscoverResult ProgressParams ListenParams CreateMessageParams TaskParams);
impl Payload for super::ElicitParams {
    fn meta_mut(&mut self) -> &mut Meta {
        unimplemented!()
    }
}

pub(crate) fn encode_result<R: Payload>(
    out: &mut Vec<u8>,
    mut result: R,
    to: Revision,
    stamp: Option<&str>,
) -> Result<()> {
    result.project(to);
    let start = out.len();
    if to.is_modern() {
        out.extend_from_slice(br#"{"resultType":"complete""#);
        if let Some(stamp) = stamp {
            out.extend_from_slice(br#","_meta":{"io.modelcontextprotocol/serverInfo":"#);
            out.extend_from_slice(stamp.as_bytes());
            out.push(b'}');
        }
    }
    let open = out.len();
    serde_json::to_writer(&mut *out, &result).map_err(|e| Error::internal(e.to_string()))?;
    if open > start {
        if out.get(open..) == Some(b"{}") {
            out.truncate(open);
            out.push(b'}');
        } else {
            out[open] = b',';
        }
    }
    Ok(())
}
pub(crate) fn raw_value(out: Vec<u8>) -> Result<Box<RawValue>> {
    let text = String::from_utf8(out).map_err(|e| Error::internal(e.to_string()))?;
    RawValue::from_string(text).map_err(|e| Error::internal(e.to_string()))
}
pub(crate) enum ResultType {
    Complete,
    InputRequired,
    Other(String),
}
pub(crate) fn peek_result_type(r: &RawValue) -> Result<ResultType> {
    let v: serde_json::Value =
        serde_json::from_str(r.get()).map_err(|e| Error::decode(e.to_string()))?;
    Ok(match v.get("resultType").and_then(|v| v.as_str()) {
        None | Some("complete") => ResultType::Complete,
        Some("input_required") => ResultType::InputRequired,
        Some(o) => ResultType::Other(o.to_owned()),
    })
}
