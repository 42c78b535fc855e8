//! The bounds on everything that a peer can make grow, and a list of those that are elsewhere.

use std::time::Duration;

/// Defines a struct of bounds: its fields, their defaults, and a setter for each.
macro_rules! limits {
    ($(
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$doc:meta])+ pub $field:ident: $type:ty = $default:expr;)+
            $(in { $($(#[$group_doc:meta])+ pub $group:ident: $of:ident;)+ })?
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])+ pub $field: $type,)+
            $($($(#[$group_doc])+ pub $group: $of,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $default,)+
                    $($($group: $of::default(),)+)?
                }
            }
        }

        impl $name {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )+

            $($(
                #[doc = concat!("Changes [`", stringify!($group), "`](Self#structfield.", stringify!($group), ").")]
                #[must_use]
                pub fn $group(mut self, change: impl FnOnce($of) -> $of) -> Self {
                    self.$group = change(self.$group);
                    self
                }
            )+)?
        }
    )+};
}

limits! {
    /// The bounds of a connection; in [`http`](Self::http) those of an HTTP endpoint, and in [`client`](Self::client) those of
    /// the requests of a client.
    ///
    /// Everything that a peer can make grow has a bound. Those that an application may want to set are here. The others are
    ///
    /// - in the stores: the data of `store::MemoryEventStore` and `store::MemorySessionStore`, in bytes, streams, sessions and
    ///   age;
    /// - in [`CacheOptions`](crate::CacheOptions): the results that a client caches;
    /// - in the server: the size of files and the depth of their directories ([`FileResources`](crate::FileResources));
    /// - constants in the code, with their reasons: the steps, depth and memory of validating against a schema and of matching
    ///   a pattern or a URI template; the modern callers, the servers, and the pages opened for a user that are remembered; the
    ///   bodies of HTTP errors, redirects, heads of requests and pauses before a reconnection; the last lines of a process's
    ///   standard error; the duration of each step of a shutdown.
    ///
    /// # Output
    /// Over a pipe or a socket at most [`max_unsent_bytes`](Self::max_unsent_bytes) wait to be written, and in addition one
    /// message of each caller that found room, and the responses of the requests that are in flight at that time: at most
    /// [`max_in_flight`](Self::max_in_flight), of any size, since a response is never dropped. In addition, requests with twice
    /// as many bytes wait to be begun. Over HTTP the same holds for the stream of each request, which has four further buffers,
    /// of 16 KiB or one message each; at most 64 KiB wait for the stream that a session gets by GET. An empty buffer keeps 2
    /// MiB at most. In total an endpoint holds at most [`max_bytes`](HttpLimits::max_bytes) for all of its requests, and beyond
    /// that one message of each stream that had nothing unsent.
    ///
    /// ```
    /// use oxmcp::Limits;
    ///
    /// let limits = Limits::default()
    ///     .max_message_bytes(1 << 20)
    ///     .http(|http| http.max_sessions(100).max_body_bytes(1 << 20));
    /// assert_eq!(limits.http.max_sessions, 100);
    /// # assert_eq!(limits.max_in_flight, 1024);
    /// ```
    Limits {
        /// The maximum size of a message that is read, in bytes; longer ones are skipped and answered with
        /// [`ErrorCode::PARSE_ERROR`](crate::ErrorCode::PARSE_ERROR). Default: 64 MiB, since tools return images and files in
        /// one message.
        pub max_message_bytes: usize = 64 << 20;
        /// The maximum number of the peer's requests in flight; one more is refused at once, with an error that says so.
        /// Default: 1024, some ten times what a busy agent keeps in flight, at a few KiB each.
        pub max_in_flight: usize = 1024;
        /// The maximum number of the peer's open subscriptions (`subscriptions/listen`); one more is refused at once, with an
        /// error that says so. They do not count as requests in flight. Default: 1024, since some clients open one for each
        /// resource; each costs a few hundred bytes.
        pub max_subscriptions: usize = 1024;
        /// The maximum size of the params of `initialize`, in bytes; longer ones are refused with
        /// [`ErrorCode::INVALID_PARAMS`](crate::ErrorCode::INVALID_PARAMS), over HTTP with 400, before there is a session.
        /// Default: 1 MiB, which has room for icons as `data:` URIs.
        pub max_initialize_bytes: usize = 1 << 20;
        /// The maximum memory that a session uses for the client's description of itself in `initialize`, in bytes: for its
        /// capabilities first, then for its name, version and title. The rest is dropped, with a line in the log. Default: 16
        /// KiB, many times the usual size, and 160 MiB for all sessions of an endpoint.
        pub max_client_bytes: usize = 16 << 10;
        /// The maximum number of resources to which the peer may be subscribed, in all its subscriptions together, including
        /// those by `resources/subscribe`; more are refused with an error that says so. Each key of an extension in a filter
        /// counts as one. Over HTTP modern requests share no state, so that there the bound applies to each subscription.
        /// Default: 10 000, more files than most projects have.
        pub max_watched_uris: usize = 10_000;
        /// The maximum total size of the URIs of these resources, with the values of the filters under the keys of extensions,
        /// and with the parts of the requests beyond them that exceed 4 KiB, in bytes. Default: 1 MiB, a hundred for each.
        pub max_watched_uri_bytes: usize = 1 << 20;
        /// The number of bytes that may wait to be written before senders wait and requests of the peer are no longer begun.
        /// Twice as many bytes of requests are then still read, so that two peers that are both full read each other's
        /// responses. A message that must be sent is never dropped. Default: 1 MiB, enough to keep a pipe full.
        pub max_unsent_bytes: usize = 1 << 20;
        /// The maximum number of notifications that wait for a user's handler, or to be read from a subscription; beyond it the
        /// oldest is dropped, with a warning in the log. Their total size is bounded by that of one message
        /// ([`max_message_bytes`](Self::max_message_bytes)). Default: 1024.
        pub max_queued_notifications: usize = 1024;
        /// The maximum number of notifications of extensions that wait for one subscription that a client does not read; beyond
        /// it the subscription is ended with an error that says so. Default: 1024.
        pub max_queued_events: usize = 1024;
        /// The maximum number of progress updates that wait for the handler of one call; beyond it the newest is dropped, with
        /// a warning in the log. The total size of their messages is bounded by that of one message
        /// ([`max_message_bytes`](Self::max_message_bytes)). Default: 16 384, so that none is lost while the handler keeps up
        /// on average.
        pub max_queued_progress: usize = 16_384;
        /// The number of progress updates that a handler may send at once. Further updates are sent at a rate of
        /// [`progress_per_second`](Self::progress_per_second), each in place of those since the one before; the last of all is
        /// always sent. 0 is taken as 1. Default: 2048, more than a person can read or a caller needs.
        pub progress_burst: u32 = 2048;
        /// The number of progress updates that a handler may send per second after the first ones. Default: 100, which moves a
        /// progress bar smoothly.
        pub progress_per_second: u32 = 100;
        /// The maximum length of `requestState`, in characters: the state that a handler that asks keeps between two rounds. A
        /// longer one is not sent, and is refused if it is received; nor does a client return a longer one to a server.
        /// Default: 64 KiB, since it is sent twice per round.
        pub max_request_state: usize = 64 << 10;
        /// The maximum number of messages in a batch (2025-03-26 only). Default: 128.
        pub max_batch: usize = 128;
        /// The time for which requests in flight may continue after the peer has closed its side or the session was closed.
        /// Those that are cancelled then are answered with an error. Default: 10 s, which is how long clients commonly wait
        /// before they kill a server.
        pub drain: Duration = Duration::from_secs(10);
        /// The time for which responses are still written after that, to a peer that reads at least 4 KiB of them per second.
        /// Default: a minute, in which a slow reader reads some hundreds of KiB, and after which a user believes that the
        /// program hangs.
        pub flush: Duration = Duration::from_secs(60);
        /// The time for which a cancelled handler may continue before it is dropped; middleware around it may continue for a
        /// second longer. Default: 1 s.
        pub cancel_grace: Duration = Duration::from_secs(1);
        in {
            /// The bounds of an HTTP endpoint, and of an address that it serves.
            pub http: HttpLimits;
            /// The bounds of the requests of a client.
            pub client: ClientLimits;
        }
    }

    /// The bounds of an HTTP endpoint, and of an address that it serves: [`Limits::http`].
    HttpLimits {
        /// The maximum number of streams of an HTTP endpoint that clients of sessions open by GET; one more is refused with the
        /// status 503. As a limit of the [server](crate::Server::limits), also the maximum number of subscriptions of modern
        /// clients over HTTP; one more gets an error that says so. Default: 10 000, at some 15 KiB each with its connection.
        pub max_streams: usize = 10_000;
        /// The maximum number of sessions of an HTTP endpoint; one more is refused with 503, unless an unused one can be
        /// evicted. As many evicted sessions again may still be ending. Default: 10 000, at some 15 KiB each with its
        /// connection. Each node counts its own sessions; the number on all nodes is bounded by their session store.
        pub max_sessions: usize = 10_000;
        /// The maximum number of these sessions per principal (`http::Principal`), if it is known; one more is refused with the
        /// status 429. With a session store the bound applies to all nodes together. Default: 1000, so that one principal
        /// cannot take all of them. If there is no room, for a principal or in total, the oldest session whose client has sent
        /// nothing since `initialize` is evicted for a new one.
        pub max_sessions_each: usize = 1000;
        /// The idle timeout of a session over HTTP in which nothing happens and no stream is open; it may be a sixty-fourth
        /// longer. Default: 30 minutes: people leave their desks.
        pub session_idle: Duration = Duration::from_secs(30 * 60);
        /// The maximum size of the body of an HTTP request, in bytes; a longer one is refused with 413. Default: 4 MiB, since
        /// every client that can reach the URL can send one.
        pub max_body_bytes: usize = 4 << 20;
        /// The maximum number of bytes that an HTTP endpoint holds for all of its clients, since the bounds of each client add
        /// up to many times as much: bodies of requests that are being read, responses and events that clients have not read
        /// yet, the memory that sessions use for their [clients](Limits::max_client_bytes), and the requested topics of
        /// subscriptions. Beyond it requests are refused with 503, subscriptions with an error with the code -32603, and
        /// handlers wait with their messages. A response for which there is no room is replaced by 503, or by an error with the
        /// code -32603 if its stream has begun. The memory of handlers and of the stores is not counted. Default: 256 MiB: the
        /// 160 MiB that 10 000 sessions may use, and 96 MiB for the rest, some twenty of the longest bodies, or thousands of
        /// responses.
        pub max_bytes: usize = 256 << 20;
        /// The maximum number of connections of an address that is served over HTTP; more wait until one has ended. Default:
        /// 4096, each some 16 KiB while it is idle; a client that listens has one or two.
        pub max_connections: usize = 4096;
        /// The time-out for receiving the head of a request at such an address: that of the first request from when its
        /// connection is accepted, and over HTTP/1 that of a later one from its first byte. Default: 10 s, many times what any
        /// network needs, and too short for a client that occupies connections by sending nothing.
        pub head: Duration = Duration::from_secs(10);
        /// The idle timeout of a connection to such an address, between requests. Clients close idle connections after 90 s at
        /// most, so with the default it is the client that closes, and no request is lost on its way; over HTTP/2 a client is
        /// notified (GOAWAY). Behind a load balancer that keeps connections for longer, as some do for 10 minutes, it should be
        /// longer still. Default: 100 s.
        pub connection_idle: Duration = Duration::from_secs(100);
        /// The time after which a connection of such an address is closed if its client reads none of the written bytes. If it
        /// reads less than 32 KiB of a waiting response in this time, whichever program serves the endpoint, the response is
        /// dropped, and the work for it is cancelled, unless it belongs to a session. A client that reads slowly, or has
        /// nothing to read, has no time limit. Default: 2 minutes, in which a phone finds its network again; clients resume
        /// their streams over another connection.
        pub stall: Duration = Duration::from_secs(120);
    }

    /// The bounds of the requests of a client: [`Limits::client`].
    ClientLimits {
        /// The maximum memory for the parameters of a server's tools that are repeated in HTTP headers of their calls, in
        /// bytes: the names of the tools, of the headers and of the parameters, and some hundred bytes for each. Beyond it the
        /// tool that was listed longest ago is forgotten; a call of it then requests the list again. Default: 1 MiB, which is
        /// enough for thousands of tools.
        pub max_mirrored_bytes: usize = 1 << 20;
        /// The maximum number of rounds in which a client answers a server's questions during one request, before the request
        /// fails (2026-07-28 and later). Default: 10: a person who is asked more often than that wants to give up, too.
        pub max_rounds: usize = 10;
        /// The maximum number of pages of a list, before the client gives up on it. Default: 10 000.
        pub max_pages: usize = 10_000;
        /// The maximum total size of the pages of a list in bytes, before the client gives up on it. Default: 64 MiB, the same
        /// as for one message, so that the split into pages makes no list too long.
        pub max_listing_bytes: usize = 64 << 20;
    }
}
