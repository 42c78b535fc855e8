//! The builder of a source of skills.

use std::{fmt, path::PathBuf, sync::Arc};

use bytes::Bytes;
use oxmcp::{StoredFile, file_resources, protocol::CacheHint};

use super::source::{Input, Source, load};
use crate::{entry::MAX_TOTAL_BYTES, uri::is_file_name};

/// The default number of entries of a page. An entry can have 512 files, which take some 80 KB.
const PAGE_SIZE: usize = 50;

/// The maximum number of files that are read from a directory: a mistaken path, such as that of a home directory, is reported
/// before it fills the memory.
const MAX_READ: usize = 32_768;

/// A function that returns the files of skills.
type Files = Arc<dyn Fn() -> Result<Vec<(String, Bytes)>, String> + Send + Sync>;

/// Skills that a server offers: directories with a `SKILL.md`, from the file system, from the program, or from a function.
/// [`ServerExt::skills`](crate::ServerExt::skills) adds them to a server.
///
/// The files are read once, and again by [`ServerExt::reload_skills`](crate::ServerExt::reload_skills). The files that clients read
/// and the digests that they verify them with always match.
///
/// A `SKILL.md` begins with frontmatter in YAML, with at least `name`, which is that of its directory, and `description`. The
/// URI of a file is `skill://`, the path within the source, and a [prefix](Self::prefix) before it, as in
/// `skill://acme/refunds/SKILL.md`.
///
/// Mistakes are reported before the server begins to serve, and by [`Server::check`](oxmcp::Server::check).
///
/// ```
/// use oxmcp::Server;
/// use oxmcp_skills::{ServerExt, Skills};
///
/// const REFUNDS: &str = "---\nname: refunds\ndescription: Refund an order\n---\n\nAsk for the order number first.\n";
///
/// let server = Server::new("shop", "1.0.0")
///     .skills(Skills::embedded([("refunds/SKILL.md", REFUNDS)]).prefix("shop"));
/// assert!(server.check().is_ok());
/// ```
#[derive(Clone)]
#[must_use = "add the skills to a server with `Server::skills`"]
pub struct Skills {
    files: Files,
    /// Whether a source without any skill is a mistake.
    pub(super) must_have_some: bool,
    prefix: Vec<String>,
    problem: Option<String>,
    pub(super) page_size: usize,
    pub(super) cache: CacheHint,
    pub(super) is_mentioned: bool,
    pub(super) are_prompts: bool,
}

impl Skills {
    /// Reads skills from a directory: every directory in it that has a `SKILL.md`, at any depth. Skills may contain others. If the
    /// given directory itself has a `SKILL.md`, it is one skill.
    ///
    /// Hidden files and directories, whose names begin with a dot, are not served, nor are symbolic links, and nothing outside
    /// the directory can be reached, even if it changes while it is read. The directory is read when the skills are added to a
    /// server, which blocks.
    ///
    /// ```no_run
    /// use oxmcp::Server;
    /// use oxmcp_skills::{ServerExt, Skills};
    ///
    /// let server = Server::new("shop", "1.0.0").skills(Skills::dir("/srv/shop/skills"));
    /// # let _ = server;
    /// ```
    pub fn dir(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let read = move || {
            // Skills that are within the limits have no larger files.
            let files = file_resources(&path).max_bytes(MAX_TOTAL_BYTES);
            let files = files.read_all(MAX_READ);
            let files = files.map_err(|error| error.message().to_owned())?;
            let pair = |file: StoredFile| (file.path, file.bytes);
            Ok(files.into_iter().map(pair).collect())
        };
        Self::of(Arc::new(read), true)
    }

