//! The servers that are to be installed, independent of the host.

/// A server and its name.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) reach: Reach,
}

/// How a host reaches a server.
#[derive(Clone, Debug)]
pub(super) enum Reach {
    Program(Program),
    Url(Url),
}

/// A program that a host starts.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) words: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    /// The variables of the host that are passed to the program.
    pub(super) pass_env: Vec<String>,
    pub(super) cwd: Option<String>,
}

/// A server at a URL.
#[derive(Clone, Debug, Default)]
pub(super) struct Url {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    /// The headers with the value of a variable of the host.
    pub(super) env_headers: Vec<(String, String)>,
    pub(super) is_sse: bool,
}

impl Reach {
    pub(super) fn program(words: Vec<String>) -> Self {
        Self::Program(Program {
            words,
            ..Program::default()
        })
    }

    pub(super) fn url(url: impl Into<String>) -> Self {
        Self::Url(Url {
            url: url.into(),
            ..Url::default()
        })
    }
}
