//! `oxmcp record` and `oxmcp replay`: sessions in files.

mod format;
mod record;
mod recorded;
mod redact;
mod replay;

pub(crate) use self::{
    record::run as record,
    redact::{is_secret_name, secret_in, without_secrets},
    replay::run as replay,
};
