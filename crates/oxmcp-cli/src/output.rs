//! Results on stdout.

use std::{
    fs,
    io::{self, IsTerminal, Write, stdout},
    path::{Path, PathBuf},
};

use oxmcp::protocol::{ContentBlock, ResourceBody, ResourceContents};
use serde::Serialize;

use crate::{
    escape,
    failure::{Failure, Reason, Result},
    terminal::Terminal,
};

/// The most files of one kind in a folder.
const MAX_FILES: usize = 100_000;

/// Prints a value as JSON, indented.
///
/// # Errors
/// stdout is closed.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    line(&escape::json(&text))
}

/// Prints a value as one line of JSON, at once.
///
/// # Errors
/// stdout is closed.
pub(crate) fn json_line(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    line(&escape::json(&text))?;
    Ok(stdout().flush()?)
}

/// Prints text of a server. On a terminal, it is escaped; elsewhere it is as the server sent it.
///
/// # Errors
/// stdout is closed.
pub(crate) fn text(text: &str) -> Result<()> {
    if stdout().is_terminal() {
        return line(&escape::block(text));
    }
    line(text)
}

/// Prints a unified diff, in colors where stdout has them.
///
/// # Errors
/// stdout is closed.
pub(crate) fn diff(text: &str) -> Result<()> {
    diff_to(&mut anstream::stdout(), text)
}

/// Writes a unified diff to another stream.
///
/// # Errors
/// The stream is closed.
pub(crate) fn diff_to(out: &mut impl Write, text: &str) -> Result<()> {
    for it in text.split_terminator('\n') {
        let color = match it.chars().next() {
            _ if it.starts_with("+++") || it.starts_with("---") => "1",
            Some('+') => "32",
            Some('-') => "31",
            Some('@') => "36",
            _ => "0",
        };
        writeln!(out, "\u{1b}[{color}m{}\u{1b}[0m", escape::line(it))?;
    }
    Ok(())
}

fn line(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Prints the contents of a resource: text and bytes as they are, but never bytes on a terminal.
///
/// # Errors
/// stdout is closed, or is a terminal and the contents are bytes.
pub(crate) fn contents(contents: &ResourceContents) -> Result<()> {
    match &contents.body {
        ResourceBody::Text(text) if stdout().is_terminal() => line(&escape::block(text)),
        ResourceBody::Text(text) => Ok(stdout().write_all(text.as_bytes())?),
        ResourceBody::Blob(_) if stdout().is_terminal() => {
            let kind = contents.mime_type.as_deref().unwrap_or("unknown type");
            Err(Failure::usage(format!(
                "{} is binary ({kind}); redirect stdout to a file, or use `--json`",
                contents.uri
            )))
        }
        ResourceBody::Blob(blob) => Ok(stdout().write_all(blob)?),
        _ => Ok(()),
    }
}

/// Prints the content of a result. Bytes are written to files, if there is a folder for them, and named otherwise.
///
/// # Errors
/// stdout is closed, or a file cannot be written.
pub(crate) fn content(
    blocks: &[ContentBlock],
    folder: Option<&Path>,
    terminal: &Terminal,
) -> Result<()> {
    for (index, block) in blocks.iter().enumerate() {
        let shown = match block {
            ContentBlock::Text(it) => it.text.clone(),
            ContentBlock::Image(it) => bytes(("image", index), &it.mime_type, &it.data, folder)?,
            ContentBlock::Audio(it) => bytes(("audio", index), &it.mime_type, &it.data, folder)?,
            ContentBlock::ResourceLink(it) => {
                format!("{} ({})", it.uri, it.title.as_ref().unwrap_or(&it.name))
            }
            ContentBlock::Resource(it) => {
                let contents = &it.resource;
                match &contents.body {
                    ResourceBody::Text(text) => text.clone(),
                    ResourceBody::Blob(blob) => {
                        let kind = contents.mime_type.as_deref().unwrap_or_default();
                        bytes(("resource", index), kind, blob, folder)?
                    }
                    _ => contents.uri.clone(),
                }
            }
            other => serde_json::to_string(other).map_err(io::Error::from)?,
        };
        terminal.end_progress();
        text(&shown)?;
    }
    Ok(())
}

/// Writes bytes to a file of the folder. Returns its path, or a description of the bytes.
fn bytes(
    (kind, index): (&str, usize),
    mime_type: &str,
    bytes: &[u8],
    folder: Option<&Path>,
) -> Result<String> {
    let Some(folder) = folder else {
        return Ok(format!(
            "[{kind} {mime_type}, {} bytes; `--output FOLDER` writes it to a file]",
            bytes.len()
        ));
    };
    let path = |number: usize| -> PathBuf {
        folder.join(format!("{kind}-{number}.{}", extension(mime_type)))
    };
    let mut number = index + 1;
    let failed = |path: &Path, error: io::Error| {
        Failure::new(
            Reason::Usage,
            format!("could not write {}: {error}", path.display()),
        )
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    // Files of earlier calls stay, and links are not followed.
    let (path, mut file) = loop {
        let path = path(number);
        match fs::File::create_new(&path) {
            Ok(file) => break (path, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_FILES => {
                number += 1;
            }
            Err(error) => return Err(failed(&path, error)),
        }
    };
    file.write_all(bytes)
        .map_err(|error| failed(&path, error))?;
    Ok(path.display().to_string())
}

/// The extension of a file. It comes from a server, so only known ones are used as they are.
fn extension(mime_type: &str) -> &'static str {
    match mime_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "text/plain" => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_safe_for_terminals_and_unchanged() {
        let hostile = "a\u{9b}2J\u{202e}\u{e0041}b";
        let shown = escape::json(&serde_json::to_string(hostile).unwrap());
        assert_eq!(shown, r#""a\u009b2J\u202e\udb40\udc41b""#);
        let back: String = serde_json::from_str(&shown).unwrap();
        assert_eq!(back, hostile);
    }
}
