//! Extensions: additions to the protocol, by a vendor or by the protocol's own authors, that leave its core unchanged.
//!
//! An [`Extension`] describes one side: the methods that it serves and their handlers, the notifications that it handles, the
//! keys that clients can subscribe to, and the settings that it declares. It is added to a [`Server`](crate::Server::extension)
//! or a [`Client`](crate::Client::extension), which then declares the extension in its capabilities. Methods and notifications
//! are types: an extension defines them once, and both sides use them.
//!
//! ```
//! use oxmcp::{Client, Extension, Server, protocol::{EmptyParams, Method, Payload}, testing};
//!
//! const ID: &str = "com.example/clock";
//!
//! /// The request `com.example/clock/now`.
//! struct Now;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Time { hour: u8 }
//! impl Payload for Time {}
//!
//! impl Method for Now {
//!     const NAME: &'static str = "com.example/clock/now";
//!     type Params = EmptyParams;
//!     type Result = Time;
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oxmcp::Result<()> {
//! let clock = Extension::new(ID).method::<Now, _>(.., || async { Time { hour: 14 } });
//! let server = Server::new("clock", "1.0.0").extension(clock);
//!
//! let client = Client::new("my-app", "1.0.0").extension(Extension::new(ID).calls::<Now>(..));
//! let session = testing::connect(&server).client(&client).await?;
//! assert_eq!(session.request::<Now>(EmptyParams::default()).await?.hour, 14);
//! # Ok(())
//! # }
//! ```
//!
//! See [extensions](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#extension-negotiation).

// The files of this module:
//
// | `definition` | [`Extension`], the builder of one side of an extension |
// | `handlers` | the handlers, and the erasure of their types |
// | `functions` | methods that are functions, without types of their own |
// | `requirements` | the requirements of extensions on their own side, and the revisions of them that a peer may declare |
// | `registry` | the extensions of a server or a client, and sending their notifications |

mod definition;
mod functions;
pub(crate) mod handlers;
pub(crate) mod registry;
mod requirements;

pub use definition::Extension;
pub use functions::{IntoMethodResult, MethodArguments};
pub use handlers::{ExtensionArguments, IntoAnswer};
