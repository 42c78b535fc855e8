//! [`ResultLimit`], the longest result of a tool.

use std::{
    collections::BTreeMap,
    task::{Context, Poll},
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    CallToolResult, ContentBlock,
    internal::{ResultType, peek_result_type},
};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    counted::{LayerFuture, tool_of},
    kept_results::{KeptResults, Link},
};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    logged::Logged,
    server::tool::ToolResponse,
    session::{
        connection::RequestContext,
        middleware::{Next, Request, Response},
    },
};

/// The smallest limit: a result that was cut needs some space for the words about that.
const SMALLEST: usize = 1024;
/// The space for the words about a cut, and for the link to the whole result.
const RESERVED: usize = 640;

/// A limit on the length of tool results, which would fill a model's context; a [middleware](crate::middleware).
///
/// A longer result is cut: the model gets as much of its beginning as fits, and a note that the rest is missing. With
/// [`keep`](Self::keep), a link leads to the whole result. Structured content cannot be cut and still match the tool's output
/// schema, so a result with it becomes an error for the model, with the beginning of its text. With [`refuse`](Self::refuse),
/// every longer result becomes an error, without any of its content.
///
/// The length is that of the result as JSON, in bytes. The results of tasks are not limited.
///
/// ```
/// use oxmcp::{Server, layers::ResultLimit};
///
/// let server = Server::new("logs", "1.0.0").layer(ResultLimit::new(20_000).tool("read_log", 100_000));
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct ResultLimit {
    limit: usize,
    tools: BTreeMap<String, usize>,
    kept: Option<KeptResults>,
    refuses: bool,
}

impl ResultLimit {
    /// Creates a limit of this many bytes, at least 1024.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            limit: bytes.max(SMALLEST),
            tools: BTreeMap::new(),
            kept: None,
            refuses: false,
        }
    }

    /// Sets another limit for the results of one tool, at least 1024 bytes.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, bytes: usize) -> Self {
        self.tools.insert(name.into(), bytes.max(SMALLEST));
        self
    }

    /// Keeps the whole of a result that is cut, and adds a link to it. Add [`KeptResults::template`] to the server.
    #[must_use]
    pub fn keep(mut self, kept: &KeptResults) -> Self {
        self.kept = Some(kept.clone());
        self
    }

    /// Replaces longer results with errors, without any of their content.
    #[must_use]
    pub fn refuse(mut self) -> Self {
        self.refuses = true;
        self
    }

    /// The response of a tool, within the limit.
    fn apply(&self, cx: &RequestContext, tool: &str, response: Response) -> Result<Response> {
        let limit = self.tools.get(tool).copied().unwrap_or(self.limit);
        let json = response.raw();
        let length = json.get().len();
        if length <= limit || peek_result_type(Text::from(json)) != ResultType::Complete {
            return Ok(response);
        }
        let Ok(result) = response.result::<CallToolResult>() else {
            return Ok(response);
        };
        if result.content.is_empty() && result.structured_content.is_none() {
            // It is the result of a request for a task, or not of the form of a tool's.
            return Ok(response);
        }
        tracing::debug!(tool = %Logged(tool), length, limit, "the result of a tool exceeds the limit");
        let shorter = if self.refuses {
            CallToolResult::error(format!(
                "The result has {length} bytes, and the limit is {limit}. Ask for less at once."
            ))
        } else {
            let link = self.kept.as_ref().and_then(|kept| keep(kept, cx, &result));
            cut(result, link, (length, limit))
        };
        let json = ToolResponse::from(shorter).into_json(cx.revision())?;
        Response::new(&json)
    }
}

/// Keeps the whole of a result: its text, if it is nothing else.
fn keep(kept: &KeptResults, cx: &RequestContext, result: &CallToolResult) -> Option<Link> {
    if let [ContentBlock::Text(text)] = &*result.content
        && result.structured_content.is_none()
    {
        return kept.keep(cx, &text.text, false);
    }
    if let Some(structured) = &result.structured_content {
        return kept.keep(cx, structured.get(), true);
    }
    let json = serde_json::to_string(&result.content).ok()?;
    kept.keep(cx, &json, true)
}

/// Cuts a result, and says so.
fn cut(
    mut result: CallToolResult,
    link: Option<Link>,
    (length, limit): (usize, usize),
) -> CallToolResult {
    let mut room = limit.saturating_sub(RESERVED);
    let whole = std::mem::take(&mut result.content);
    let had_structured = result.structured_content.take().is_some();
    result.is_error |= had_structured;
    let mut omitted = 0_usize;
    for block in whole {
        let bytes = serde_json::to_string(&block).map_or(usize::MAX, |json| json.len());
        if bytes <= room && omitted == 0 {
            room -= bytes;
            result.content.push(block);
            continue;
        }
        if let ContentBlock::Text(mut text) = block
            && omitted == 0
        {
            text.text
                .truncate(fitting(&text.text, room.saturating_sub(100)));
            if !text.text.is_empty() {
                result.content.push(ContentBlock::Text(text));
            }
        }
        omitted += 1;
    }
    let mut words =
        format!("[The result was cut: it has {length} bytes, and the limit is {limit}.");
    if had_structured {
        words.push_str(" Its structured content was left out.");
    }
    match &link {
        Some(link) => words.push_str(&format!(
            " Read the resource {} for the whole result.]",
            link.uri
        )),
        None => words.push_str(" Ask for less at once to see the rest.]"),
    }
    result.content.push(ContentBlock::text(words));
    result.content.extend(link.map(Link::into_block));
    result
}

/// The length of the longest beginning of a text whose JSON has at most `room` bytes.
fn fitting(text: &str, room: usize) -> usize {
    let mut left = room;
    for (at, character) in text.char_indices() {
        let bytes = match character {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            character if character.is_control() => 6,
            character => character.len_utf8(),
        };
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return at,
        }
    }
    text.len()
}

impl Layer<Next> for ResultLimit {
    type Service = ResultLimited;

    fn layer(&self, next: Next) -> ResultLimited {
        ResultLimited {
            limit: self.clone(),
            next,
        }
    }
}

/// The service of a [`ResultLimit`].
#[derive(Clone)]
pub struct ResultLimited {
    limit: ResultLimit,
    next: Next,
}

impl Service<Request> for ResultLimited {
    type Response = Response;
    type Error = Error;
    type Future = LayerFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> LayerFuture {
        let called = tool_of(&request).zip(request.context().cloned());
        let Some((tool, cx)) = called else {
            return self.next.call(request);
        };
        let limit = self.limit.clone();
        let running = self.next.run(request);
        Box::pin(async move {
            let response = running.await?;
            limit.apply(&cx, &tool, response)
        })
    }
}

opaque_debug!(ResultLimit, |it| { limit: it.limit, refuses: it.refuses });
opaque_debug!(ResultLimited, |it| { limit: it.limit });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_results_stay_within_the_limit() {
        for unit in ["a", "\u{1F600}", "\"", "\n", "\u{1}", "ä\\"] {
            let result = CallToolResult::text(unit.repeat(5000));
            let cut = cut(result, None, (5000, SMALLEST));
            let json = serde_json::to_string(&cut).unwrap();
            assert!(json.len() <= SMALLEST, "{unit:?}: {}", json.len());
            let text = cut.content[0].as_text().unwrap();
            assert!(text.starts_with(unit) && json.len() > SMALLEST / 3);
        }
    }
}
