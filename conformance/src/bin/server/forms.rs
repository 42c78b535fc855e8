//! Forms with every kind of field: derived from a type, and written by hand.

use oxmcp::{
    JsonSchema, Question, RequestContext, Server, Tool, ToolError, UserDecision,
    protocol::{
        ElicitFormParams, ElicitSchema, EnumOptions, MultiSelectSchema, SingleSelectSchema,
    },
};
use serde::{Deserialize, Serialize};

#[rustfmt::skip]
pub(crate) fn offer(server: Server) -> Server {
    server.tools([
        Tool::new("test_elicitation_sep1034_defaults", "Ask the user to check a form", defaults),
        Tool::new("test_elicitation_sep1330_enums", "Ask the user to choose", enums),
    ])
}

/// The initial values of the form are those of `default()`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Profile {
    name: String,
    age: i64,
    score: f64,
    status: Status,
    verified: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: "John Doe".into(),
            age: 30,
            score: 95.5,
            status: Status::Active,
            verified: true,
        }
    }
}

async fn defaults(cx: RequestContext) -> Result<String, ToolError> {
    let asked = cx.ask_or_declined::<Profile>("profile", "Please check your profile");
    completed(asked.await?)
}

async fn enums(cx: RequestContext) -> Result<String, ToolError> {
    let options = || [1, 2, 3].map(|n| format!("option{n}"));
    let titled = || [1, 2, 3].map(|n| (format!("value{n}"), format!("Option {n}")));
    let legacy = EnumOptions::Named {
        values: [1, 2, 3].map(|n| format!("opt{n}")).into(),
        names: [1, 2, 3].map(|n| format!("Option {n}")).into(),
    };
    let single = SingleSelectSchema::new;
    let multi = MultiSelectSchema::new;
    let form = ElicitSchema::new()
        .optional("untitledSingle", single(EnumOptions::untitled(options())))
        .optional("titledSingle", single(EnumOptions::titled(titled())))
        .optional("legacyEnum", single(legacy))
        .optional("untitledMulti", multi(EnumOptions::untitled(options())))
        .optional("titledMulti", multi(EnumOptions::titled(titled())));
    let form = ElicitFormParams::new("Please choose", form);
    let question = Question::form_with("choice", form).or_declined();
    completed(cx.ask_all(question).await?)
}

fn completed(asked: UserDecision<impl Serialize>) -> Result<String, ToolError> {
    let action = match &asked {
        UserDecision::Accepted(_) => "accept",
        UserDecision::Declined => "decline",
        UserDecision::Cancelled => "cancel",
    };
    let content = serde_json::to_string(&asked.accepted())?;
    Ok(format!(
        "Elicitation completed: action={action}, content={content}"
    ))
}
