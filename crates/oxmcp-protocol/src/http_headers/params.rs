//! Headers that mirror the arguments of a tool: clients write them, and servers check them.
//!
//! See [custom headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters).

use std::fmt;

use oxmcp_json::Text;

use crate::http_headers::{
    annotation::{self, Annotation},
    names::MCP_PARAM,
    value::{Scalar, decode, encode, integer},
};

/// The arguments of a tool that headers mirror, and the names of these headers. It is computed once per tool.
#[derive(Clone, Debug, Default)]
pub struct ParamHeaders(pub(crate) Box<[Param]>);

#[derive(Clone, Debug)]
pub(crate) struct Param {
    /// The path of property names to the argument.
    path: Box<[Box<str>]>,
    /// The name of the header, in lower case.
    pub(crate) header: Box<str>,
}

/// An error: the headers and the body of a request differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl ParamHeaders {
    /// The error message for a tool whose headers take more memory than allowed.
    pub const TOO_MUCH: &str = annotation::TOO_MUCH;

    /// Creates the headers that the input schema of a tool asks for. Together they may take at most `max_bytes` of memory.
    ///
    /// # Errors
    /// The reason why an `x-mcp-header` is invalid, with its position; or the headers take more than `max_bytes`.
    /// Clients leave such a tool out.
    pub fn of(schema: Text<'_>, max_bytes: usize) -> Result<Self, String> {
        let found = annotation::find(schema, max_bytes)?;
        let params = found.into_iter().map(|Annotation { path, name }| {
            let header = format!("{MCP_PARAM}{}", name.to_ascii_lowercase());
            Param {
                path,
                header: header.into(),
            }
        });
        Ok(Self(params.collect()))
    }

    /// Returns whether no argument has a header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the memory that the headers take, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let params = self.0.iter();
        params
            .map(|param| annotation::size(&param.path, &param.header))
            .sum()
    }
}

impl Param {
    /// The argument that the header repeats.
    pub(crate) fn of<'a>(&self, arguments: Text<'a>) -> Result<Scalar<'a>, Mismatch> {
        let mut value = arguments;
        for name in &self.path {
            let mut members = value.members().filter(|(key, _)| key.is_str(name));
            let Some((_, found)) = members.next() else {
                return Ok(Scalar::Absent);
            };
            if members.next().is_some() {
                return Err(self.mismatch("duplicate key in the body"));
            }
            value = found;
        }
        match Scalar::of(value) {
            Scalar::Unsafe => Err(self.mismatch(
                "integers beyond 2^53-1 cannot be sent in a header; send a string if the tool accepts one",
            )),
            scalar => Ok(scalar),
        }
    }

    pub(crate) fn mismatch(&self, what: &str) -> Mismatch {
        let path = self.path.join("/");
        Mismatch(format!("Header mismatch: argument /{path}: {what}"))
    }
}

impl Scalar<'_> {
    /// The value of the header for this argument. `None` if there is nothing to repeat.
    fn header(&self) -> Option<String> {
        match self {
            Self::String(text) => Some(encode(text).into_owned()),
            Self::Integer(number) => Some(number.to_string()),
            Self::Word(word) => Some((*word).to_owned()),
            Self::Absent | Self::Unsafe | Self::Other => None,
        }
    }
}

impl ParamHeaders {
    /// Returns the headers of a call, each with its value, already encoded.
    ///
    /// # Errors
    /// If an argument cannot be sent in a header: it is an integer that some readers round, or it is ambiguous because its
    /// name occurs twice. Every server would refuse it.
    pub fn for_arguments(&self, arguments: Text<'_>) -> Result<Vec<(&str, String)>, Mismatch> {
        let mut headers = Vec::new();
        for param in &self.0 {
            let scalar = param.of(arguments)?;
            if let Some(value) = scalar.header() {
                headers.push((&*param.header, value));
            }
        }
        Ok(headers)
    }
}

/// The occurrence of a header in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the standard that it follows is final"
)]
pub enum ReceivedHeader<'a> {
    /// The header is absent.
    Nothing,
    /// The header occurs once.
    Value(&'a [u8]),
    /// The header occurs more than once.
    Several,
}

impl Scalar<'_> {
    /// Whether the decoded header value `header` stands for this argument.
    fn is(&self, header: &str) -> bool {
        match self {
            Self::String(text) => text == header,
            Self::Integer(number) => integer(header) == Some(*number),
            Self::Word(word) => *word == header,
            Self::Absent | Self::Unsafe | Self::Other => false,
        }
    }
}

impl ParamHeaders {
    /// Checks that the headers of a call match its arguments. `header` looks up a header by its name in lower case.
    ///
    /// # Errors
    /// The first difference between headers and arguments.
    pub fn check<'h>(
        &self,
        arguments: Text<'_>,
        header: impl Fn(&str) -> ReceivedHeader<'h>,
    ) -> Result<(), Mismatch> {
        self.0
            .iter()
            .try_for_each(|param| param.check(arguments, header(&param.header)))
    }
}

impl Param {
    fn check(&self, arguments: Text<'_>, given: ReceivedHeader<'_>) -> Result<(), Mismatch> {
        let scalar = self.of(arguments)?;
        let header = &self.header;
        let value = match (given, &scalar) {
            (ReceivedHeader::Several, _) => {
                return Err(self.mismatch(&format!("duplicate header `{header}`")));
            }
            // An argument of any other type violates the schema, and the validation of the arguments reports it.
            (ReceivedHeader::Nothing, Scalar::Absent | Scalar::Other) => return Ok(()),
            (ReceivedHeader::Nothing, _) => {
                return Err(self.mismatch(&format!("missing header `{header}`")));
            }
            (ReceivedHeader::Value(_), Scalar::Absent | Scalar::Other) => {
                return Err(self.mismatch(&format!("the body has no value for header `{header}`")));
            }
            (ReceivedHeader::Value(value), _) => value,
        };
        let text = decode(value)
            .map_err(|why| self.mismatch(&format!("invalid header `{header}`: {why}")))?;
        if scalar.is(&text) {
            return Ok(());
        }
        Err(self.mismatch(&format!(
            "`{header}` is {text:?}, but the body has another value"
        )))
    }
}
