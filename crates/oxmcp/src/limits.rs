//! The limits on everything that a peer can make grow, and a list of the limits that are elsewhere.

use std::time::Duration;

/// Defines a struct of limits: its fields, their defaults, and a setter for each.
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
    /// The limits of a connection. [`http`](Self::http) has those of an HTTP endpoint, and [`client`](Self::client) those of a
    /// client's requests.
    ///
    /// Everything that a peer can make grow has a limit. The limits that an application may want to set are here. The others
    /// are
    ///
    /// - in the stores: the data of `store::MemoryEventStore` and `store::MemorySessionStore`, in bytes, streams, sessions and
    ///   age;
    /// - in [`CacheOptions`](crate::CacheOptions): the results that a client caches;
    /// - in the server: the size of files and the depth of their directories ([`FileResources`](crate::FileResources));
    /// - constants in the code, with their reasons: the steps, depth and memory of schema validation and of matching a pattern
    ///   or a URI template; the number of remembered modern callers, servers, and pages opened for a user; the bodies of HTTP
    ///   errors, redirects, request heads, and pauses before a reconnection; the last lines of a process's standard error; the
    ///   duration of each step of a shutdown.
    ///
    /// # Output
    /// Over a pipe or a socket, at most [`max_unsent_bytes`](Self::max_unsent_bytes) wait to be written. On top of that come
    /// one message of each caller that found space, and the responses to the requests in flight: at most
    /// [`max_in_flight`](Self::max_in_flight), of any size, because a response is never dropped. Requests of twice as many
    /// bytes may wait to start.
    ///
    /// Over HTTP the same limits apply to the stream of each request, which has four further buffers of 16 KiB or one message
    /// each. At most 64 KiB wait for the GET stream of a session. An empty buffer keeps at most 2 MiB. In total, an endpoint
    /// holds at most [`max_bytes`](HttpLimits::max_bytes) for all of its requests, and one message of each stream that had
    /// nothing unsent.
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
        /// The maximum size of a message that is read, in bytes. Longer messages are skipped and answered with
        /// [`ErrorCode::PARSE_ERROR`](crate::ErrorCode::PARSE_ERROR). Default: 64 MiB, because tools return images and files in
        /// one message.
        pub max_message_bytes: usize = 64 << 20;
        /// The maximum number of the peer's requests in flight. Further requests are rejected at once with an error. Default:
        /// 1024, some ten times what a busy agent keeps in flight, at a few KiB each.
        pub max_in_flight: usize = 1024;
        /// The maximum number of the peer's open subscriptions (`subscriptions/listen`). Further ones are rejected at once with
        /// an error. They do not count as requests in flight. Default: 1024, because some clients open one for each resource.
        /// Each costs a few hundred bytes.
        pub max_subscriptions: usize = 1024;
        /// The maximum size of the params of `initialize`, in bytes. Longer ones are rejected with
        /// [`ErrorCode::INVALID_PARAMS`](crate::ErrorCode::INVALID_PARAMS), over HTTP with 400, before there is a session.
        /// Default: 1 MiB, enough for icons as `data:` URIs.
        pub max_initialize_bytes: usize = 1 << 20;
        /// The maximum memory for the client metadata that a session keeps from `initialize`, in bytes: the capabilities first,
        /// then name, version and title. The rest is dropped and logged. Default: 16 KiB, many times the usual size, and 160
        /// MiB for all sessions of an endpoint.
        pub max_client_bytes: usize = 16 << 10;
        /// The maximum number of resources to which the peer may be subscribed, in all its subscriptions together, including
        /// those by `resources/subscribe`. Further ones are rejected with an error. Each extension key in a filter counts as
        /// one. Over HTTP, modern requests share no state, so the limit applies to each subscription. Default: 10 000, more
        /// files than most projects have.
        pub max_watched_uris: usize = 10_000;
        /// The maximum total size of these subscriptions, in bytes: of the URIs, of the filter values under extension keys, and
        /// of whatever else exceeds 4 KiB in a request. Default: 1 MiB, a hundred bytes for each resource.
        pub max_watched_uri_bytes: usize = 1 << 20;
        /// The number of unsent bytes above which senders wait and the peer's requests are no longer started. Twice as many
        /// bytes of requests are still read, so that two peers that are both full read each other's responses. A message that
        /// must be sent is never dropped. Default: 1 MiB, enough to keep a pipe full.
        pub max_unsent_bytes: usize = 1 << 20;
        /// The maximum number of notifications that wait for a handler, or to be read from a subscription. Beyond it, the
        /// oldest is dropped with a warning. Their total size is limited to that of one message
        /// ([`max_message_bytes`](Self::max_message_bytes)). Default: 1024.
        pub max_queued_notifications: usize = 1024;
        /// The maximum number of extension notifications that wait for a subscription that its client does not read. Beyond it,
        /// the subscription ends with an error. Default: 1024.
        pub max_queued_events: usize = 1024;
        /// The maximum number of progress updates that wait for the handler of one call. Beyond it, the newest is dropped with
        /// a warning. The total size of their messages is limited to that of one message
        /// ([`max_message_bytes`](Self::max_message_bytes)). Default: 16 384, so that none is lost while the handler keeps up
        /// on average.
        pub max_queued_progress: usize = 16_384;
        /// The number of progress updates that a handler may send at once. Further updates are coalesced to a rate of
        /// [`progress_per_second`](Self::progress_per_second); the last one is always sent. 0 counts as 1. Default: 2048, more
        /// than a person can read or a caller needs.
        pub progress_burst: u32 = 2048;
        /// The number of progress updates that a handler may send per second after the burst. Default: 100, enough for a smooth
        /// progress bar.
        pub progress_per_second: u32 = 100;
        /// The maximum length of `requestState`, in characters: the state of a handler that asks questions, between two rounds.
        /// A longer state is neither sent nor accepted, and a client does not return a longer one to a server. Default: 64 KiB,
        /// because it is sent twice per round.
        pub max_request_state: usize = 64 << 10;
        /// The maximum number of messages in a batch (2025-03-26 only). Default: 128.
        pub max_batch: usize = 128;
        /// The time for which requests in flight may continue after the peer has closed its side or the session was closed. The
        /// others are then cancelled and answered with an error. Default: 10 s, as long as clients commonly wait before they
        /// kill a server.
        pub drain: Duration = Duration::from_secs(10);
        /// The time for which responses are still written after that, to a peer that reads at least 4 KiB per second. Default:
        /// a minute. In that time, a slow reader reads some hundreds of KiB; after a longer wait, a user thinks that the
        /// program hangs.
        pub flush: Duration = Duration::from_secs(60);
        /// The time for which a cancelled handler may continue before it is dropped. Middleware around it may continue for a
        /// second longer. Default: 1 s.
        pub cancel_grace: Duration = Duration::from_secs(1);
        in {
            /// The limits of an HTTP endpoint, and of an address that it serves.
            pub http: HttpLimits;
            /// The limits of a client's requests.
            pub client: ClientLimits;
        }
    }

    /// The limits of an HTTP endpoint, and of an address that it serves: [`Limits::http`].
    HttpLimits {
        /// The maximum number of GET streams of an HTTP endpoint. Further ones are rejected with 503. As a limit of the
        /// [server](crate::Server::limits), it is also the maximum number of subscriptions of modern clients over HTTP; further
        /// ones are rejected with an error. Default: 10 000, at some 15 KiB each with its connection.
        pub max_streams: usize = 10_000;
        /// The maximum number of sessions of an HTTP endpoint. Further ones are rejected with 503, unless an unused one can be
        /// evicted. As many evicted sessions may still be ending. Default: 10 000, at some 15 KiB each with its connection.
        /// Each node counts its own sessions; the session store limits the number on all nodes.
        pub max_sessions: usize = 10_000;
        /// The maximum number of these sessions per principal (`Principal`), if it is known. Further ones are rejected
        /// with 429. With a session store, the limit applies to all nodes together. Default: 1000, so that one principal cannot
        /// take all of them. When a limit is reached, for a principal or in total, a new session evicts the oldest one whose
        /// client has sent nothing since `initialize`.
        pub max_sessions_each: usize = 1000;
        /// The idle timeout of a session over HTTP in which nothing happens and no stream is open. It may be up to 1/64 longer.
        /// Default: 30 minutes, because people leave their desks.
        pub session_idle: Duration = Duration::from_secs(30 * 60);
        /// The maximum size of the body of an HTTP request, in bytes. A longer one is rejected with 413. Default: 4 MiB,
        /// because every client that can reach the URL can send one.
        pub max_body_bytes: usize = 4 << 20;
        /// The maximum number of bytes that an HTTP endpoint holds for all of its clients, because the limits per client add up
        /// to many times as much. It counts request bodies that are being read, responses and events that clients have not read
        /// yet, the [client metadata](Limits::max_client_bytes) of sessions, and the topics of subscriptions. It does not count
        /// the memory of handlers and stores.
        ///
        /// Beyond it, requests are rejected with 503 and subscriptions with the error -32603, and handlers wait before they
        /// send messages. A response that does not fit is replaced by 500, or by the error -32603 if its stream has begun.
        ///
        /// Default: 256 MiB: 160 MiB for the metadata of 10 000 sessions, and 96 MiB for the rest, which is some twenty of the
        /// longest bodies, or thousands of responses.
        pub max_bytes: usize = 256 << 20;
        /// The maximum number of connections to an address that is served over HTTP. Further ones wait until one has ended.
        /// Default: 4096, at some 16 KiB each while idle. A client that listens has one or two.
        pub max_connections: usize = 4096;
        /// The timeout for receiving the head of a request at such an address. It starts when the connection is accepted, and
        /// for later requests over HTTP/1 with their first byte. Default: 10 s, many times what any network needs, and too
        /// short for a client that occupies connections by sending nothing.
        pub head: Duration = Duration::from_secs(10);
        /// The idle timeout of a connection to such an address, between requests. Clients close idle connections after 90 s at
        /// most, so with the default the client closes first, and no request is lost on its way. Over HTTP/2, a client is
        /// notified (GOAWAY). Behind a load balancer that keeps connections for longer, such as 10 minutes, it should be longer
        /// still. Default: 100 s.
        pub connection_idle: Duration = Duration::from_secs(100);
        /// The time after which a connection to such an address is closed if its client reads none of the written bytes. If the
        /// client reads less than 32 KiB of a waiting response in this time, the response is dropped, whichever program serves
        /// the endpoint; its work is cancelled, unless it belongs to a session. A client that reads slowly, or has nothing to
        /// read, has no time limit. Default: 2 minutes, in which a phone finds its network again. Clients resume their streams
        /// over another connection.
        pub stall: Duration = Duration::from_secs(120);
    }

    /// The limits of a client's requests: [`Limits::client`].
    ClientLimits {
        /// The maximum memory for the tool parameters that calls repeat in HTTP headers, in bytes: the names of the tools,
        /// headers and parameters, and some hundred bytes for each. Beyond it, the tool that was listed longest ago is
        /// forgotten; calling it requests the list again. Default: 1 MiB, enough for thousands of tools.
        pub max_mirrored_bytes: usize = 1 << 20;
        /// The maximum number of rounds in which a client answers a server's questions during one request, before the request
        /// fails (2026-07-28 and later). Default: 10, as often as a person wants to be asked.
        pub max_rounds: usize = 10;
        /// The maximum number of pages of a listing, before the client gives up. Default: 10 000.
        pub max_pages: usize = 10_000;
        /// The maximum total size of the pages of a listing in bytes, before the client gives up. Default: 64 MiB, the same as
        /// for one message, so that splitting a listing into pages does not make it too long.
        pub max_listing_bytes: usize = 64 << 20;
    }
}
