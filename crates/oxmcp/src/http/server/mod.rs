//! The server's side of HTTP.
