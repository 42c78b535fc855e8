//! The method of the extension that both sides share.

use oxmcp::protocol::{ListResourcesResult, Method, Payload};
use serde::{Deserialize, Serialize};

/// The request `resources/directory/read`.
pub(crate) struct ReadDirectory;

impl Method for ReadDirectory {
    const NAME: &'static str = "resources/directory/read";
    type Params = ReadDirectoryParams;
    type Result = ListResourcesResult;
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadDirectoryParams {
    pub(crate) uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<String>,
}

impl Payload for ReadDirectoryParams {}
