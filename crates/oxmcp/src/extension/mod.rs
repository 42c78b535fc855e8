//! Extensions: vendor-specific and official additions to the protocol that leave its core unchanged.
//!
//! An [`Extension`] describes one side: the methods that it serves, the notifications that it handles, the keys that clients
//! can subscribe to, and the settings that it declares. Add it to a [`Server`](crate::Server::extension) or a
//! [`Client`](crate::Client::extension), which then declares it in its capabilities. Methods and notifications are types, which
//! an extension defines once for both sides.
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

mod definition;
#[cfg(feature = "server")]
pub(crate) mod feature_check;
mod functions;
pub(crate) mod handlers;
pub(crate) mod registry;
mod requirements;

pub use definition::Extension;
#[cfg(feature = "server")]
pub use feature_check::ServedFeatures;
pub use functions::{IntoMethodResult, MethodArguments};
pub use handlers::{ExtensionArguments, IntoAnswer};
