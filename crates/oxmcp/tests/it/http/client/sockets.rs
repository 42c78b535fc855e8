//! Real servers on real sockets.
