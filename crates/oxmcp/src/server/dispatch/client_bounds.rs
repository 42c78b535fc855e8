//! Limit on the client metadata that a session keeps.
//!
//! Icons may be `data:` URIs, and capabilities may have unknown members: both are legal, can be long, and would be kept for as
//! long as the session lasts.

use std::mem;

use oxmcp_protocol::{ClientCapabilities, Implementation, JsonObject};
use serde_json::Value;

/// The number of entries for which an object allocates memory at once: most objects have fewer.
const OBJECT_ENTRIES: usize = 6;
const OBJECT_BYTES: usize = (size_of::<String>() + size_of::<Value>()) * OBJECT_ENTRIES * 2;

/// The size of the client metadata that a session keeps, and whether it is complete.
pub(crate) struct Kept {
    pub(crate) bytes: usize,
    pub(crate) is_all: bool,
}

/// Drops the parts that exceed the limit in bytes. Capabilities are kept first, then name, version and title, then the rest.
pub(crate) fn keep_within(
    limit: usize,
    capabilities: &mut ClientCapabilities,
    implementation: &mut Implementation,
) -> Kept {
    let mut room = Room {
        left: limit,
        keeps_all: true,
    };
    room.keep_capabilities(capabilities);
    room.keep_implementation(implementation);
    Kept {
        bytes: limit - room.left,
        is_all: room.keeps_all,
    }
}

/// The number of bytes that may still be kept.
struct Room {
    left: usize,
    keeps_all: bool,
}

impl Room {
    /// Takes the bytes from the budget, if enough are left.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.keeps_all &= left.is_some();
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    fn keep_capabilities(&mut self, it: &mut ClientCapabilities) {
        // The presence of a part declares an ability of the client, so an empty part stays.
        if let Some(it) = &mut it.sampling {
            self.keep_parts([&mut it.context, &mut it.tools]);
        }
        if let Some(it) = &mut it.elicitation {
            self.keep_parts([&mut it.form, &mut it.url]);
        }
        if let Some(it) = &mut it.tasks {
            self.keep_parts([&mut it.list, &mut it.cancel, &mut it.requests]);
        }
        self.keep_parts([&mut it.extensions, &mut it.experimental]);
        self.keep_entries(&mut it.other);
    }

    fn keep_parts<const N: usize>(&mut self, parts: [&mut Option<JsonObject>; N]) {
        parts
            .into_iter()
            .flatten()
            .for_each(|part| self.keep_entries(part));
    }

    /// Keeps the entries that fit into the budget.
    fn keep_entries(&mut self, object: &mut JsonObject) {
        let whole = object_bytes(object);
        if self.left >= whole {
            self.left -= whole;
            return;
        }
        let entries = mem::take(object).into_iter();
        let kept = entries.filter(|(key, value)| self.take(OBJECT_BYTES + entry_bytes(key, value)));
        *object = kept.collect();
    }

    fn keep_implementation(&mut self, it: &mut Implementation) {
        self.shorten(&mut it.name);
        self.shorten(&mut it.version);
        for text in [&mut it.title, &mut it.description, &mut it.website_url] {
            if text.as_ref().is_some_and(|text| !self.take(text.len())) {
                *text = None;
            }
        }
        it.icons.retain(|icon| {
            let sizes = icon.sizes.iter().map(|it| size_of::<String>() + it.len());
            let media_type = icon.mime_type.as_ref().map_or(0, String::len);
            self.take(size_of_val(icon) + icon.src.len() + media_type + sizes.sum::<usize>())
        });
        it.icons.shrink_to_fit();
    }

    /// Cuts off the end of a mandatory text if it exceeds the budget.
    fn shorten(&mut self, text: &mut String) {
        if !self.take(text.len()) {
            let mut end = self.left;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.shrink_to_fit();
            self.left -= text.len();
        }
    }
}

fn object_bytes(object: &JsonObject) -> usize {
    let entries = object.iter().map(|(key, value)| entry_bytes(key, value));
    object.len().div_ceil(OBJECT_ENTRIES) * OBJECT_BYTES + entries.sum::<usize>()
}

/// The memory that an entry refers to.
fn entry_bytes(key: &str, value: &Value) -> usize {
    key.len() + value_bytes(value)
}

/// The memory that a value refers to. It was parsed, which bounds its depth.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => {
            let items = items.iter().map(|it| size_of::<Value>() + value_bytes(it));
            items.sum()
        }
        Value::Object(object) => object_bytes(object),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, json};

    use super::*;

    const LIMIT: usize = 16 << 10;

    #[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
    fn kept(capabilities: Value, info: Value) -> (ClientCapabilities, Implementation, bool) {
        let mut capabilities = from_str(&capabilities.to_string()).unwrap();
        let mut info = from_str(&info.to_string()).unwrap();
        let kept = keep_within(LIMIT, &mut capabilities, &mut info);
        assert!(kept.bytes <= LIMIT);
        (capabilities, info, kept.is_all)
    }

    fn info() -> Value {
        json!({"name": "client", "version": "1.0.0"})
    }

    #[test]
    fn client_metadata_is_kept() {
        let capabilities = json!({
            "roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}},
            "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}},
            "experimental": {"x": {"y": 1}}, "other": 7,
        });
        let info = json!({
            "name": "client", "version": "1", "title": "A client", "description": "x".repeat(500),
            "websiteUrl": "https://example.com", "icons": [{"src": "https://example.com/icon.png", "sizes": ["48x48"]}],
        });
        let (kept_capabilities, kept_info, keeps_all) = kept(capabilities.clone(), info.clone());
        assert!(keeps_all);
        assert_eq!(json!(kept_capabilities), capabilities);
        assert_eq!(json!(kept_info), info);
    }

    #[test]
    fn excess_metadata_is_dropped_but_capabilities_stay() {
        let long = "ä".repeat(50 << 10);
        let (capabilities, info, keeps_all) = kept(
            json!({"elicitation": {"url": {"x": long}}, "experimental": {"long": long, "short": 1}}),
            json!({"name": long, "version": "1", "title": "t", "icons": [{"src": long}, {"src": "s"}]}),
        );
        assert!(!keeps_all);
        assert!(capabilities.elicitation.unwrap().has_url());
        assert_eq!(json!(capabilities.experimental), json!({"short": 1}));
        assert!(info.name.starts_with('ä') && info.name.len() < LIMIT);
        // The name has taken the rest, except for half a character.
        assert!(info.version.len() <= 1);
        assert_eq!((info.title, info.icons.len()), (None, 0));
    }

    /// Short texts can be large values.
    #[test]
    fn limit_counts_memory_rather_than_text() {
        let nested = |inner: Value| json!({"experimental": {"x": inner}});
        let arrays = vec![json!([]); LIMIT / 4];
        let objects = vec![json!({"a": 1}); LIMIT / 16];
        for inner in [json!(arrays), json!(objects)] {
            let text = inner.to_string().len();
            assert!(text < LIMIT, "{text}");
            let (capabilities, _, keeps_all) = kept(nested(inner), info());
            assert!(!keeps_all);
            assert_eq!(json!(capabilities.experimental), json!({}));
        }
    }
}
