use std::{ffi::OsString, path::PathBuf, sync::Arc};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use super::{
    directory::{Directory, Refused},
    media::mime_type,
    path::{is_hidden, names},
    roots,
};
use crate::{
    Error, Result,
    codec::uri_template::Captured,
    protocol::{ReadResourceResult, ResourceBody, ResourceContents},
    server::resource::{ErasedHandler, Target, no_such},
    session::RequestContext,
};

/// So many files are read, or written into their answers, at once: disks are not quicker with more, and each may fill as much
/// memory as it is long.
const AT_ONCE: usize = 16;

/// A directory, and what of it is served.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) directory: Directory,
    /// The path that the author gave. Clients may know the directory by this one.
    pub(super) given: PathBuf,
    pub(super) longest: u64,
    pub(super) hidden: bool,
    pub(super) beyond_roots: bool,
    pub(super) busy: Busy,
}

/// How many files may be read now.
#[derive(Debug)]
pub(super) struct Busy(Arc<Semaphore>);

impl Default for Busy {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Files {
    /// Reads what the variable of the template stands for.
    pub(super) fn template(self: Arc<Self>) -> ErasedHandler {
        Arc::new(move |context, target| {
            let path = match target.captures.first() {
                // Not decoded yet: a name need not be text.
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

    /// Reads a file that was found.
    pub(super) fn listed(self: &Arc<Self>, names: &[OsString]) -> ErasedHandler {
        let (files, names) = (Arc::clone(self), names.to_vec());
        Arc::new(move |context, target| {
            let (files, names) = (Arc::clone(&files), names.clone());
            Ok(Box::pin(async move {
                files.read(context, &target, names).await
            }))
        })
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
        if !self.beyond_roots
            && let Some(roots) = roots::of(&cx).await?
            && !roots::hold(&roots, &self.paths(&names))
        {
            return Err(no_such(uri, "it is not within the client's roots"));
        }
        let mime_type = mime_type(&names);
        let longest = self.longest;
        let place = self.place(&cx).await?;
        // The place is held by who reads, who goes on where the request is cancelled: otherwise a client that cancels what it
        // has just asked for could have any number of files read.
        let read = spawn_blocking(move || (self.directory.read(&names, longest), place));
        let read = read.await;
        let (read, place) =
            read.map_err(|error| Error::internal("the file could not be read").with_source(error))?;
        let bytes = read.map_err(|refused| match refused {
            Refused::NotFound => Error::resource_not_found(uri),
            Refused::NoFile(what) => no_such(uri, what),
            Refused::TooLong => Error::internal(format!(
                "the file is longer than {longest} bytes, the limit"
            )),
            Refused::Io(error) => {
                Error::internal(format!("the file cannot be read: {error}")).with_source(error)
            }
        })?;
        // What was read takes its memory until it has been written into the answer.
        let _ = target.held.set(place);
        Ok(contents(uri, bytes, mime_type).into())
    }

    /// Waits until a file may be read: until there is a place, and room for the answer. A client that reads no answers takes
    /// no places from others.
    async fn place(&self, cx: &RequestContext) -> Result<OwnedSemaphorePermit> {
        let outbox = &cx.parts().connection.outbox;
        loop {
            outbox.ready().await;
            let place = Arc::clone(&self.busy.0).acquire_owned().await;
            if outbox.has_room() {
                return place
                    .map_err(|error| Error::internal("no file can be read").with_source(error));
            }
        }
    }

    /// The paths by which a client may know a file.
    fn paths(&self, names: &[OsString]) -> [PathBuf; 2] {
        [self.directory.path(), &self.given].map(|directory| {
            let mut path = directory.to_owned();
            path.extend(names);
            path
        })
    }
}

/// What a file holds: text, where it is any.
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
