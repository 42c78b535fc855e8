//! Raw frames of HTTP/2 that no client library sends.

use std::net::SocketAddr;

use crate::http::attacks::raw_sockets as net;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The first byte of a header block that begins with `:status: 400`, which is an entry of the static table.
const STATUS_400: u8 = 0x8c;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Literal headers, without indexing and without Huffman coding.
fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            // Lengths from 127 on take more than the seven bits of one byte.
            block.push(
                u8::try_from(text.len())
                    .ok()
                    .filter(|length| *length < 127)
                    .unwrap(),
            );
            block.extend(text.bytes());
        }
    }
    block
}

fn begin() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// A request with these headers in addition to the required ones.
fn post(more: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut headers = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/mcp"),
        (":authority", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    headers.extend(more);
    let head = frame(HEADERS, END_HEADERS, 1, &block(&headers));
    [begin(), head, frame(DATA, END_STREAM, 1, body.as_bytes())].concat()
}

/// Whether the frames that came back end the stream or the connection, or are a response with status 400.
fn is_refusal(mut read: &[u8]) -> bool {
    while let Some((head, rest)) = read.split_at_checked(9) {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let Some((payload, rest)) = rest.split_at_checked(length) else {
            break;
        };
        match head[3] {
            RST_STREAM => return true,
            // The end of a connection without an error is no refusal.
            GOAWAY => return payload[4..8] != [0; 4],
            HEADERS => return payload[0] == STATUS_400,
            _ => read = rest,
        }
    }
    false
}

/// Asserts that requests are refused whose length, host, path or headers two readers could read differently.
pub(super) async fn refuses_what_can_be_cut_differently(address: SocketAddr) {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let longer = (ping.len() + 1).to_string();
    let plus = format!("+{}", ping.len());
    for more in [
        &[("content-length", "2")][..],
        &[("content-length", &longer)],
        &[("content-length", &plus)],
        &[("content-length", "2"), ("content-length", "40")],
        &[("content-length", "40, 41")],
        &[("transfer-encoding", "chunked")],
        &[("connection", "mcp-method")],
        &[("te", "gzip")],
        &[("x", "a\r\nmcp-name: b")],
        &[("x", "a\nb")],
        &[("x", "a\0b")],
        &[("x: y\r\nz", "a")],
        &[("Mcp-Method", "tools/list")],
        &[("", "a")],
        &[(":path", "/other")],
        &[(":authority", "localhost")],
        &[(":status", "200")],
        &[(":unknown", "1")],
    ] {
        let read = net::hurl_bytes(address, post(more, ping)).await;
        assert!(
            is_refusal(&read),
            "{more:?}: {:?}",
            String::from_utf8_lossy(&read)
        );
    }
}

/// Bytes that begin as HTTP/2, and then violate its rules.
pub(super) fn invalid() -> Vec<Vec<u8>> {
    let noise: Vec<u8> = (0..20_000_u32).map(|n| (n * n % 251) as u8).collect();
    let ping = |length: usize| frame(PING, 0, 0, &vec![0; length]);
    let head = frame(HEADERS, 0, 1, &block(&[(":method", "POST")]));
    let more = frame(CONTINUATION, 0, 1, &block(&[("x", "y")]));
    let bad_block = frame(HEADERS, END_HEADERS, 1, &[0xff; 30]);
    let opened = frame(
        HEADERS,
        END_HEADERS | END_STREAM,
        1,
        &block(&[(":method", "GET")]),
    );
    let reset = [opened.clone(), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])].concat();
    let and_then = |bytes: &[u8]| [&begin(), bytes].concat();
    vec![
        PREFACE.to_vec(),
        PREFACE[..20].to_vec(),
        [PREFACE, &noise].concat(),
        [PREFACE, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"].concat(),
        and_then(&noise),
        // The first frame must be a SETTINGS frame, whose length is a multiple of six.
        [PREFACE, &ping(8)].concat(),
        and_then(&frame(SETTINGS, 0, 0, &[0; 5])),
        and_then(&frame(SETTINGS, 0, 1, &[])),
        and_then(&frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])),
        and_then(&ping(7)),
        and_then(&frame(DATA, 0, 0, b"{}")),
        and_then(&frame(DATA, 0, 1, b"{}")),
        and_then(&frame(HEADERS, END_HEADERS, 0, &[])),
        and_then(&frame(HEADERS, END_HEADERS, 2, &[])),
        and_then(&bad_block),
        and_then(&opened),
        and_then(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 0])),
        and_then(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        and_then(&frame(GOAWAY, 0, 0, &[])),
        and_then(&more),
        // Floods: headers that never end, pings and settings to answer, streams that are reset at once.
        and_then(&[head, more.repeat(20_000)].concat()),
        and_then(&ping(8).repeat(20_000)),
        and_then(&frame(SETTINGS, 0, 0, &[]).repeat(20_000)),
        and_then(&reset.repeat(10_000)),
        and_then(&frame(0xfe, 0xff, 0xffff_ffff, &[0; 100]).repeat(1_000)),
    ]
}
