//! Connects to the server of the command line.

use std::time::Duration;

use oxmcp::{
    Client, ClientSession,
    protocol::{ElicitFormParams, ElicitUrlParams, LoggingMessageParams},
    transport::Logging,
};

use crate::{
    answers::Answers,
    args::Connection,
    failure::{Failure, Result},
    target::Server,
    terminal::Terminal,
};

/// The time to wait for a server to end after a command.
const CLOSE: Duration = Duration::from_secs(5);

/// A client with the options of the command line.
///
/// # Errors
/// An answer of the command line has the wrong form.
pub(crate) fn client(options: &Connection, terminal: &Terminal) -> Result<Client> {
    let answers = Answers::new(options, terminal)?;
    let pages = answers.clone();
    let log = terminal.clone();
    Ok(plain(options)
        .on_elicit(move |form: ElicitFormParams| {
            let answers = answers.clone();
            async move { answers.form(form).await }
        })
        .on_elicit_url(move |page: ElicitUrlParams| {
            let answers = pages.clone();
            async move { answers.page(page).await }
        })
        .on_log(move |message: LoggingMessageParams, _| {
            let log = log.clone();
            async move {
                let level = message.level.as_str();
                log.detail(level, message.data.get());
            }
        }))
}

/// A client with the options of the command line, and without handlers.
pub(crate) fn plain(options: &Connection) -> Client {
    let mut client = Client::new("oxmcp", env!("CARGO_PKG_VERSION")).timeout(options.timeout);
    if let Some(revision) = options.revision {
        client = client.revisions([revision]);
    }
    if options.strict {
        client = client.strict();
    }
    client
}

/// Connects to the server.
///
/// # Errors
/// It cannot be reached, does not start, or needs a login.
pub(crate) async fn connect(
    server: &Server,
    options: &Connection,
    terminal: &Terminal,
) -> Result<ClientSession> {
    connect_with(client(options, terminal)?, server, options, terminal).await
}

/// Connects a client with handlers of its own.
///
/// # Errors
/// As for [`connect`].
pub(crate) async fn connect_with(
    client: Client,
    server: &Server,
    options: &Connection,
    terminal: &Terminal,
) -> Result<ClientSession> {
    server.announce(terminal);
    let transport = server.transport(options, terminal)?;
    let connected = if terminal.shows_wire() {
        let terminal = terminal.clone();
        let logged = Logging::with(transport, move |line| terminal.wire(line));
        client.connect(logged).await
    } else {
        client.connect(transport).await
    };
    connected.map_err(|error| Failure::from(error).of_server(&server.label))
}

/// Ends the session. The result of the command is known by then, so an error of the end does not matter.
pub(crate) async fn close(session: &ClientSession) {
    let _ = tokio::time::timeout(CLOSE, session.close()).await;
}
