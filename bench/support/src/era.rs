//! The two eras of MCP, as the benchmark speaks them.

use std::str::FromStr;

/// An era of MCP: with sessions, or stateless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// A session opened by `initialize`, at revision 2025-11-25.
    #[default]
    Legacy,
    /// Stateless requests that carry their `_meta`, at revision 2026-07-28.
    Modern,
}

impl Era {
    /// The revision that stands for the era.
    #[must_use]
    pub fn revision(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }

    /// The first message of a connection: `initialize`, or `server/discover`.
    #[must_use]
    pub fn opening(self) -> &'static str {
        match self {
            Self::Legacy => concat!(
                r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
                r#""capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}"#,
                "\n"
            ),
            Self::Modern => concat!(
                r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"#,
                r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
                "\n"
            ),
        }
    }

    /// The message that follows the answer to [`opening`](Self::opening).
    #[must_use]
    pub fn confirmation(self) -> &'static str {
        match self {
            Self::Legacy => concat!(
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                "\n"
            ),
            Self::Modern => "",
        }
    }

    /// The members of `_meta` that every request of the era carries.
    #[must_use]
    pub fn meta(self) -> &'static str {
        match self {
            Self::Legacy => "",
            Self::Modern => concat!(
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{}"#
            ),
        }
    }
}

impl FromStr for Era {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "2025" | "2025-11-25" => Ok(Self::Legacy),
            "2026" | "2026-07-28" => Ok(Self::Modern),
            _ => Err(format!("era={text}: expected 2025 or 2026")),
        }
    }
}
