//! What a server expects.

use super::{
    Mismatch, ParamHeaders, decode,
    params::Param,
    scalar::{Scalar, integer},
};
use crate::json::Text;

/// What a request has under the name of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given<'a> {
    Nothing,
    Value(&'a [u8]),
    /// The header stands there more than once.
    Several,
}

impl Scalar<'_> {
    /// Whether the text that a header stands for is this.
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
    /// Whether the headers of a call repeat its arguments. `header` looks one up by its name, which is in lower
    /// case.
    ///
    /// # Errors
    /// What the headers say and the body does not, or the other way round.
    pub(crate) fn check<'h>(
        &self,
        arguments: Text<'_>,
        header: impl Fn(&str) -> Given<'h>,
    ) -> Result<(), Mismatch> {
        self.0
            .iter()
            .try_for_each(|param| param.check(arguments, header(&param.header)))
    }
}

impl Param {
    fn check(&self, arguments: Text<'_>, given: Given<'_>) -> Result<(), Mismatch> {
        let scalar = self.of(arguments)?;
        let value = match (given, &scalar) {
            (Given::Several, _) => return Err(self.mismatch("has its header more than once")),
            // What is neither is not what the schema asks for, and who reads the arguments says so.
            (Given::Nothing, Scalar::Absent | Scalar::Other) => return Ok(()),
            (Given::Nothing, _) => return Err(self.mismatch("is missing from the headers")),
            (Given::Value(_), Scalar::Absent | Scalar::Other) => {
                return Err(self.mismatch("is in the headers and not in the body"));
            }
            (Given::Value(value), _) => value,
        };
        let text =
            decode(value).map_err(|why| self.mismatch(&format!("has a wrong header: {why}")))?;
        if scalar.is(&text) {
            return Ok(());
        }
        Err(self.mismatch("is something else in the headers than in the body"))
    }
}
