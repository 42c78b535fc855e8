//! The servers of the page: those of the command line, or those of the configuration files that were found.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use oxmcp_group::Input;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    args::Target,
    failure::{Failure, Result},
    hosts::{self, Found},
    target::Server,
    terminal::Terminal,
};

/// The number of servers of a page.
const MAX_SERVERS: usize = 256;

/// A server that the page can connect to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    pub label: String,
    /// The host and the file that name the server.
    source: Option<String>,
    /// The command line or the URL.
    reach: String,
    is_program: bool,
    /// Whether the page connects by itself: the user has named the server.
    is_named: bool,
    #[serde(skip)]
    place: Place,
}

#[derive(Debug)]
enum Place {
    Known(Box<Server>),
    File { path: PathBuf, name: String },
}

/// The reason for which a server cannot be started yet.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// The user must confirm this command line or URL, with its environment or headers.
    Consent(String),
    /// The user must answer the inputs of the configuration file.
    Inputs(Vec<Value>),
    Failed(String),
}

/// The servers of the command line. Without any, those of the configuration files.
///
/// # Errors
/// There are none, or a target cannot be found.
pub(crate) fn list(target: Target, terminal: &Terminal) -> Result<Vec<Listed>> {
    if target.words.is_empty() && target.program.is_empty() {
        return configured(terminal);
    }
    let listed = Server::find_all(target, terminal)?
        .into_iter()
        .map(|server| {
            let is_ours = server.consent().is_none();
            Listed {
                label: server.label.clone(),
                source: None,
                reach: server.reach(),
                is_program: server.is_program(),
                is_named: is_ours,
                place: Place::Known(Box::new(server)),
            }
        });
    Ok(listed.take(MAX_SERVERS).collect())
}

fn configured(terminal: &Terminal) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for source in hosts::sources() {
        let config = match hosts::reader(terminal, None).read(&source.path) {
            Ok(config) => config,
            Err(error) => {
                terminal.note(&error.to_string());
                continue;
            }
        };
        for it in config.servers() {
            listed.push(Listed {
                label: it.name().to_owned(),
                source: Some(format!("{} ({})", source.path.display(), source.host)),
                reach: hosts::reach(it).to_owned(),
                is_program: it.command_line().is_some(),
                is_named: false,
                place: Place::File {
                    path: source.path.clone(),
                    name: it.name().to_owned(),
                },
            });
        }
    }
    listed.truncate(MAX_SERVERS);
    if listed.is_empty() {
        return Err(Failure::usage(
            "found no server in a configuration file; give a URL, or `-- program`",
        ));
    }
    Ok(listed)
}

impl Listed {
    /// The server as it is configured now. `confirmed` is the text that the user has agreed to.
    ///
    /// # Errors
    /// The user must be asked first, or the configuration file has mistakes.
    pub(crate) fn server(
        &self,
        confirmed: Option<&str>,
        inputs: BTreeMap<String, String>,
        terminal: &Terminal,
    ) -> Result<Server, Obstacle> {
        let server = match &self.place {
            Place::Known(server) => (**server).clone(),
            Place::File { path, name } => {
                let missing = Arc::new(Mutex::new(Vec::new()));
                let noted = Arc::clone(&missing);
                let answer = move |input: &Input| {
                    let answer = inputs.get(&input.id).cloned();
                    if answer.is_none() {
                        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                        noted.push(shown(input));
                    }
                    answer
                };
                let reader = hosts::reader(terminal, Some(name)).inputs(answer);
                let config = reader.read(path);
                let missing = missing.lock().unwrap_or_else(PoisonError::into_inner);
                if !missing.is_empty() {
                    return Err(Obstacle::Inputs(missing.clone()));
                }
                let config = config.map_err(|error| Obstacle::Failed(error.to_string()))?;
                let found = config.servers().iter().find(|it| it.name() == name);
                let found = found.ok_or_else(|| {
                    let path = path.display();
                    Obstacle::Failed(format!("{path} no longer has a server {name:?}"))
                })?;
                let found = Found {
                    path: path.clone(),
                    config: found.clone(),
                };
                Server::configured(name.clone(), found)
            }
        };
        match server.consent() {
            Some(text) if confirmed != Some(text.as_str()) => Err(Obstacle::Consent(text)),
            _ => Ok(server),
        }
    }
}

fn shown(input: &Input) -> Value {
    json!({
        "id": input.id,
        "description": input.description,
        "isPassword": input.is_password,
        "default": input.default,
        "options": input.options,
    })
}
