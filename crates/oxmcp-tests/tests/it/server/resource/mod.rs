//! Resources and templates: lists, reads, and errors.

mod listing;
mod reading;
mod template;

use std::{borrow::Cow, io, time::Duration};

use bytes::Bytes;
use oxmcp::{
    Error, ErrorCode, RequestContext, Resource, ResourceTemplate, Revision, Server,
    protocol::{
        Annotations, Blob, CacheHint, CacheScope, Icon, ReadResourceResult, ResourceContents,
    },
    testing,
};
use serde_json::{Value, json};

use crate::support::{LEGACY, add, answer, modern, request, script};

const URI: &str = "app://x";

async fn read(server: &Server, revision: Revision, uri: &str) -> Value {
    answer(server, revision, "resources/read", json!({"uri": uri})).await
}

fn server(resource: Resource) -> Server {
    Server::new("library", "1.0.0").resource(resource)
}

async fn function() -> &'static str {
    "text"
}
