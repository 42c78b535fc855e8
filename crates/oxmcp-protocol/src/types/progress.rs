//! Progress of long requests.
//!
//! See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).

use std::fmt;

use oxmcp_json::write_string;
use serde::{Deserialize, Serialize};

use crate::{
    meta::{object::Meta, progress_token::ProgressToken},
    values::{
        json::{number, optional_number, write_number},
        open_enum::setters,
    },
};

/// Appends a `notifications/progress` message, exactly as it is serialized with [`ProgressParams`]. It is written without a
/// serializer because a call can consist mostly of such messages.
pub fn write_progress(
    out: &mut Vec<u8>,
    token: &ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: Option<&str>,
) {
    let open = br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#;
    out.extend_from_slice(open);
    match token {
        ProgressToken::Number(number) => {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }
        ProgressToken::String(text) => write_string(out, text),
    }
    out.extend_from_slice(br#","progress":"#);
    write_number(out, progress);
    if let Some(total) = total {
        out.extend_from_slice(br#","total":"#);
        write_number(out, total);
    }
    if let Some(message) = message {
        out.extend_from_slice(br#","message":"#);
        write_string(out, message);
    }
    out.extend_from_slice(b"}}\n");
}

/// The params of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The token of the request that makes progress.
    pub progress_token: ProgressToken,
    /// The progress so far, in a unit of the sender's choice. It grows with every notification.
    #[serde(with = "number")]
    pub progress: f64,
    /// The progress at the end, in the unit of `progress`, if it is known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub total: Option<f64>,
    /// A description of the current work, for people (2025-03-26 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ProgressParams {
    /// Creates progress without a total and a message.
    #[must_use]
    pub fn new(progress_token: impl Into<ProgressToken>, progress: f64) -> Self {
        Self {
            progress_token: progress_token.into(),
            progress,
            total: None,
            message: None,
            meta: Meta::default(),
        }
    }
}

setters!(ProgressParams {
    /// Sets the total.
    with_total => total: f64,
    /// Sets the message for people.
    with_message => message: String,
});

/// Prints the progress, and the total and the message if they are set.
impl fmt::Display for ProgressParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.progress.fmt(f)?;
        if let Some(total) = self.total {
            write!(f, "/{total}")?;
        }
        if let Some(message) = &self.message {
            write!(f, " {message}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};

    use super::*;
    use crate::jsonrpc::write::write_notification;

    fn a_number() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<i64>().prop_map(|whole| whole as f64),
            (-1000..1000).prop_map(f64::from),
            any::<f64>(),
        ]
    }

    fn a_token() -> impl Strategy<Value = ProgressToken> {
        prop_oneof![
            any::<i64>().prop_map(ProgressToken::from),
            any::<String>().prop_map(ProgressToken::from),
        ]
    }

    proptest! {
        #[test]
        fn direct_writing_equals_serialization(
            token in a_token(),
            progress in a_number(),
            total in option::of(a_number()),
            message in option::of(any::<String>()),
        ) {
            let mut written = Vec::new();
            write_progress(&mut written, &token, progress, total, message.as_deref());
            let mut params = ProgressParams::new(token, progress);
            (params.total, params.message) = (total, message);
            let mut expected = Vec::new();
            write_notification(&mut expected, "notifications/progress", &params).unwrap();
            prop_assert_eq!(String::from_utf8(written), String::from_utf8(expected));
        }
    }

    #[test]
    fn whole_numbers_drop_fraction_and_tokens_keep_type() {
        let params = ProgressParams::new(7, 3.0).with_total(4.5);
        let text = serde_json::to_string(&params).unwrap();
        assert_eq!(text, r#"{"progressToken":7,"progress":3,"total":4.5}"#);
        let back: ProgressParams =
            serde_json::from_str(r#"{"progressToken":"7","progress":3}"#).unwrap();
        assert_eq!(back.progress_token, "7".into());
        assert!(serde_json::from_str::<ProgressToken>("1.5").is_err());
    }
}
