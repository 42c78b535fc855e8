//! Reading of files as resources: contents, MIME types, and the limit of concurrent reads.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use oxmcp_protocol::{ReadResourceResult, ResourceBody, ResourceContents, uri_template::Captured};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use super::{
    directory::Directory,
    entry::Refused,
    path::{is_hidden, names},
    roots::{self, Roots},
};
use crate::{
    error::{Error, Result},
    server::resource::handler::{ErasedHandler, Target, no_such},
    session::connection::RequestContext,
};

/// The maximum number of files read, or encoded into responses, at once: disks are not faster with more, and each file is held
/// in memory.
const MAX_CONCURRENT: usize = 16;

/// A directory, and the settings by which it is served.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) directory: Directory,
    /// The path given by the author. Clients may know the directory by this path.
    pub(crate) given: PathBuf,
    pub(crate) max_bytes: u64,
    pub(crate) hidden: bool,
    pub(crate) roots: Roots,
    pub(crate) permits: Arc<Semaphore>,
}

/// The permits for concurrent reads.
pub(crate) fn permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_CONCURRENT))
}

impl Files {
    /// The handler of the template: reads the file that the variable names.
    pub(crate) fn template(self: Arc<Self>) -> ErasedHandler {
        Arc::new(move |context, target| {
            let path = match target.captures.first() {
                // The path is not decoded yet, since a name need not be text.
                Some((_, Captured::One(path))) => names(path),
                _ => None,
            };
            let names = path.ok_or_else(|| Error::resource_not_found(&target.uri))?;
            let files = Arc::clone(&self);
            Ok(Box::pin(async move {
                files.read(context, &target, names).await
            }))
        })
    }

    /// The handler of a listed file.
    pub(crate) fn listed(self: &Arc<Self>, names: &[OsString]) -> ErasedHandler {
        let (files, names) = (Arc::clone(self), names.to_vec());
        Arc::new(move |context, target| {
            let (files, names) = (Arc::clone(&files), names.clone());
            Ok(Box::pin(async move {
                files.read(context, &target, names).await
            }))
        })
    }

    /// Refuses a file outside the client's roots.
    async fn check_roots(&self, cx: &RequestContext, uri: &str, names: &[OsString]) -> Result<()> {
        if self.roots == Roots::Ignored {
            return Ok(());
        }
        match roots::of(cx).await? {
            Some(roots) if roots::hold(&roots, &self.paths(names)) => Ok(()),
            Some(_) => Err(no_such(uri, "it is outside the client's roots")),
            None if self.roots == Roots::WhereKnown => Ok(()),
            None => Err(no_such(
                uri,
                "the client has no roots; only files within roots are served",
            )),
        }
    }

    async fn read(
        self: Arc<Self>,
        cx: RequestContext,
        target: &Target,
        names: Vec<OsString>,
    ) -> Result<ReadResourceResult> {
        let uri = &*target.uri;
        if !self.hidden && is_hidden(&names) {
            return Err(Error::resource_not_found(uri));
        }
        self.check_roots(&cx, uri, &names).await?;
        let mime_type = mime_type(&names);
        let max_bytes = self.max_bytes;
        let permit = self.permit(&cx).await?;
        // The blocking task holds the permit, since it continues if the request is cancelled: otherwise a client that cancels
        // each request could have any number of files read at once.
        let read = spawn_blocking(move || (self.directory.read(&names, max_bytes), permit));
        let read = read.await;
        let (read, permit) =
            read.map_err(|error| Error::internal("could not read the file").with_source(error))?;
        let bytes = read.map_err(|refused| match refused {
            Refused::NotFound => Error::resource_not_found(uri),
            Refused::NoFile(what) => no_such(uri, what),
            Refused::TooLong => Error::invalid_params(format!(
                "the file is too large: the limit is {max_bytes} bytes"
            )),
            Refused::Io(error) => {
                Error::internal(format!("could not read the file: {error}")).with_source(error)
            }
        })?;
        // The contents take memory until they are written into the response.
        let _ = target.held.set(permit);
        Ok(contents(uri, bytes, mime_type).into())
    }

    /// Waits for a permit, and for space for the response. So a client that does not read responses takes no permits from
    /// others.
    async fn permit(&self, cx: &RequestContext) -> Result<OwnedSemaphorePermit> {
        let outbox = &cx.parts().connection.outbox;
        loop {
            outbox.ready().await;
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            if outbox.has_room() {
                return permit.map_err(|error| {
                    Error::internal("could not read the file").with_source(error)
                });
            }
        }
    }

    /// The paths under which a client may know a file.
    fn paths(&self, names: &[OsString]) -> [PathBuf; 2] {
        [self.directory.path(), &self.given].map(|directory| {
            let mut path = directory.to_owned();
            path.extend(names);
            path
        })
    }
}

/// The contents of a file: text if it is UTF-8 without NUL bytes, and bytes otherwise.
fn contents(uri: &str, bytes: Vec<u8>, mime_type: Option<&str>) -> ResourceContents {
    let text = if bytes.contains(&0) {
        Err(bytes)
    } else {
        String::from_utf8(bytes).map_err(|error| error.into_bytes())
    };
    let (body, otherwise) = match text {
        Ok(text) => (ResourceBody::Text(text), "text/plain"),
        Err(bytes) => (ResourceBody::Blob(bytes.into()), "application/octet-stream"),
    };
    ResourceContents::new(uri, body).with_mime_type(mime_type.unwrap_or(otherwise))
}

/// The MIME types of common files, by the extensions of their names, sorted for the binary search.
const TYPES: &[(&str, &str)] = &[
    ("bmp", "image/bmp"),
    ("c", "text/x-c"),
    ("cpp", "text/x-c++"),
    ("cs", "text/x-csharp"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("go", "text/x-go"),
    ("gz", "application/gzip"),
    ("h", "text/x-c"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("java", "text/x-java"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("kt", "text/x-kotlin"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("php", "text/x-php"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("rb", "text/x-ruby"),
    ("rs", "text/x-rust"),
    ("sh", "text/x-shellscript"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("swift", "text/x-swift"),
    ("tar", "application/x-tar"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("tsv", "text/tab-separated-values"),
    ("tsx", "text/x-typescript"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// Returns the MIME type of a file by the extension of its name, as [`file_resources`](crate::server::file_resources) serves it.
/// `None` if the extension is unknown.
///
/// ```
/// assert_eq!(oxmcp::file_mime_type("docs/GUIDE.md"), Some("text/markdown"));
/// assert_eq!(oxmcp::file_mime_type("LICENSE"), None);
/// ```
#[must_use]
pub fn file_mime_type(path: &str) -> Option<&'static str> {
    mime_type(&[path.into()])
}

/// The MIME type of a file, by its name.
pub(crate) fn mime_type(names: &[OsString]) -> Option<&'static str> {
    let ending = Path::new(names.last()?).extension()?.to_str()?;
    let ending = ending.to_ascii_lowercase();
    let at = TYPES.binary_search_by(|(known, _)| (*known).cmp(&ending));
    TYPES.get(at.ok()?).map(|(_, mime_type)| *mime_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_extension_decides_the_mime_type() {
        assert!(TYPES.is_sorted());
        let of = |name: &str| mime_type(&[name.into()]);
        assert_eq!(of("a.TXT"), Some("text/plain"));
        assert_eq!(of("a.tar.gz"), Some("application/gzip"));
        assert_eq!(of("txt"), None);
        assert_eq!(of("a.unknown"), None);
    }
}
