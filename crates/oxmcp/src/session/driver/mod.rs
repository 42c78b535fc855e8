pub(crate) mod event_loop;
pub(crate) mod keep_alive;
pub(crate) mod outbox;
pub(crate) mod pump;
pub(crate) mod room;
pub(crate) mod turn;
#[cfg(feature = "http-server")]
pub(crate) mod undriven;
