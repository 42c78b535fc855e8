//! A server that has only the skills in `interop/skills`.

use oxmcp::Server;
use oxmcp_skills::{ServerExt, Skills};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");

pub(crate) fn server() -> Server {
    // One entry on each page, so that clients follow cursors.
    Server::new("interop-server", "1.0.0").skills(Skills::dir(DIRECTORY).page_size(1))
}
