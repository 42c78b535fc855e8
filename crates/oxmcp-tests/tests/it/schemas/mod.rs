//! Messages of real peers against the official schemas of all revisions.

mod emitted;
#[path = "../../../../oxmcp-protocol/tests/official/schema.rs"]
#[expect(dead_code, reason = "the tests of the protocol use the rest")]
mod official;

use oxmcp::Revision;
use serde_json::Value;

pub(crate) use self::official::Schema;

impl Schema {
    /// Asserts that a message fits a definition.
    pub(crate) fn assert_fits(&self, definition: &str, message: &Value) {
        let mut root = self.root.clone();
        let place = ["$defs", "definitions"]
            .into_iter()
            .find(|it| root.get(it).is_some());
        root["$ref"] = format!("#/{}/{definition}", place.unwrap_or_default()).into();
        let validator = jsonschema::validator_for(&root).expect("official schemas are schemas");
        let problems: Vec<_> = validator
            .iter_errors(message)
            .map(|it| it.to_string())
            .collect();
        let revision = self.revision;
        assert!(
            problems.is_empty(),
            "{definition} of {revision}: {problems:?}: {message}"
        );
    }
}
