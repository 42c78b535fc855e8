//! What a client sends.

use super::{Mismatch, ParamHeaders, encode, scalar::Scalar};
use crate::json::Text;

impl Scalar<'_> {
    /// The value of the header that repeats it. `None` where there is nothing to repeat.
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
    /// The headers of a call, each with its value, which is fit to be sent.
    ///
    /// # Errors
    /// Where an argument cannot be repeated: it is an integer that not every reader takes for itself, or can be read in two
    /// ways. Every server would refuse it.
    pub(crate) fn for_arguments(
        &self,
        arguments: Text<'_>,
    ) -> Result<Vec<(&str, String)>, Mismatch> {
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
