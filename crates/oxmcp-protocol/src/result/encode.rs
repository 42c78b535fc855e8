//! Encoder of results: they are fitted to the revision of the peer and written directly into the buffer that is sent.

use oxmcp_json::Text;
use serde::ser::Error as _;

use crate::{
    error::EncodeError,
    meta::{has_meta::HasMeta, object::Meta},
    mrtr::requests::InputRequiredResult,
    revision::{projection::project::Project, version::Revision},
    types::{
        base::{CancelledParams, EmptyParams, EmptyResult, NotificationParams},
        completion::{CompleteParams, CompleteResult},
        elicitation::params::{ElicitParams, ElicitResult, ElicitationCompleteParams},
        lifecycle::{DiscoverResult, InitializeParams, InitializeResult},
        logging::{LoggingMessageParams, SetLevelParams},
        pagination::PaginatedParams,
        progress::ProgressParams,
        prompts::{GetPromptParams, GetPromptResult, ListPromptsResult},
        resources::{
            ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams,
            ReadResourceResult, ResourceUpdatedParams, SubscribeParams,
        },
        roots::ListRootsResult,
        sampling::{CreateMessageParams, CreateMessageResult},
        subscriptions::{AcknowledgedParams, ListenParams, ListenResult},
        tasks::{CreateTaskResult, ListTasksResult, Task, TaskParams, TaskPayload},
        tools::{CallToolParams, CallToolResult, ListToolsResult},
    },
};

/// Implements `HasMeta::write`, `HasMeta::read` and `HasMeta::read_leniently`. Expanded for each type, they are compiled once,
/// in this crate; as provided methods of the trait they would be compiled again in each crate that uses them, with all of
/// the serde code below them.
macro_rules! compile_json_here {
    () => {
        fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
            serde_json::to_writer(out, self)
        }

        fn read(json: &str) -> serde_json::Result<Self> {
            serde_json::from_str(json)
        }

        fn read_leniently(json: &str) -> serde_json::Result<crate::lenient::Reading<Self>> {
            crate::lenient::read(json)
        }
    };
}

macro_rules! has_meta {
    ($($type:ty),+ $(,)?) => { $(
        impl HasMeta for $type {
            compile_json_here!();

            fn meta_mut(&mut self) -> Option<&mut Meta> {
                Some(&mut self.meta)
            }
        }
    )+ };
}

has_meta!(
    AcknowledgedParams,
    CallToolParams,
    CancelledParams,
    CompleteParams,
    CompleteResult,
    CreateMessageParams,
    CreateMessageResult,
    CreateTaskResult,
    DiscoverResult,
    ElicitResult,
    ElicitationCompleteParams,
    EmptyParams,
    EmptyResult,
    GetPromptParams,
    GetPromptResult,
    InitializeParams,
    InitializeResult,
    ListPromptsResult,
    ListResourceTemplatesResult,
    ListResourcesResult,
    ListRootsResult,
    ListTasksResult,
    ListToolsResult,
    ListenParams,
    ListenResult,
    LoggingMessageParams,
    NotificationParams,
    PaginatedParams,
    ProgressParams,
    ReadResourceParams,
    ReadResourceResult,
    ResourceUpdatedParams,
    SetLevelParams,
    SubscribeParams,
    Task,
    TaskParams,
);

