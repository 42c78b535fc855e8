//! Proof that a revision can rename a member, with the `inputSchema` of a `Tool` as the example.
//!
//! The member has one field in the type, which all code uses, and a second one that only the projection fills: it moves
//! the value there for revisions with the new name. Reading accepts both names in each revision, as it accepts the members
//! of all revisions. Revisions that rename nothing pay one comparison.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    lenient,
    revision::{
        projection::project::Project,
        version::{N, Revision, Revisions, Y},
    },
    values::json::RawJson,
};

/// The difference that a revision would add to `differences!`.
const HAS_PARAMETERS: Revisions = {
    let mut columns = [N; Revision::ALL.len()];
    columns[Revision::LATEST as usize] = Y;
    Revisions::new(columns)
};

/// A [`Tool`](crate::types::tools::Tool) whose `inputSchema` has the name `parameters` in the newest revision.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    #[serde(
        alias = "parameters",
        skip_serializing_if = "is_moved",
        deserialize_with = "crate::lenient::schema"
    )]
    input_schema: RawJson,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    parameters: Option<RawJson>,
}

/// No schema is null, so null marks a value that was moved.
fn is_moved(schema: &RawJson) -> bool {
    schema.get() == "null"
}

impl Project for Tool {
    fn project(&mut self, to: Revision) {
        if HAS_PARAMETERS.has(to) {
            let moved = std::mem::replace(&mut self.input_schema, json!(null).into());
            self.parameters = Some(moved);
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Page {
    #[serde(deserialize_with = "crate::lenient::list")]
    tools: Vec<Tool>,
}

impl Project for Page {
    fn project(&mut self, to: Revision) {
        self.tools.project(to);
    }
}

fn page() -> Page {
    Page {
        tools: vec![Tool {
            name: "add".into(),
            input_schema: json!({"type": "object"}).into(),
            parameters: None,
        }],
    }
}

#[test]
fn member_is_renamed_where_the_table_says() {
    for to in Revision::ALL {
        let name = if to == Revision::LATEST {
            "parameters"
        } else {
            "inputSchema"
        };
        let mut sent = page();
        sent.project(to);
        let sent = serde_json::to_string(&sent).unwrap();
        let expected = format!(r#"{{"tools":[{{"name":"add","{name}":{{"type":"object"}}}}]}}"#);
        assert_eq!(sent, expected, "{to}");
        assert_eq!(serde_json::from_str::<Page>(&sent).unwrap(), page());
    }
}

#[test]
fn renamed_member_is_read_leniently() {
    let sent = r#"{"tools":[{"name":7,"parameters":[]}]}"#;
    assert!(serde_json::from_str::<Page>(sent).is_err());
    let read = lenient::read::<Page>(sent).unwrap().value;
    let [tool] = &*read.tools else {
        panic!("the tool was left out")
    };
    assert_eq!(tool.input_schema.get(), r#"{"type":"object"}"#);
}

#[test]
fn both_names_together_are_a_duplicate() {
    let sent = r#"{"name":"add","inputSchema":{},"parameters":{}}"#;
    let error = serde_json::from_str::<Tool>(sent).unwrap_err().to_string();
    assert!(
        error.starts_with("duplicate field `inputSchema`"),
        "{error}"
    );
}
