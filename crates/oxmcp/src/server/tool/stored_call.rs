//! Stored call of a tool, to repeat it without its client.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    error::{Error, Result},
    server::ask,
    session::connection::RequestContext,
};

/// A call of a tool in its stored form: the arguments, the information about the client, and the metadata of the request. The
/// principal and the revision of the call are stored next to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredCall {
    pub(crate) arguments: Box<RawValue>,
    pub(crate) capabilities: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Box<RawValue>>,
    /// For a handler that asks by a [`Reply`](crate::Reply): the state and the responses that came with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply: Option<(Option<String>, Box<RawValue>)>,
}

impl StoredCall {
    /// The stored form of a call.
    ///
    /// # Errors
    /// If a part of the call is not JSON.
    pub(crate) fn of(cx: &RequestContext, arguments: &str) -> Result<Self> {
        let peer = &cx.parts().peer;
        let client = peer.implementation.as_ref().map(to_json).transpose()?;
        let meta = cx.parts().meta.as_deref().map(read).transpose()?;
        let reply = ask::reply_input(cx)
            .map(|(state, responses)| to_json(&responses).map(|responses| (state, responses)));
        Ok(Self {
            arguments: read(arguments)?,
            capabilities: to_json(&peer.capabilities)?,
            client,
            meta,
            reply: reply.transpose()?,
        })
    }

    /// The approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of = |it: &Option<Box<RawValue>>| it.as_ref().map_or(0, |it| it.get().len());
        let reply = self.reply.as_ref().map_or(0, |(state, responses)| {
            state.as_ref().map_or(0, String::len) + responses.get().len()
        });
        let arguments = self.arguments.get().len();
        arguments + self.capabilities.get().len() + of(&self.client) + of(&self.meta) + reply
    }
}

fn read(text: &str) -> Result<Box<RawValue>> {
    serde_json::from_str(text).map_err(unfit)
}

fn to_json(value: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(value).map_err(unfit)
}

fn unfit(error: serde_json::Error) -> Error {
    Error::internal(format!("could not store the call: {error}")).with_source(error)
}
