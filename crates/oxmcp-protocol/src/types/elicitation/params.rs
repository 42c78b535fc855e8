//! Elicitation requests and results: a server asks the user.
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
    /// By a form.
    Form(ElicitFormParams),
    /// By sending the user to a URL (2025-11-25 and later).
    Url(ElicitUrlParams),
    /// In a way that this version of the crate does not know, as it came.
    Unknown(JsonObject),
}

impl ElicitParams {
    /// Asks by a form.
    #[must_use]
    pub fn form(message: impl Into<String>, schema: ElicitSchema) -> Self {
        Self::Form(ElicitFormParams::new(message, schema))
    }

    /// Asks by sending the user to a URL.
    #[must_use]
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams::new(message, url))
    }

    /// What the user is told. Empty where the way of asking is not known.
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

/// Asks by a form.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitFormParams {
    /// What the user is told.
    pub message: String,
    /// The fields of the form.
    pub requested_schema: ElicitSchema,
    /// Asks for it to run as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ElicitFormParams {
    /// A message and a form.
    #[must_use]
    pub fn new(message: impl Into<String>, requested_schema: ElicitSchema) -> Self {
        Self {
            message: message.into(),
            requested_schema,
            ..Self::default()
        }
    }
}

/// Asks by sending the user to a URL (2025-11-25 and later).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "mode", rename = "url", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitUrlParams {
    /// What the user is told, and why it is asked.
    pub message: String,
    /// Where the user is sent.
    pub url: String,
    /// What `notifications/elicitation/complete` refers to. 2025-11-25 needs it; no other revision has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Asks for it to run as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ElicitUrlParams {
    /// A message and a URL.
    #[must_use]
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            url: url.into(),
            ..Self::default()
        }
    }

    /// Checks that the URL is that of a page of the web, and shows whose. All other schemes make programs do things.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check_url(&self) -> Result<(), String> {
        check_page(&self.url)
    }
}

setters!(ElicitUrlParams {
    /// The same with an id.
    with_elicitation_id => elicitation_id: String,
});

/// What the user did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// Agreed, and filled in the form.
    Accept,
    /// Said no.
    Decline,
    /// Neither: closed the window, for example.
    Cancel,
}

impl ElicitAction {
    /// What a model is told where the user did not agree to what `message` asked. `None` where the user did.
    #[must_use]
    pub fn refusal(self, message: &str) -> Option<String> {
        match self {
            Self::Accept => None,
            Self::Decline => Some(format!(
                "The user was asked {message:?} and declined. Do not try again unless the user wants it."
            )),
            Self::Cancel => Some(format!(
                "The user was asked {message:?} and gave no answer. Ask the user how to go on before you try again."
            )),
        }
    }
}

/// The result of `elicitation/create`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitResult {
    /// What the user did.
    pub action: ElicitAction,
    /// What the user filled in: an object, where the action is [`Accept`](ElicitAction::Accept) and it was a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<RawValue>>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ElicitResult {
    /// The user did this, and filled in nothing.
    #[must_use]
    pub fn new(action: ElicitAction) -> Self {
        Self {
            action,
            content: None,
            meta: Meta::default(),
        }
    }

    /// The user agreed, and filled in the form.
    ///
    /// # Errors
    /// Where the content cannot be JSON, for example a map whose keys are no strings.
    pub fn accept(content: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self {
            content: Some(to_raw_value(content)?),
            ..Self::new(ElicitAction::Accept)
        })
    }

    /// What the user filled in, as a type.
    ///
    /// # Errors
    /// Where it does not fit the type. What is missing reads as an object without members.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.content.as_deref().map_or("{}", RawValue::get))
    }
}

/// The params of `notifications/elicitation/complete` (2025-11-25 only).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The id of the elicitation that is done.
    pub elicitation_id: String,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ElicitationCompleteParams {
    /// The params for an elicitation.
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
    fn a_form_is_what_has_no_mode() {
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
