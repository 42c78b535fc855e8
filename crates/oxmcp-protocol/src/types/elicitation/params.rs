//! Params and results of elicitation, by which a server requests input from the user.
//!
//! See [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    meta::object::Meta,
    types::{elicitation::schema::ElicitSchema, tasks::TaskMetadata},
    uri::check_page,
    values::{json::JsonObject, open_enum::setters, tagged::tagged},
};

/// The params of `elicitation/create`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitParams {
    /// Elicitation by a form.
    Form(ElicitFormParams),
    /// Elicitation by sending the user to a URL (2025-11-25 and later).
    Url(ElicitUrlParams),
    /// Elicitation of a mode that this version of the crate does not know, as received.
    Unknown(JsonObject),
}

impl ElicitParams {
    /// Creates the params of an elicitation by a form.
    #[must_use]
    pub fn form(message: impl Into<String>, schema: ElicitSchema) -> Self {
        Self::Form(ElicitFormParams::new(message, schema))
    }

    /// Creates the params of an elicitation that sends the user to a URL.
    #[must_use]
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams::new(message, url))
    }

    /// Returns the message for the user. Empty if the mode is unknown and the params have no `message`.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Form(form) => &form.message,
            Self::Url(url) => &url.message,
            Self::Unknown(object) => object
                .get("message")
                .and_then(|message| message.as_str())
                .unwrap_or_default(),
        }
    }
}

impl From<ElicitFormParams> for ElicitParams {
    fn from(params: ElicitFormParams) -> Self {
        Self::Form(params)
    }
}

impl From<ElicitUrlParams> for ElicitParams {
    fn from(params: ElicitUrlParams) -> Self {
        Self::Url(params)
    }
}

tagged!(ElicitParams by "mode" or else "form" {
    "form" => Form,
    "url" => Url,
});

/// The params of an elicitation by a form.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitFormParams {
    /// The message for the user.
    pub message: String,
    /// The fields of the form.
    pub requested_schema: ElicitSchema,
    /// The request to run the elicitation as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ElicitFormParams {
    /// Creates an elicitation with a message and a form.
    #[must_use]
    pub fn new(message: impl Into<String>, requested_schema: ElicitSchema) -> Self {
        Self {
            message: message.into(),
            requested_schema,
            ..Self::default()
        }
    }
}

/// The params of an elicitation that sends the user to a URL (2025-11-25 and later).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "mode", rename = "url", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitUrlParams {
    /// The message for the user, which explains why the visit is needed.
    pub message: String,
    /// The URL to which the user is sent.
    pub url: String,
    /// The id to which `notifications/elicitation/complete` refers. 2025-11-25 requires it; no other revision has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// The request to run the elicitation as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ElicitUrlParams {
    /// Creates an elicitation with a message and a URL.
    #[must_use]
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            url: url.into(),
            ..Self::default()
        }
    }

    /// Checks that the URL is a web page with a visible host. User information is not allowed, since it could be mistaken for the
    /// host, and neither are other schemes, since their URLs can launch programs.
    ///
    /// # Errors
    /// If the URL is not allowed, with a description of the problem.
    pub fn check_url(&self) -> Result<(), String> {
        check_page(&self.url)
    }
}

setters!(ElicitUrlParams {
    /// Sets the id of the elicitation.
    with_elicitation_id => elicitation_id: String,
});

/// The action of the user in response to an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// The user agreed, and filled in the form if there is one.
    Accept,
    /// The user declined.
    Decline,
    /// The user did neither, for example closed the window.
    Cancel,
}

impl ElicitAction {
    /// Returns the text for a model if the user did not agree to the request with this `message`. `None` if the user agreed.
    #[must_use]
    pub fn refusal(self, message: &str) -> Option<String> {
        match self {
            Self::Accept => None,
            Self::Decline => Some(format!(
                "The user was asked {message:?} and declined. Do not try again unless the user wants it."
            )),
            Self::Cancel => Some(format!(
                "The user was asked {message:?} and did not answer. Ask the user how to proceed before you try again."
            )),
        }
    }
}

/// The result of `elicitation/create`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitResult {
    /// The action of the user.
    pub action: ElicitAction,
    /// The content that the user filled in: an object, if the action is [`Accept`](ElicitAction::Accept) and the elicitation
    /// has a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<RawValue>>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ElicitResult {
    /// Creates a result with an action and without content.
    #[must_use]
    pub fn new(action: ElicitAction) -> Self {
        Self {
            action,
            content: None,
            meta: Meta::default(),
        }
    }

    /// Creates the result for a user who agreed and filled in the form.
    ///
    /// # Errors
    /// If the content cannot be serialized as JSON, for example a map whose keys are not strings.
    pub fn accept(content: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self {
            content: Some(to_raw_value(content)?),
            ..Self::new(ElicitAction::Accept)
        })
    }

    /// Decodes the content that the user filled in.
    ///
    /// # Errors
    /// If the content does not fit the type. Absent content is read as an object without members.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.content.as_deref().map_or("{}", RawValue::get))
    }
}

/// The params of `notifications/elicitation/complete` (2025-11-25 only).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The id of the completed elicitation.
    pub elicitation_id: String,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ElicitationCompleteParams {
    /// Creates the params for an elicitation.
    #[must_use]
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self {
            elicitation_id: elicitation_id.into(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_mode_is_the_default() {
        let form = r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
        let params: ElicitParams = serde_json::from_str(form).unwrap();
        assert!(matches!(params, ElicitParams::Form(_)));
        assert_eq!(serde_json::to_string(&params).unwrap(), form);

        let url = r#"{"mode":"url","message":"m","url":"https://example.com/"}"#;
        let params: ElicitParams = serde_json::from_str(url).unwrap();
        assert!(matches!(params, ElicitParams::Url(_)));
        assert_eq!(serde_json::to_string(&params).unwrap(), url);

        let odd: ElicitParams = serde_json::from_str(r#"{"mode":"tea","message":"m"}"#).unwrap();
        assert_eq!(odd.message(), "m");
    }
}
