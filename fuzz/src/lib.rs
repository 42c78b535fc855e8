//! The targets of the fuzzers: functions of bytes, which panic if a property does not hold. One file for each crate, and one for lenient reading.

mod auth;
mod json;
mod lenient;
mod protocol;
mod schema;

pub use auth::{challenge, login, token};
pub use json::json;
pub use lenient::lenient;
pub use protocol::{batch, envelope, header_value, lines, message, sse, tool_result, uri_template};
pub use schema::{arguments, schema_pattern};

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    /// Bytes with many of the pieces that the targets parse.
    fn data() -> impl Strategy<Value = Vec<u8>> {
        let piece = select(vec![
            "\n",
            "\r",
            "\r\n",
            "\n\n",
            "data",
            "event",
            "id",
            "retry",
            ":",
            ": ",
            "[",
            "]",
            "{",
            "}",
            ",",
            "\"",
            "\\u0041",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
            "\"params\":{\"_meta\":{}}",
            "{\"jsonrpc\":\"2.0\",\"id\":",
            "1",
            "\"method\":",
            "\"params\":",
            "{\"name\":",
            "\"arguments\":",
            "\"result\":",
            "{\"content\":",
            "[{\"type\":\"text\",\"text\":",
            "\"structuredContent\":",
            "\"a\"",
            " ",
            "-0",
            "1.0",
            "null",
            "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}\n",
            "{+path}",
            "{?a,b*}",
            "file:///",
            "%20",
            "/",
            "=?base64?",
            "?=",
            "aGk=",
            "{\"resource\":\"https://mcp.example/mcp\",\"authorization_servers\":[\"https://as.example\"]}\n",
            "{\"issuer\":\"https://as.example\"}\n",
            "(a|b)*",
            "(?=",
            "\\p{L}",
            "^",
            "$",
            "{2,9}",
            "é",
            "Bearer ",
            "scope=\"a b\"",
            "{\"keys\":[",
            "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"",
            "eyJhbGciOiJFUzI1NiJ9",
            ".",
            "e30",
            "{\"iss\":\"https://auth.example.com\",\"aud\":",
        ]);
        let piece = prop_oneof![
            9 => piece.prop_map(|text| text.as_bytes().to_vec()),
            1 => vec(any::<u8>(), 0..6),
        ];
        vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn every_single_fault_is_tolerated() {
        for sample in 0..40 {
            for member in 0..70 {
                for kind in 0..35 {
                    lenient(&[sample, member, kind]);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn fuzz_targets_accept_any_input(data in data()) {
            for target in [
                arguments, batch, challenge, envelope, header_value, json, lenient, lines, login, message, schema_pattern, sse, token, tool_result,
                uri_template,
            ] {
                target(&data);
            }
        }

        #[test]
        fn odd_messages_are_tolerated(data in vec(any::<u8>(), 3..8)) {
            lenient(&data);
        }
    }
}
