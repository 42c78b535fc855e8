//! The bounds on what a peer can make grow, and a list of those that are elsewhere.

use std::time::Duration;

/// A struct of bounds: its fields, their defaults, and a setter for each.
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
    /// The bounds of a connection; in [`http`](Self::http) those of an HTTP endpoint, and in [`client`](Self::client) those of what
    /// a client asks for.
    ///
    /// Everything that a peer can make grow has a bound. Those that an application may want to set are here. The others are
    ///
    /// - in the stores: what `store::MemoryEventStore` and `store::MemorySessionStore` keep, in bytes, streams, sessions and age;
    /// - in [`CacheOptions`](crate::CacheOptions): the answers that a client keeps;
    /// - in the server: files, in the size of one and the depth of their directories ([`FileResources`](crate::FileResources));
    /// - constants with their reasons, beside what they bound: the steps, depth and memory of validating against a schema and of
    ///   matching a pattern or a URI template; what is remembered of modern callers, of servers, and of pages that a user was sent
    ///   to; the bodies of HTTP errors, redirects, heads of requests and pauses before a reconnection; the last lines of a
    ///   process's standard error; how long each step of a shutdown may take.
    ///
    /// # Output
    /// Over a pipe or a socket at most [`max_unsent_bytes`](Self::max_unsent_bytes) wait to be written, and beyond them one message
    /// of each caller that saw room, and the answers of the requests that are being served then: at most
    /// [`max_in_flight`](Self::max_in_flight), of any size, since an answer is never dropped. Beside them requests wait to be begun, of
    /// twice as many bytes. Over HTTP that holds for the stream of each request, which has four parts beside it, of 16 KiB or one
    /// message; at most 64 KiB wait for the stream that a session gets by GET. An empty buffer keeps 2 MiB at most. Whatever that comes to
    /// for all requests of an endpoint, it holds [`max_bytes`](HttpLimits::max_bytes), and beyond
    /// it a message of each stream that had nothing unsent.
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
        /// The longest message that is read, in bytes; longer ones are skipped and answered with
        /// [`ErrorCode::PARSE_ERROR`](crate::ErrorCode::PARSE_ERROR). Default: 64 MiB, since tools return images and
        /// files in one message.
        pub max_message_bytes: usize = 64 << 20;
        /// How many requests of the peer may be served at once; one more is refused at once, with an error that says
        /// so. Default: 1024, some ten times what a busy agent keeps in flight, at a few KiB each.
        pub max_in_flight: usize = 1024;
        /// How many subscriptions (`subscriptions/listen`) the peer may have open at once; one more is refused at once,
        /// with an error that says so. They do not count as requests in flight. Default: 1024, since some clients open one
        /// for each resource that they watch; each costs a few hundred bytes.
        pub max_subscriptions: usize = 1024;
        /// The longest params of `initialize`, in bytes; longer ones are refused with
        /// [`ErrorCode::INVALID_PARAMS`](crate::ErrorCode::INVALID_PARAMS), over HTTP with 400, before there is a session. Default:
        /// 1 MiB, which has room for icons as `data:` URIs.
        pub max_initialize_bytes: usize = 1 << 20;
        /// How much memory a session keeps of what its client says of itself with `initialize`, in bytes: capabilities first, then
        /// name, version and title; what is beyond is dropped, with a line in the log. Default: 16 KiB, many times what clients say,
        /// and 160 MiB for all sessions of an endpoint.
        pub max_client_bytes: usize = 16 << 10;
        /// How many resources the peer may watch at once, in all its subscriptions together, those by `resources/subscribe`
        /// included; more are refused with an error that says so. Each key of an extension in a filter counts as one. Modern
        /// requests over HTTP have nothing in common, so that there it is for each subscription. Default: 10 000, more files than
        /// most projects have.
        pub max_watched_uris: usize = 10_000;
        /// How many bytes their URIs may have together, with what the filters say under the keys of extensions, and what the
        /// requests say beside them beyond 4 KiB. Default: 1 MiB, a hundred for each.
        pub max_watched_uri_bytes: usize = 1 << 20;
        /// How many bytes may wait to be written before callers wait and requests of the peer are no longer begun. Twice
        /// as much of requests is then still read, so that two peers that are both full read each other's answers. What
        /// has to be sent is never dropped. Default: 1 MiB, enough to keep a pipe full.
        pub max_unsent_bytes: usize = 1 << 20;
        /// How many notifications may wait for a user's handler, or to be taken from a subscription; beyond it the oldest is
        /// dropped, with a warning in the log. Together they have no more bytes than one message may have
        /// ([`max_message_bytes`](Self::max_message_bytes)). Default: 1024.
        pub max_queued_notifications: usize = 1024;
        /// How many notifications of extensions may wait for one subscription that a client does not read; beyond it the
        /// subscription is ended with an error that says so. Default: 1024.
        pub max_queued_events: usize = 1024;
        /// How many updates of progress may wait for the handler of one call; beyond it the newest is dropped, with a
        /// warning in the log. Their messages have no more bytes together than one message may have
        /// ([`max_message_bytes`](Self::max_message_bytes)). Default: 16 384, so that none is lost while the handler keeps up on average.
        pub max_queued_progress: usize = 16_384;
        /// How many updates of its progress a handler may send at once. Beyond that they are sent at a rate of
        /// [`progress_per_second`](Self::progress_per_second), each in place of those that came since the one before; the last of all
        /// is always sent. 0 is taken as 1. Default: 2048, more than a person can read or a caller needs.
        pub progress_burst: u32 = 2048;
        /// How many updates of its progress a handler may send each second beyond the first ones. Default: 100, which moves a bar
        /// smoothly.
        pub progress_per_second: u32 = 100;
        /// The longest `requestState`, in characters: what a handler that asks remembers between two rounds. One that would be
        /// longer is not sent, and one that is longer is refused; nor does a client carry a longer one for a server. Default: 64 KiB,
        /// since it travels twice a round.
        pub max_request_state: usize = 64 << 10;
        /// How many messages a batch may hold (2025-03-26 only). Default: 128.
        pub max_batch: usize = 128;
        /// How long running handlers may go on after the peer has closed its side or the session was closed. What is cancelled then
        /// is answered with an error.
        /// Default: 10 s, which is what clients commonly wait before they kill a server.
        pub drain: Duration = Duration::from_secs(10);
        /// How long after that what was answered is still written, to a peer that takes at least 4 KiB a second of it. Default: a
        /// minute, in which a slow reader takes some hundreds of KiB, and after which a user believes that the program hangs.
        pub flush: Duration = Duration::from_secs(60);
        /// How long a cancelled handler may go on before it is dropped. Default: 1 s.
        pub cancel_grace: Duration = Duration::from_secs(1);
        in {
            /// Those of an HTTP endpoint, and of an address that it serves.
            pub http: HttpLimits;
            /// Those of what a client asks for.
            pub client: ClientLimits;
        }
    }

    /// The bounds of an HTTP endpoint, and of an address that it serves: [`Limits::http`].
    HttpLimits {
        /// How many streams an HTTP endpoint keeps open at once that clients of sessions get by GET, where one more is refused
        /// with 503; and as a limit of the [server](crate::Server::limits), how many subscriptions of modern clients over HTTP it
        /// keeps, where one more gets an error that says so. Default: 10 000, at some 15 KiB each with its connection.
        pub max_streams: usize = 10_000;
        /// How many sessions an HTTP endpoint keeps at once; one more is refused with 503, unless an unused one can give way. As many
        /// again may be ending that gave way. Default: 10 000, at some 15 KiB each with its connection. Each node counts its own; how
        /// many there are on all of them is bounded by their store of sessions.
        pub max_sessions: usize = 10_000;
        /// How many of them are of one principal (`http::Principal`), where it is known; one more is refused with 429. With a store of
        /// sessions that is among all nodes.
        /// Default: 1000, so that one cannot take all of them. Where there is no room, be it for a principal or at all, the oldest
        /// session whose client has sent nothing since `initialize` gives way to a new one.
        pub max_sessions_each: usize = 1000;
        /// How long a session over HTTP lasts in which nothing happens and no stream is open; it may be a sixty-fourth more. Default:
        /// 30 minutes: people leave their desks.
        pub session_idle: Duration = Duration::from_secs(30 * 60);
        /// The longest body of an HTTP request, in bytes; a longer one is refused with 413. Default: 4 MiB, since
        /// every client that can reach the URL can send one.
        pub max_body_bytes: usize = 4 << 20;
        /// How many bytes an HTTP endpoint holds for its clients in all, since what each of them may take is many times as much: bodies
        /// of requests that are being read, answers and events that no client has taken yet, and what sessions keep of their
        /// [clients](Limits::max_client_bytes), and subscriptions of what was asked for. Beyond it requests are refused with 503,
        /// subscriptions with an error with the code -32603, handlers wait with their messages, and an answer for which there is no room is refused with 503, too, or is an error with the code -32603 where its
        /// stream has begun. What handlers hold themselves does not count, nor do the stores. Default: 256 MiB: the
        /// 160 MiB that 10 000 sessions may keep, and 96 MiB for the rest, some twenty of the longest bodies, or thousands of answers.
        pub max_bytes: usize = 256 << 20;
        /// How many connections an address that is served over HTTP takes at once; more wait until one has ended. Default: 4096,
        /// each some 16 KiB while nothing is asked, and a client that listens has one or two.
        pub max_connections: usize = 4096;
        /// How long the head of a request to such an address may take: that of the first one from when its connection is accepted,
        /// and over HTTP/1 that of a later one from its first byte. Default: 10 s, many times what any network needs, and too short
        /// for a client that takes up connections by saying nothing.
        pub head: Duration = Duration::from_secs(10);
        /// How long a connection to such an address may wait for its next request. Clients give up their idle connections after
        /// 90 s at most, so with the default it is them who do, and no request is lost on its way; over HTTP/2 a client is told
        /// (GOAWAY). A load balancer that keeps connections for longer, as some do for 10 minutes, wants this to be longer still.
        /// Default: 100 s.
        pub connection_idle: Duration = Duration::from_secs(100);
        /// How long a client may take nothing at all of what is written to a connection of such an address before that is closed, or
        /// less than 32 KiB of an answer that waits for it, whatever serves the endpoint: then the answer is dropped, and what is still
        /// done for it is cancelled, unless it belongs to a session. A client that reads slowly, or has nothing to read, may take as
        /// long as it likes. Default: 2 minutes, in which a phone finds its network again; clients resume their streams over another
        /// connection.
        pub stall: Duration = Duration::from_secs(120);
    }

    /// The bounds of what a client asks for: [`Limits::client`].
    ClientLimits {
        /// How many bytes a client keeps in mind of what a server's tools want repeated in the headers of their calls: the names
        /// of the tools, of the headers and of the parameters, and some hundred for each. Beyond it the tool that was listed longest ago is forgotten; a
        /// call of it then takes another look at the list. Default: 1 MiB, which is enough for thousands of tools.
        pub max_mirrored_bytes: usize = 1 << 20;
        /// How many times a client answers what a server asks while it works on one request, before the client gives up on
        /// it (2026-07-28 and later). Default: 10: a person who is asked more often than that wants to give up, too.
        pub max_rounds: usize = 10;
        /// How many pages a list may have before the client gives up on it. Default: 10 000.
        pub max_pages: usize = 10_000;
        /// How many bytes the pages of a list may have together before the client gives up on it. Default: 64 MiB, as one message
        /// may have, so that no list is too long for having been cut into pages.
        pub max_listing_bytes: usize = 64 << 20;
    }
}
