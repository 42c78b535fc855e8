//! Pairs of a name and a value on the command line.

use std::str::FromStr;

use oxmcp::auth::Secret;

/// A header of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: Secret,
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
        Ok(Self {
            name: name.trim().to_owned(),
            value: Secret::new(value.trim()),
        })
    }
}

/// A pair `name=value` of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub name: String,
    pub value: String,
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("expected `NAME=value`")?;
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}
