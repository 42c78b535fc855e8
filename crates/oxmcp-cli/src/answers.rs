//! Answers to the questions of a server: from the command line, or from the person at the terminal.

use std::{collections::BTreeMap, sync::Arc};

use oxmcp::{
    Answer,
    protocol::{ElicitAction, ElicitFormParams, ElicitUrlParams, PrimitiveSchema},
};
use serde_json::{Map, Value};
use tokio::{sync::Mutex, task::spawn_blocking};

use crate::{
    args::Connection,
    failure::{Failure, Result},
    terminal::Terminal,
};

/// The answers that are known, and the person who has the others.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    given: Arc<BTreeMap<String, Given>>,
    declines: bool,
    terminal: Terminal,
    /// One question is asked at a time.
    turn: Arc<Mutex<()>>,
}

/// A value of the command line.
#[derive(Clone, Debug)]
enum Given {
    Text(String),
    Json(Value),
}

impl Answers {
    /// # Errors
    /// A value of the command line is not `field=text` or `field:=json`.
    pub(crate) fn new(options: &Connection, terminal: &Terminal) -> Result<Self> {
        let mut given = BTreeMap::new();
        for text in &options.answer {
            let (field, value) = text.split_once('=').ok_or_else(|| {
                Failure::usage(format!(
                    "invalid answer {text:?}: expected `field=text` or `field:=json`"
                ))
            })?;
            let (field, value) = match field.strip_suffix(':') {
                Some(field) => {
                    let json = serde_json::from_str(value).map_err(|error| {
                        Failure::usage(format!("invalid answer for {field:?}: not JSON: {error}"))
                    })?;
                    (field, Given::Json(json))
                }
                None => (field, Given::Text(value.to_owned())),
            };
            given.insert(field.to_owned(), value);
        }
        Ok(Self {
            given: Arc::new(given),
            declines: options.decline,
            terminal: terminal.clone(),
            turn: Arc::default(),
        })
    }

    /// Answers a form.
    pub(crate) async fn form(self, form: ElicitFormParams) -> Answer<Map<String, Value>> {
        let _turn = self.turn.lock().await;
        self.terminal.end_progress();
        if self.declines {
            return Answer::Decline;
        }
        if let Some(content) = self.given_for(&form) {
            return Answer::Accept(content);
        }
        if !self.terminal.has_person() {
            self.terminal.lack_person();
            self.terminal.note(&format!(
                "the server asks {:?}, and there is no terminal to answer on; pass `--answer field=value` or `--decline`",
                form.message
            ));
            return Answer::Cancel;
        }
        let given = Arc::clone(&self.given);
        // The prompts block their thread.
        let asked = spawn_blocking(move || ask(&form, &given)).await;
        asked.unwrap_or(Answer::Cancel)
    }

    /// The content of a form whose required fields the command line has. `None` if it has none of the fields.
    fn given_for(&self, form: &ElicitFormParams) -> Option<Map<String, Value>> {
        let schema = &form.requested_schema;
        let has_all = schema.required.iter().all(|it| self.given.contains_key(it));
        let mut content = Map::new();
        for (name, field) in schema.properties.iter() {
            if let Some(value) = self.given.get(name) {
                content.insert(name.to_owned(), value.typed(field));
            }
        }
        (has_all && !content.is_empty()).then_some(content)
    }

    /// Asks whether the person has visited a page. It is never opened without consent.
    pub(crate) async fn page(self, page: ElicitUrlParams) -> ElicitAction {
        let _turn = self.turn.lock().await;
        self.terminal.end_progress();
        if self.declines || page.check_url().is_err() {
            return ElicitAction::Decline;
        }
        self.terminal
            .note(&format!("{}: {}", page.message, page.url));
        if !self.terminal.has_person() {
            self.terminal.lack_person();
            return ElicitAction::Cancel;
        }
        let asked = spawn_blocking(|| {
            let question = dialoguer::Confirm::new()
                .with_prompt("Open this page in your browser yourself. Continue?");
            question.default(false).interact_opt()
        });
        match asked.await {
            Ok(Ok(Some(true))) => ElicitAction::Accept,
            Ok(Ok(Some(false))) => ElicitAction::Decline,
            _ => ElicitAction::Cancel,
        }
    }
}

