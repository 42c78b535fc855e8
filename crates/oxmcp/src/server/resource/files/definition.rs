//! Definition of a directory served as resources.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use oxmcp_protocol::CacheHint;

use super::{
    directory::{Bounds, Directory, Found, StoredFile},
    path::{encoded, file_uri},
    read::{Files, mime_type, permits},
    roots::Roots,
};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    server::{
        registry::AskMode,
        resource::{Resource, ResourceTemplate},
    },
};

/// The default size limit of a file, in bytes: far more than fits into the context of a model.
const MAX_BYTES: u64 = 16 << 20;

/// Serves the files of a directory as resources. [`Server::files`](crate::Server::files) adds it to a server.
///
/// The URI of a file is the URI of the directory (`file:///srv/docs/`), or a [prefix](FileResources::uri_prefix) instead, and
/// then the path of the file, percent-encoded where needed. Files in UTF-8 without NUL bytes are served as text, and all others
/// as bytes. MIME types follow from file extensions.
///
/// Nothing outside the directory can be reached. The directory is opened once, and paths are resolved from there, one name after
/// the other: `..` is refused, symbolic links are never followed, and only regular files are opened. Hidden files and directories
/// (whose names begin with a dot) are not served, since they often contain secrets; see [`hidden`](FileResources::hidden).
///
/// A client that has [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots) can read only files within
/// them, and a client without roots can read everything; see [`require_roots`](FileResources::require_roots) and
/// [`ignore_roots`](FileResources::ignore_roots).
///
/// Mistakes, such as a directory that cannot be opened, are reported when the server begins to serve.
///
/// ```
/// use oxmcp::{Server, file_resources};
///
/// let server = Server::new("docs", "1.0.0")
///     .files(file_resources(".").uri_prefix("docs://").listed(1000));
/// # let _ = server;
/// ```
pub fn file_resources(directory: impl AsRef<Path>) -> FileResources {
    FileResources {
        path: directory.as_ref().to_owned(),
        prefix: None,
        name: "files".to_owned(),
        max_bytes: MAX_BYTES,
        listed: 0,
        hidden: false,
        roots: Roots::WhereKnown,
        cache: None,
    }
}

/// A directory served as resources; made by [`file_resources`].
///
/// It can be converted to a [`ResourceTemplate`], which has more options: `ResourceTemplate::from(files).title("Docs")`.
#[derive(Clone)]
#[must_use = "pass it to `Server::files`"]
pub struct FileResources {
    path: PathBuf,
    prefix: Option<String>,
    name: String,
    max_bytes: u64,
    pub(crate) listed: usize,
    hidden: bool,
    roots: Roots,
    cache: Option<CacheHint>,
}

impl FileResources {
    /// Sets the prefix of the URIs, such as `docs://`, to replace the `file:` URI of the directory. Clients then do not learn the
    /// path of the directory.
    pub fn uri_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets the name of the template, for programs. Default: `files`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the maximum size of a file, in bytes. Default: 16 MiB.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Also lists the files, up to this number, that exist when the directory is added to the server. By default, no files are
    /// listed, and clients see only the template. [`list`](Self::list) lists them again later.
    pub fn listed(mut self, most: usize) -> Self {
        self.listed = most;
        self
    }

    /// Also serves hidden files and directories, whose names begin with a dot.
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Ignores the roots of clients, for a directory that belongs to the server, such as its documentation.
    pub fn ignore_roots(mut self) -> Self {
        self.roots = Roots::Ignored;
        self
    }

    /// Serves no files to a client without roots. By default, such a client can read the whole directory, since most clients have
    /// no roots.
    ///
    /// The [listed](Self::listed) files are also hidden from such a client. A client with the roots capability sees the names of
    /// all listed files, since it is not asked for its roots when it lists, but it cannot read files outside of them.
    pub fn require_roots(mut self) -> Self {
        self.roots = Roots::Required;
        self
    }

