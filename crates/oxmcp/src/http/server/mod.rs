//! The server's side of HTTP.

mod body;
mod principal;

pub use body::ResponseBody;
pub use principal::Principal;
