//! Framing: decoders from byte streams to messages of bounded length, without I/O.
//!
//! Over stdio each message is a line: see [`lines`]. Over HTTP messages are
//! [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html): see [`sse`].

pub mod lines;
pub mod sse;
#[cfg(test)]
mod sse_tests;

/// The byte order mark of UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the text after the byte order mark that begins it, or `None` if it begins with none.
///
/// JSON [must not begin with the mark](https://www.rfc-editor.org/rfc/rfc8259#section-8.1), but some writers put it in front of
/// each line or body.
///
/// ```
/// use oxmcp_protocol::framing::after_byte_order_mark;
///
/// assert_eq!(after_byte_order_mark(b"\xef\xbb\xbf{}"), Some(&b"{}"[..]));
/// assert_eq!(after_byte_order_mark(b"{}"), None);
/// ```
#[must_use]
pub fn after_byte_order_mark(text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii_start().strip_prefix(BYTE_ORDER_MARK)
}
