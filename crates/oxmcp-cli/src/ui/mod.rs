//! `oxmcp ui`: a page in the browser that shows servers and uses them.
//!
//! ```text
//! page (ES modules) ── API and events, with the token ── web ── hub ── a session for each server that is open
//!   └─ frame ── sandbox, at another origin ── app        └─ views ── a bridge for each app
//! ```
//!
//! Nothing that a server sends becomes markup: the page makes elements only from its own code, and its policy forbids all else.
//! Every request of the page is answered at once. Results, progress, questions, logs and messages are events of one stream, which
//! a page may read again from the start after it was reloaded.

mod assets;
mod catalog;
mod connect;
mod ends;
mod events;
mod hub;
mod operation;
mod questions;
pub(crate) mod token;
mod views;
mod web;

use std::{io, sync::Arc};

use serde_json::json;
use tokio::{net::TcpListener, task::spawn_blocking};

use crate::{
    args::Ui,
    failure::{Failure, Reason, Result},
    output,
    terminal::{Terminal, stopped},
    ui::{ends::Ends, hub::Hub, web::Site},
};

/// Serves the page until the user stops the program.
///
/// # Errors
/// There is no server to show, or no port is free.
pub(crate) async fn run(args: Ui, as_json: bool, terminal: &Terminal) -> Result<()> {
    if args.connection.decline || !args.connection.answer.is_empty() {
        return Err(Failure::usage(
            "questions of servers are answered on the page; leave out `--answer` and `--decline`",
        ));
    }
    let servers = catalog::list(args.target, terminal)?;
    let (for_page, page) = listen().await?;
    let (for_sandbox, sandbox) = listen().await?;
    let token = token::random()?;
    let code = token::random()?;
    let url = format!("{page}/#{token}");
    let once = format!("{page}/#once-{code}");
    let opens = terminal.has_person() && !args.connection.no_browser;
    let hub = Hub::new(servers, args.connection, terminal.clone(), sandbox.clone());
    let events = Arc::clone(&hub.events);
    terminal.observe(move |level, text| {
        events.push("sdk", None, json!({"level": level, "text": text}));
    });
    let site = Site::new(Arc::clone(&hub), token, page, sandbox);
    if opens {
        site.open_once(code);
    }
    match as_json {
        true => output::json_line(&json!({"url": url}))?,
        false => output::text(&url)?,
    }
    if opens {
        let terminal = terminal.clone();
        // A browser in the terminal runs until the user leaves it. Other users can read its arguments: the token is not in them, and
        // the code is refused to them.
        spawn_blocking(move || {
            if webbrowser::open(&once).is_err() {
                terminal.note("could not open a browser; open the URL yourself");
            }
        });
    }
    terminal.note("serving the page to this machine only; press Ctrl-C to stop");
    let outcome = tokio::select! {
        ended = axum::serve(for_page, web::page(&site).into_make_service_with_connect_info::<Ends>()).into_future() => ended,
        ended = axum::serve(for_sandbox, web::sandbox(&site)).into_future() => ended,
        () = stopped() => Ok(()),
    };
    hub.close().await;
    outcome.map_err(|error| unreachable(&error))
}

/// A free port of this machine, and its origin.
async fn listen() -> Result<(TcpListener, String)> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|error| unreachable(&error))?;
    let address = listener.local_addr().map_err(|error| unreachable(&error))?;
    Ok((listener, format!("http://{address}")))
}

fn unreachable(error: &io::Error) -> Failure {
    Failure::new(
        Reason::Unreachable,
        format!("could not serve the page: {error}"),
    )
}
