//! The format of a transcript: JSON lines, each with a message, its time and its sender.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::{Failure, Result};

/// The version of the format.
const VERSION: u32 = 1;
/// The maximum size of a file that is read: its messages are kept in memory.
const MAX_BYTES: u64 = 256 << 20;

/// The first line.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Header {
    /// The version of the format, under a name that tells what the file is.
    #[serde(rename = "oxmcpTranscript")]
    pub(super) version: u32,
    /// The server.
    pub(super) target: String,
}

impl Header {
    pub(super) fn new(target: &str) -> Self {
        Self {
            version: VERSION,
            target: target.to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    Client,
    Server,
}

/// A message.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Line {
    /// The milliseconds since the start of the recording.
    pub(super) t: u64,
    pub(super) from: Side,
    pub(super) message: Box<RawValue>,
}

/// Reads a transcript.
///
/// # Errors
/// The file cannot be read, is too long, or is not a transcript.
pub(super) fn read(path: &Path) -> Result<Vec<Line>> {
    let name = path.display();
    let failed = |why: String| Failure::usage(format!("could not read {name}: {why}"));
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let length = file.metadata().map_or(0, |it| it.len());
    if length > MAX_BYTES {
        return Err(failed(format!("it has more than {MAX_BYTES} bytes")));
    }
    let mut lines = BufReader::new(file.take(MAX_BYTES)).lines();
    let first = lines
        .next()
        .transpose()
        .map_err(|error| failed(error.to_string()))?;
    let header = serde_json::from_str::<Header>(first.as_deref().unwrap_or_default());
    if !header.is_ok_and(|it| it.version == VERSION) {
        return Err(failed(
            "it is not a transcript; `oxmcp record` writes one".to_owned(),
        ));
    }
    let mut messages = Vec::new();
    for (index, line) in lines.enumerate() {
        let line = line.map_err(|error| failed(error.to_string()))?;
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 2;
        let line = serde_json::from_str(&line)
            .map_err(|error| failed(format!("line {number}: {error}")))?;
        messages.push(line);
    }
    Ok(messages)
}
