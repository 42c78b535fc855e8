//! The headers that repeat arguments of a tool.
//!
//! See [custom headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters).

use std::fmt;

use super::{
    annotation::{self, Found},
    names::MCP_PARAM,
    scalar::Scalar,
};
use crate::json::Text;

/// Which arguments of a tool are repeated in which headers, found out once.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParamHeaders(pub(super) Box<[Param]>);

#[derive(Clone, Debug)]
pub(super) struct Param {
    /// The names that lead to the argument.
    path: Box<[Box<str>]>,
    /// The name of the header, in lower case.
    pub(super) header: Box<str>,
}

/// Headers and body do not say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl ParamHeaders {
    /// What is said of a tool that asks for more than may be kept.
    pub(crate) const TOO_MUCH: &str = annotation::TOO_MUCH;

    /// Those that the schema of a tool's input asks for, which may take so many bytes.
    ///
    /// # Errors
    /// What is wrong with an `x-mcp-header`, and where it stands; or that they take more. Clients leave such a tool out.
    pub(crate) fn of(schema: Text<'_>, max_bytes: usize) -> Result<Self, String> {
        let found = annotation::find(schema, max_bytes)?;
        let params = found.into_iter().map(|Found { path, name }| {
            let header = format!("{MCP_PARAM}{}", name.to_ascii_lowercase());
            Param {
                path,
                header: header.into(),
            }
        });
        Ok(Self(params.collect()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes they take.
    pub(crate) fn size(&self) -> usize {
        let params = self.0.iter();
        params
            .map(|param| annotation::size(&param.path, &param.header))
            .sum()
    }
}

impl Param {
    /// The argument that is repeated.
    pub(super) fn of<'a>(&self, arguments: Text<'a>) -> Result<Scalar<'a>, Mismatch> {
        let mut value = arguments;
        for name in &self.path {
            let mut members = value.members().filter(|(key, _)| key.is_str(name));
            let Some((_, found)) = members.next() else {
                return Ok(Scalar::Absent);
            };
            if members.next().is_some() {
                return Err(self.mismatch("stands there twice in the body"));
            }
            value = found;
        }
        match Scalar::of(value) {
            Scalar::Unsafe => Err(self.mismatch(
                "is an integer beyond 2^53-1, which a header cannot repeat; send it as a string if the tool takes one",
            )),
            scalar => Ok(scalar),
        }
    }

    pub(super) fn mismatch(&self, what: &str) -> Mismatch {
        let path = self.path.join("/");
        Mismatch(format!(
            "Header mismatch: the argument /{path}, which {} repeats, {what}",
            self.header
        ))
    }
}