impl HasMeta for CallToolResult {
    fn meta_mut(&mut self) -> Option<&mut Meta> {
        Some(&mut self.meta)
    }

    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        Self::write(self, out)
    }

    fn read(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

impl HasMeta for InputRequiredResult {
    const RESULT_TYPE: &'static str = "input_required";

    compile_json_here!();

    fn meta_mut(&mut self) -> Option<&mut Meta> {
        Some(&mut self.meta)
    }
}

impl HasMeta for ElicitParams {
    compile_json_here!();

    fn meta_mut(&mut self) -> Option<&mut Meta> {
        match self {
            Self::Form(form) => Some(&mut form.meta),
            Self::Url(url) => Some(&mut url.meta),
            Self::Unknown(_) => None,
        }
    }
}

impl HasMeta for TaskPayload {
    compile_json_here!();

    fn meta_mut(&mut self) -> Option<&mut Meta> {
        None
    }
}

/// Appends `result` in the form of revision `to`. `server_info` is the JSON of this side's
/// [`Implementation`](crate::types::lifecycle::Implementation), for modern peers; an entry in the result's own `_meta`
/// takes precedence.
///
/// The result is projected, and its `_meta` is moved out of it.
///
/// # Errors
/// If the result does not serialize to JSON. Then nothing is appended.
pub fn encode_result<R: Project + HasMeta>(
    out: &mut Vec<u8>,
    result: &mut R,
    to: Revision,
    server_info: Option<&str>,
) -> Result<(), EncodeError> {
    result.project(to);
    if !to.has_result_types() {
        return append(out, result);
    }
    let start = out.len();
    let meta = result.meta_mut().map(std::mem::take).unwrap_or_default();
    out.extend_from_slice(br#"{"resultType":""#);
    out.extend_from_slice(R::RESULT_TYPE.as_bytes());
    out.push(b'"');
    let server_info = server_info.filter(|_| meta.get(Meta::SERVER_INFO).is_none());
    undo_on_error(out, start, |out| {
        append_meta(out, server_info, &meta)?;
        append_members(out, |out| result.write(out))
    })
}

/// Appends `"_meta":{…}` after a comma, if there is any metadata.
pub(crate) fn append_meta(
    out: &mut Vec<u8>,
    server_info: Option<&str>,
    meta: &Meta,
) -> serde_json::Result<()> {
    let empty = meta.is_empty();
    if empty && server_info.is_none() {
        return Ok(());
    }
    out.extend_from_slice(br#","_meta":{"#);
    if let Some(info) = server_info {
        out.push(b'"');
        out.extend_from_slice(Meta::SERVER_INFO.as_bytes());
        out.extend_from_slice(br#"":"#);
        out.extend_from_slice(info.as_bytes());
    }
    if empty {
        out.push(b'}');
        return Ok(());
    }
    append_members(out, |out| serde_json::to_writer(out, meta))
}

/// Appends the members of the object that `write` writes, with its closing brace. The buffer must already have the
/// opening brace, and may have members after it.
pub(crate) fn append_members(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let joint = out.len();
    let first = out.last() == Some(&b'{');
    write(out)?;
    let members = out.get(joint..).unwrap_or_default();
    if members.first() != Some(&b'{') {
        return Err(serde_json::Error::custom("expected an object"));
    }
    let empty = members.get(1..).unwrap_or_default().trim_ascii_start() == b"}";
    if first || empty {
        out.remove(joint);
    } else if let Some(brace) = out.get_mut(joint) {
        *brace = b',';
    }
    Ok(())
}

fn append(out: &mut Vec<u8>, value: &impl HasMeta) -> Result<(), EncodeError> {
    let start = out.len();
    undo_on_error(out, start, |out| value.write(out))
}

/// Removes partial output if `write` fails.
pub(crate) fn undo_on_error(
    out: &mut Vec<u8>,
    start: usize,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> Result<(), EncodeError> {
    write(out).map_err(|error| {
        out.truncate(start);
        error.into()
    })
}

/// Converts the output of [`encode_result`], written to an empty buffer, to text.
///
/// # Errors
/// If the bytes are not UTF-8.
pub fn into_text(json: Vec<u8>) -> Result<Box<str>, EncodeError> {
    let text = String::from_utf8(json).map(String::into_boxed_str);
    text.map_err(|error| serde_json::Error::custom(error).into())
}

/// The type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "only the SDK may use it")]
pub enum ResultType {
    /// The final result. A result without `resultType` has this type.
    Complete,
    /// An [`InputRequiredResult`].
    InputRequired,
    /// A type that this crate does not know, so it cannot be read as the final result.
    Other,
}

/// Determines the type of a result without parsing it.
#[must_use]
pub fn peek_result_type(result: Text<'_>) -> ResultType {
    match result.members().find(|(key, _)| key.is_str("resultType")) {
        None => ResultType::Complete,
        Some((_, value)) => match value.as_str().as_deref() {
            Some("complete") => ResultType::Complete,
            Some("input_required") => ResultType::InputRequired,
            _ => ResultType::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::types::completion::Completion;

    const MODERN: Revision = Revision::V2026_07_28;
    const LEGACY: Revision = Revision::V2025_11_25;

    fn encoded<R: Project + HasMeta>(mut result: R, to: Revision, info: Option<&str>) -> String {
        let mut out = b"before".to_vec();
        encode_result(&mut out, &mut result, to, info).unwrap();
        String::from_utf8(out).unwrap().split_off(6)
    }

    #[test]
    fn results_are_encoded_for_each_era() {
        let text = || CallToolResult::text("4");
        let content = r#""content":[{"type":"text","text":"4"}]}"#;
        assert_eq!(encoded(text(), LEGACY, Some("{}")), format!("{{{content}"));
        assert_eq!(
            encoded(text(), MODERN, None),
            format!(r#"{{"resultType":"complete",{content}"#)
        );
        let info = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n"}"#;
        let server = Some(r#"{"name":"n"}"#);
        assert_eq!(
            encoded(text(), MODERN, server),
            format!(r#"{{"resultType":"complete",{info}}},{content}"#)
        );
        assert_eq!(
            encoded(EmptyResult::default(), MODERN, None),
            r#"{"resultType":"complete"}"#
        );
        assert_eq!(
            encoded(EmptyResult::default(), MODERN, server),
            format!(r#"{{"resultType":"complete",{info}}}}}"#)
        );
        assert_eq!(encoded(EmptyResult::default(), LEGACY, server), "{}");
        let asked = encoded(InputRequiredResult::default(), MODERN, None);
        assert_eq!(asked, r#"{"resultType":"input_required"}"#);
    }

    #[test]
    fn result_keeps_its_own_meta() {
        let with_meta = |meta: Meta| {
            let result = EmptyResult {
                meta,
                ..EmptyResult::default()
            };
            let text = encoded(result, MODERN, Some("1"));
            serde_json::from_str::<Value>(&text).unwrap()["_meta"].clone()
        };
        let name = Meta::SERVER_INFO;
        assert_eq!(
            with_meta(Meta::from_iter([("a", 2)])),
            json!({"a": 2, name: 1})
        );
        assert_eq!(with_meta(Meta::from_iter([(name, 2)])), json!({name: 2}));
        assert_eq!(
            with_meta(serde_json::from_str("{ }").unwrap()),
            json!({name: 1})
        );
        assert_eq!(
            with_meta(serde_json::from_str(r#"{ "a" : 2}"#).unwrap()),
            json!({"a": 2, name: 1})
        );
    }

    #[test]
    fn failed_encoding_leaves_no_bytes() {
        let mut payload = TaskPayload::from(serde_json::value::to_raw_value(&3).unwrap());
        let mut out = b"before".to_vec();
        let error = encode_result(&mut out, &mut payload, MODERN, Some("{}")).unwrap_err();
        assert!(error.to_string().contains("expected an object"));
        assert_eq!(out, b"before");
    }

    #[test]
    fn result_type_depends_on_the_revision() {
        for (text, expected) in [
            (r#"{"content":[{"resultType":"x"}]}"#, ResultType::Complete),
            (r#"{"resultType":"complete"}"#, ResultType::Complete),
            (
                r#"{"a":1, "resultType" : "input_required"}"#,
                ResultType::InputRequired,
            ),
            (r#"{"resultType":"task"}"#, ResultType::Other),
            (r#"{"resultType":3}"#, ResultType::Other),
            ("[]", ResultType::Complete),
        ] {
            assert_eq!(peek_result_type(Text::checked(text)), expected, "{text}");
        }
    }

    #[test]
    fn excess_completions_are_truncated() {
        let many = Completion::new((0..101).map(|n| n.to_string()));
        let text = encoded(CompleteResult::from(many), LEGACY, None);
        let completion: CompleteResult = serde_json::from_str(&text).unwrap();
        let completion = completion.completion;
        assert_eq!((completion.values.len(), completion.has_more), (100, true));
        assert_eq!(completion.total, Some(101));
    }
}
