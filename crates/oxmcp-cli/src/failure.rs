//! The end of a command that failed: an exit code, which scripts rely on, and a line for people.

use std::{error::Error as StdError, fmt, io, process::ExitCode};

use oxmcp::{Error, auth::AuthError};
use oxmcp_group::ConfigError;
use serde_json::json;

use crate::escape;

/// The result of a command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The reasons for which a command fails. The numbers are the exit codes, and part of the documented interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The server refused the request, the tool failed, or the check found something.
    Refused = 1,
    /// The command line or a configuration file is wrong.
    Usage = 2,
    /// The server requires a login, or rejected it.
    Authorization = 3,
    /// The server cannot be reached, did not start, or ended.
    Unreachable = 4,
    /// The server violated the protocol.
    Protocol = 5,
    /// A person had to answer, and none could.
    PersonNeeded = 6,
    /// The server did not answer in time.
    Timeout = 124,
    /// The user pressed Ctrl-C.
    Interrupted = 130,
}

impl Reason {
    /// The name in the output of `--json`.
    fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Usage => "usage",
            Self::Authorization => "authorization",
            Self::Unreachable => "unreachable",
            Self::Protocol => "protocol",
            Self::PersonNeeded => "person-needed",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    reason: Reason,
    /// Empty if everything was printed already.
    message: String,
    /// The code of the JSON-RPC error, if the server sent one.
    code: Option<i64>,
    /// The HTTP status of the response, if the server sent one.
    http_status: Option<u16>,
}

impl Failure {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            code: None,
            http_status: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Reason::Usage, message)
    }

    /// A failure that the output on stdout describes already.
    pub(crate) fn shown(reason: Reason) -> Self {
        Self::new(reason, "")
    }

    /// Names the server that the failure is of, where the message does not.
    #[must_use]
    pub(crate) fn of_server(mut self, label: &str) -> Self {
        if !self.message.contains(label) {
            self.message = format!("{label}: {}", self.message);
        }
        self
    }

    /// Another reason for the same failure.
    #[must_use]
    pub(crate) fn because(mut self, reason: Reason) -> Self {
        self.reason = reason;
        self
    }

    pub(crate) fn reason(&self) -> Reason {
        self.reason
    }

    pub(crate) fn http_status(&self) -> Option<u16> {
        self.http_status
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.reason as u8)
    }

    /// The failure as one line: JSON, or text.
    pub(crate) fn line(&self, as_json: bool) -> Option<String> {
        if self.message.is_empty() {
            return None;
        }
        if !as_json {
            return Some(format!("oxmcp: {}", escape::line(&self.message)));
        }
        let mut error = json!({
            "reason": self.reason.name(),
            "exitCode": self.reason as u8,
            "message": self.message,
        });
        if let (Some(code), Some(error)) = (self.code, error.as_object_mut()) {
            error.insert("code".to_owned(), code.into());
        }
        Some(escape::json(&json!({ "error": error }).to_string()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let reason = if is_of_login(&error) {
            Reason::Authorization
        } else if error.is_timeout() {
            Reason::Timeout
        } else if error.is_cancelled() {
            Reason::Interrupted
        } else if error.is_declined() {
            Reason::PersonNeeded
        } else if error.is_protocol() || error.is_tool_error() || error.is_unsupported() {
            Reason::Refused
        } else if error.is_closed()
            || error.is_unserved()
            || error.http_status().is_some()
            || has_io_error(&error)
        {
            Reason::Unreachable
        } else {
            Reason::Protocol
        };
        Self {
            reason,
            message: error.message().to_owned(),
            code: error.is_protocol().then(|| error.code().value()),
            http_status: error.http_status(),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // Whoever reads the output has enough of it, such as `head`.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::shown(Reason::Refused);
        }
        Self::new(
            Reason::Refused,
            format!("could not write the result: {error}"),
        )
    }
}

fn is_of_login(error: &Error) -> bool {
    error.is_unauthorized() || sources(error).any(|it| it.is::<AuthError>())
}

fn has_io_error(error: &Error) -> bool {
    sources(error).any(|it| it.is::<io::Error>())
}

/// The error and its sources.
fn sources(error: &Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    std::iter::from_fn(move || {
        let it = next?;
        next = it.source();
        Some(it)
    })
}
