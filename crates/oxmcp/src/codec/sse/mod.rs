//! Event streams, as the [HTML standard](https://html.spec.whatwg.org/multipage/server-sent-events.html) has them:
//! writing events, and reading them from chunks of bytes, within a bound.

#[cfg(any(feature = "http-client", test))]
mod decoder;
#[cfg(any(feature = "http-server", test))]
mod encoder;
#[cfg(test)]
mod tests;

#[cfg(any(feature = "http-client", test))]
pub(crate) use decoder::{Decoder, Item};
#[cfg(test)]
pub(crate) use decoder::{Event, Overlong};
#[cfg(any(feature = "http-server", test))]
pub(crate) use encoder::{Outgoing, write_comment};
