//! What outlives a connection or a process: the events of streams and the sessions of clients.
