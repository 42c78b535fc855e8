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
    Program {
        words: Vec<String>,
        env: Vec<(String, String)>,
        /// The variables of the host that are passed to the program.
        pass_env: Vec<String>,
        cwd: Option<String>,
    },
    Url {
        url: String,
        headers: Vec<(String, String)>,
        /// The headers with the value of a variable of the host.
        env_headers: Vec<(String, String)>,
        is_sse: bool,
    },
}

impl Reach {
    pub(super) fn program(words: Vec<String>) -> Self {
        Self::Program {
            words,
            env: Vec::new(),
            pass_env: Vec::new(),
            cwd: None,
        }
    }

    pub(super) fn url(url: impl Into<String>) -> Self {
        Self::Url {
            url: url.into(),
            headers: Vec::new(),
            env_headers: Vec::new(),
            is_sse: false,
        }
    }
}