impl Given {
    /// The value in the type of the field.
    fn typed(&self, field: &PrimitiveSchema) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Text(text) => typed(text, field),
        }
    }
}

/// Text in the type of a field. What does not fit stays text, and the form rejects it.
fn typed(text: &str, field: &PrimitiveSchema) -> Value {
    let parsed = match field {
        PrimitiveSchema::Number(_) | PrimitiveSchema::Boolean(_) => serde_json::from_str(text).ok(),
        PrimitiveSchema::MultiSelect(_) => {
            let chosen = text.split(',').map(|it| it.trim().into());
            Some(Value::Array(chosen.collect()))
        }
        _ => None,
    };
    parsed.unwrap_or_else(|| text.into())
}

/// Asks the person for each field of a form. It blocks.
fn ask(form: &ElicitFormParams, given: &BTreeMap<String, Given>) -> Answer<Map<String, Value>> {
    let message = crate::escape::block(&form.message);
    let question = dialoguer::Confirm::new().with_prompt(format!("{message}\nAnswer?"));
    match question.default(true).interact_opt() {
        Ok(Some(true)) => {}
        Ok(Some(false)) => return Answer::Decline,
        Ok(None) | Err(_) => return Answer::Cancel,
    }
    let mut content = Map::new();
    for (name, field) in form.requested_schema.properties.iter() {
        if let Some(value) = given.get(name) {
            content.insert(name.to_owned(), value.typed(field));
            continue;
        }
        let is_required = form.requested_schema.required.iter().any(|it| it == name);
        match ask_field(name, field, is_required) {
            Ok(Some(value)) => {
                content.insert(name.to_owned(), value);
            }
            Ok(None) => {}
            Err(_) => return Answer::Cancel,
        }
    }
    Answer::Accept(content)
}

/// `None` if the person leaves out a field that is optional.
fn ask_field(
    name: &str,
    field: &PrimitiveSchema,
    is_required: bool,
) -> dialoguer::Result<Option<Value>> {
    let prompt = prompt(name, field, is_required);
    match field {
        PrimitiveSchema::Boolean(_) => {
            let answer = dialoguer::Confirm::new().with_prompt(prompt).interact()?;
            Ok(Some(answer.into()))
        }
        PrimitiveSchema::SingleSelect(select) => {
            let values: Vec<&str> = select.options.values().collect();
            let shown: Vec<String> = values.iter().map(|it| crate::escape::line(it)).collect();
            let chosen = dialoguer::Select::new()
                .with_prompt(prompt)
                .items(&shown)
                .default(0)
                .interact_opt()?;
            Ok(chosen
                .and_then(|index| values.get(index))
                .map(|it| Value::from(*it)))
        }
        PrimitiveSchema::MultiSelect(select) => {
            let values: Vec<&str> = select.options.values().collect();
            let shown: Vec<String> = values.iter().map(|it| crate::escape::line(it)).collect();
            let chosen = dialoguer::MultiSelect::new()
                .with_prompt(prompt)
                .items(&shown)
                .interact()?;
            let chosen = chosen.into_iter().filter_map(|index| values.get(index));
            Ok(Some(chosen.map(|it| Value::from(*it)).collect()))
        }
        _ => {
            let asked = dialoguer::Input::<String>::new()
                .with_prompt(prompt)
                .allow_empty(!is_required);
            let text = asked.interact_text()?;
            Ok((!text.is_empty()).then(|| typed(&text, field)))
        }
    }
}

fn prompt(name: &str, field: &PrimitiveSchema, is_required: bool) -> String {
    let (title, description) = match field {
        PrimitiveSchema::String(it) => (&it.title, &it.description),
        PrimitiveSchema::Number(it) => (&it.title, &it.description),
        PrimitiveSchema::Boolean(it) => (&it.title, &it.description),
        PrimitiveSchema::SingleSelect(it) => (&it.title, &it.description),
        PrimitiveSchema::MultiSelect(it) => (&it.title, &it.description),
        _ => (&None, &None),
    };
    let mut prompt = title.clone().unwrap_or_else(|| name.to_owned());
    if let Some(description) = description {
        prompt = format!("{prompt} ({description})");
    }
    if !is_required {
        prompt.push_str(" [optional]");
    }
    crate::escape::line(&prompt)
}
