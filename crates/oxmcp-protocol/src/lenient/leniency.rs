//! The table of leniencies.

use std::fmt;

/// Defines the leniencies, each with its name and its reason.
macro_rules! leniencies {
    ($( $variant:ident = $name:literal: $reason:literal, )+) => {
        /// A deviation from the specification that is tolerated.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Leniency {
            $( #[doc = $reason] $variant, )+
        }

        impl Leniency {
            /// All leniencies.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )+];

            /// Returns the name in logs and in the documentation.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )+
                }
            }

            /// Returns a sentence that describes the tolerated behavior.
            #[must_use]
            pub const fn reason(self) -> &'static str {
                match self {
                    $( Self::$variant => $reason, )+
                }
            }
        }
    };
}

leniencies! {
    NullMember = "null-member": "A member is `null` where it should be absent.",
    EmptyArray = "empty-array": "An empty array is written instead of an empty object, as PHP and Lua do.",
    MissingMember = "missing-member": "A required member that is not needed to continue is absent; it is read as empty.",
    OtherType = "other-type": "A number or boolean is written as text, a whole number as a fraction, or text as a number.",
    SingleItem = "single-item": "A single item is written instead of a list, or a list of one instead of a single item.",
    Spelling = "spelling": "A name is spelled differently, such as `warn` for `warning`.",
    Base64 = "base64": "Base64 is unpadded, URL-safe, wrapped, or has a `data:` prefix.",
    LoneSurrogate = "lone-surrogate": "A string has half of a surrogate pair; it is read as U+FFFD.",
    UntypedContent = "untyped-content": "A content block is a bare string, or lacks its type.",
    UnknownBlock = "unknown-block": "A content block or a field of a form does not fit its type; it is kept as an unknown one.",
    MemberLeftOut = "member-left-out": "A member does not fit its type and is not required; it is left out.",
    EntryLeftOut = "entry-left-out": "An entry of a list cannot be read; it is left out, and the rest of the list is used.",
    EnvelopeMember = "envelope-member": "A message has members of another kind of message, or null members.",
    Version = "jsonrpc-version": "The member `jsonrpc` is absent or is not the string \"2.0\".",
    ErrorObject = "error-object": "An error is not an object with a code and a message.",
    EmptyResult = "empty-result": "The result of a request that returns nothing is not an object.",
    ByteOrderMark = "byte-order-mark": "A message begins with a byte order mark.",
    TextId = "text-id": "A response has the id of its request in another form.",
    MissingId = "missing-id": "An error has no id, and only one request can be meant.",
    RepeatedCursor = "repeated-cursor": "A list has an empty cursor, or names the same page twice.",
    LostSession = "lost-session": "A server announces a lost session in another way than with 404.",
    ContentType = "content-type": "A body has another content type than its content.",
    StaleSession = "stale-session": "A client sends `initialize` with the id of a session that has ended.",
    NoDiscovery = "no-discovery": "A legacy server answers `server/discover` with a server error, or not at all.",
    AcceptHeader = "accept-header": "A client does not accept both JSON and event streams.",
    MissingHeader = "missing-header": "A header that an extension requires is absent.",
    NullArgument = "null-argument": "An optional argument is `null`, which its schema does not accept; it is left out.",
    TextArgument = "text-argument": "An argument is JSON in a string, where the schema accepts no string.",
    NoArguments = "no-arguments": "The arguments of a call without arguments are not an object.",
    PromptArgument = "prompt-argument": "An argument of a prompt is null, a number or a boolean instead of a string.",
    IssuerSlash = "issuer-slash": "The metadata of an authorization server differ from its issuer in the slash after the host.",
    RefreshRefused = "refresh-refused": "An authorization server refuses a refresh in another way than `invalid_grant`.",
    Metadata = "authorization-metadata": "A document of an authorization server has members of another type.",
}

impl Leniency {
    /// Whether an entry or a member is left out.
    #[must_use]
    pub const fn leaves_out(self) -> bool {
        matches!(self, Self::EntryLeftOut | Self::MemberLeftOut)
    }
}

impl fmt::Display for Leniency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One tolerated deviation, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tolerated {
    /// The deviation.
    pub leniency: Leniency,
    /// The place in the message as a JSON pointer, such as `/tools/3/icons`. Empty for the message as a whole.
    pub place: String,
    /// The reason why a member or an entry was left out, or kept as unknown. Empty in all other cases.
    pub detail: String,
}

impl Tolerated {
    /// Creates a deviation at a place.
    #[must_use]
    pub fn new(leniency: Leniency, place: impl Into<String>) -> Self {
        Self {
            leniency,
            place: place.into(),
            detail: String::new(),
        }
    }
}

impl fmt::Display for Tolerated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            leniency,
            place,
            detail,
        } = self;
        write!(f, "{leniency} at `{place}`")?;
        if detail.is_empty() {
            Ok(())
        } else {
            write!(f, ": {detail}")
        }
    }
}