    /// Sets the cache hint of the contents: how long they stay fresh, and whether they may be shared.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = Some(hint);
        self
    }

    /// Lists the files that exist now, up to `most`, in the order of their names. Blocks while it reads the whole directory.
    ///
    /// ```no_run
    /// # fn refresh(server: &oxmcp::Server) -> oxmcp::Result<()> {
    /// let files = oxmcp::file_resources("/srv/docs");
    /// server.add_resources(files.list(1000)?)
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn list(&self, most: usize) -> Result<Vec<Resource>> {
        let (files, prefix) = self.open()?;
        let found = files.directory.list(most, self.hidden);
        let found = found.map_err(|error| self.wrong(&error.to_string()))?;
        let files = Arc::new(files);
        let resource = |found: Found| {
            let join = |name: fn(&std::ffi::OsStr) -> String| {
                let names: Vec<_> = found.names.iter().map(|it| name(it)).collect();
                names.join("/")
            };
            let uri = format!("{prefix}{}", join(encoded));
            let name = join(|name| name.to_string_lossy().into_owned());
            let handler = files.listed(&found.names);
            let mut resource =
                Resource::assemble(uri, name, handler, AskMode::Context).size(found.size);
            resource.definition.mime_type = mime_type(&found.names).map(Into::into);
            resource.cache = self.cache;
            match self.roots {
                Roots::Required => {
                    resource.visible_to(|cx| cx.client_capabilities().roots.is_some())
                }
                Roots::WhereKnown | Roots::Ignored => resource,
            }
        };
        Ok(found.into_iter().map(resource).collect())
    }

    /// Reads all files that exist now, at most `most`, in the order of their names. Blocks while it reads them.
    ///
    /// It reads the files that a client could read: nothing outside the directory, even if the directory changes meanwhile, and
    /// no hidden files, unless they are [served](Self::hidden). Symbolic links are omitted, with a warning in the log.
    ///
    /// ```no_run
    /// # fn run() -> oxmcp::Result<()> {
    /// for file in oxmcp::file_resources("/srv/docs").read_all(1000)? {
    ///     println!("{}: {} bytes", file.path, file.bytes.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If a file or directory cannot be read, if there are more files, or if one exceeds [`max_bytes`](Self::max_bytes).
    pub fn read_all(&self, most: usize) -> Result<Vec<StoredFile>> {
        let (files, _) = self.open()?;
        let bounds = Bounds {
            most,
            max_bytes: self.max_bytes,
            hidden: self.hidden,
        };
        let read = files.directory.read_all(bounds);
        read.map_err(|problem| self.wrong(&problem))
    }

    /// Opens the directory. Also returns the prefix of the URIs.
    fn open(&self) -> Result<(Files, String)> {
        let directory =
            Directory::open(&self.path).map_err(|error| self.wrong(&error.to_string()))?;
        let prefix = match &self.prefix {
            Some(prefix) => prefix.clone(),
            None => file_uri(directory.path()),
        };
        if prefix.contains(['{', '}', '?', '#']) {
            let problem = format!("invalid URI prefix {prefix:?}; remove {{}}, ? and #");
            return Err(self.wrong(&problem));
        }
        let given = std::path::absolute(&self.path).ok();
        // A path with `..` leads to the directory only if the links before the `..` are followed.
        let given = given.filter(|path| !path.components().any(|it| it == Component::ParentDir));
        let given = given.unwrap_or_else(|| directory.path().to_owned());
        let files = Files {
            directory,
            given,
            max_bytes: self.max_bytes,
            hidden: self.hidden,
            roots: self.roots,
            permits: permits(),
        };
        Ok((files, prefix))
    }

    fn wrong(&self, problem: &str) -> Error {
        let path = self.path.display();
        Error::misuse(format!("cannot serve the files of {path}: {problem}"))
    }
}

impl From<FileResources> for ResourceTemplate {
    fn from(files: FileResources) -> Self {
        let (opened, prefix) = match files.open() {
            Ok(opened) => opened,
            Err(error) => return Self::refused(String::new(), files.name, error),
        };
        let handler = Arc::new(opened).template();
        Self {
            cache: files.cache,
            ..Self::erased(format!("{prefix}{{+path}}"), files.name, handler)
        }
    }
}

opaque_debug!(FileResources, |it| { path: it.path });