    /// Serves skills that are compiled into the program: pairs of a path, with `/` between names, and the contents.
    ///
    /// ```
    /// use oxmcp_skills::Skills;
    ///
    /// const REFUNDS: &str = "---\nname: refunds\ndescription: Refund an order\n---\n\nSee logo.png.\n";
    ///
    /// // In a real program: include_bytes!("../skills/refunds/SKILL.md").as_slice(), and so on.
    /// let skills = Skills::embedded([
    ///     ("refunds/SKILL.md", REFUNDS.as_bytes()),
    ///     ("refunds/assets/logo.png", b"\x89PNG"),
    /// ]);
    /// # let _ = skills;
    /// ```
    pub fn embedded<P: Into<String>, B: Into<Bytes>>(
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Self {
        let files = files.into_iter();
        let files: Vec<(String, Bytes)> = files.map(|(p, b)| (p.into(), b.into())).collect();
        Self::of(Arc::new(move || Ok(files.clone())), true)
    }

    /// Serves skills that a function returns, as pairs of a path and the contents: from a database, or an archive. It is called
    /// when the skills are added to a server, and at each reload, and may block. It may return no skills.
    ///
    /// ```
    /// use oxmcp_skills::Skills;
    ///
    /// let skills = Skills::from_fn(|| {
    ///     let text = "---\nname: refunds\ndescription: Refund an order\n---\n\nAsk for the number.\n";
    ///     Ok::<_, std::io::Error>([("refunds/SKILL.md", text)])
    /// });
    /// # let _ = skills;
    /// ```
    pub fn from_fn<F, I, P, B, E>(files: F) -> Self
    where
        F: Fn() -> Result<I, E> + Send + Sync + 'static,
        I: IntoIterator<Item = (P, B)>,
        P: Into<String>,
        B: Into<Bytes>,
        E: fmt::Display,
    {
        let read = move || {
            let files = files().map_err(|error| error.to_string())?;
            let files = files.into_iter();
            Ok(files.map(|(p, b)| (p.into(), b.into())).collect())
        };
        Self::of(Arc::new(read), false)
    }

    fn of(files: Files, must_have_some: bool) -> Self {
        Self {
            files,
            must_have_some,
            prefix: Vec::new(),
            problem: None,
            page_size: PAGE_SIZE,
            cache: CacheHint::default(),
            is_mentioned: false,
            are_prompts: false,
        }
    }

    /// Sets a prefix for the paths in URIs, such as `acme` or `acme/billing`, so that they show whose skills these are.
    pub fn prefix(mut self, prefix: impl AsRef<str>) -> Self {
        let prefix = prefix.as_ref();
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-._~".contains(&it);
        let is_valid = |name: &str| is_file_name(name) && name.bytes().all(is_plain);
        self.prefix = prefix.split('/').map(str::to_owned).collect();
        if !self.prefix.iter().all(|name| is_valid(name)) {
            let problem = format!(
                "invalid prefix {prefix:?}; use names of A-Z, a-z, 0-9, \"-\", \".\", \"_\" and \"~\" with \"/\" between them"
            );
            self.problem.get_or_insert(problem);
        }
        self
    }

    /// Sets the number of entries of a page of `skills/list`, and of directories. 0 means the default, 50. If a server has several
    /// sources of skills, the smallest number applies.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = if entries == 0 { PAGE_SIZE } else { entries };
        self
    }

    /// Sets how long clients may use entries and files without asking again, and whether they may be shared
    /// (2026-07-28 and later). By default they are stale at once and private. If a server has several sources of skills, the most
    /// restrictive hint applies.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }

    /// Adds a sentence to the instructions of the server that names the skills: many models use skills only then. It names those
    /// that exist when the server is built. Call [`Server::instructions`](oxmcp::Server::instructions) first.
    pub fn mention_in_instructions(mut self) -> Self {
        self.is_mentioned = true;
        self
    }

    /// Also offers each skill as a prompt, with the same name and description, for hosts that do not support skills. The prompt is the
    /// `SKILL.md`.
    pub fn also_as_prompts(mut self) -> Self {
        self.are_prompts = true;
        self
    }

    /// Reads the files.
    ///
    /// # Errors
    /// The first problem.
    pub(super) fn load(&self) -> Result<Source, String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let files = (self.files)()?;
        let input = Input {
            prefix: &self.prefix,
            files,
        };
        let source = load(input)?;
        if source.skills.is_empty() && self.must_have_some {
            return Err("no skills found; a skill is a directory with a SKILL.md".to_owned());
        }
        Ok(source)
    }
}

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skills")
            .field("prefix", &self.prefix.join("/"))
            .finish_non_exhaustive()
    }
}
