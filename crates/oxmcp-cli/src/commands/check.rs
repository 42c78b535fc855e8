//! `oxmcp check`: finds out why a server does not start, or what hosts will not like about it. It calls no tool unless one is named.

mod balancer;
mod call;
mod launch;
mod lists;
mod report;
mod sarif;
mod warnings;

use oxmcp::{ClientSession, Revision};
use serde_json::json;
use tokio::time::Instant;

use self::{
    balancer::Observer,
    report::{Report, Severity},
};
use crate::{
    args::{Check, Connection, Format},
    failure::{Failure, Reason, Result},
    hosts::{self, Found, Unusable},
    output, session,
    target::Server,
    terminal::Terminal,
    trace,
};

/// The findings about what a server lists, without calling a tool.
///
/// # Errors
/// A list cannot be read.
pub(crate) async fn findings(session: &ClientSession) -> oxmcp::Result<Vec<report::Found>> {
    let mut report = Report::new("", (String::new(), 1));
    lists::check(&mut report, session).await?;
    report.sort();
    Ok(report.findings)
}

pub(crate) async fn run(args: Check, as_json: bool, terminal: &Terminal) -> Result<()> {
    let format = match args.format {
        Format::Text if as_json => Format::Json,
        format => format,
    };
    let options = &args.connection;
    let reports = if args.all {
        all(options, (format, args.yes), terminal).await?
    } else {
        let mut report = match Server::find(args.target, terminal) {
            Ok(server) => {
                let call = (args.call.as_deref(), server.words.as_slice());
                if call.0.is_none() && !server.words.is_empty() {
                    return Err(Failure::usage(format!(
                        "unexpected {:?}; a program follows `--`, and arguments are for `--call`",
                        server.words
                    )));
                }
                check(&server, call, options, terminal).await?
            }
            Err(failure) if format == Format::Text => return Err(failure),
            Err(failure) => misconfigured("configuration", ("", 1), &failure),
        };
        report.sort();
        if format == Format::Text {
            output::text(&report.text())?;
        }
        vec![report]
    };
    match (format, reports.as_slice()) {
        (Format::Text, _) => {}
        (Format::Sarif, reports) => output::json(&sarif::sarif(reports))?,
        (Format::Json, [report]) if !args.all => output::json(report)?,
        (Format::Json, reports) => output::json(&json!({ "servers": reports }))?,
    }
    let reasons: Vec<Reason> = reports.iter().filter_map(Report::reason).collect();
    match reasons.as_slice() {
        [] => Ok(()),
        [reason] if !args.all => Err(Failure::shown(*reason)),
        _ => Err(Failure::shown(Reason::Refused)),
    }
}

/// Checks all configured servers, one after another: they may need the same files or ports.
async fn all(
    options: &Connection,
    (format, is_agreed): (Format, bool),
    terminal: &Terminal,
) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    let found = hosts::all(terminal);
    if !is_agreed {
        confirm(&found, terminal)?;
    }
    for found in found {
        let mut report = match found {
            Ok((label, found)) => {
                let server = Server::configured(label, found);
                check(&server, (None, &[]), options, terminal).await?
            }
            Err((label, path, failure)) => misconfigured(&label, (&path, 1), &failure),
        };
        report.sort();
        if format == Format::Text {
            output::text(&format!("{}\n", report.text()))?;
        }
        reports.push(report);
    }
    if reports.is_empty() {
        terminal.note("found no configured server");
    }
    Ok(reports)
}

/// Asks about the servers of the current folder: its files may be those of a cloned repository, and name any program, or a URL to send
/// secrets of the environment to.
///
/// # Errors
/// The user does not agree, or there is nobody to ask.
fn confirm(found: &[Result<(String, Found), Unusable>], terminal: &Terminal) -> Result<()> {
    let of_folder = found.iter().flatten().filter(|it| it.1.path.is_relative());
    let mut count = 0;
    for (label, it) in of_folder {
        if let Some(text) = it.consent() {
            let mut lines = text.lines();
            let reach = lines.next().unwrap_or_default();
            let act = match it.config.command_line() {
                Some(_) => "starts",
                None => "sends values of the environment to",
            };
            terminal.tell(&format!("{label} {act} `{reach}`"));
            lines.for_each(|line| terminal.tell(&format!("  {line}")));
            count += 1;
        }
    }
    let question = match count {
        0 => return Ok(()),
        1 => "Use this server of the current folder?".to_owned(),
        _ => format!("Use these {count} servers of the current folder?"),
    };
    let remedy = "pass `--yes` to use the servers, or check one server";
    match terminal.confirm(&question, remedy)? {
        true => Ok(()),
        false => Err(Failure::new(
            Reason::Refused,
            "nothing was started or contacted",
        )),
    }
}

/// The report about a server whose configuration cannot be used.
fn misconfigured(target: &str, (path, line): (&str, usize), failure: &Failure) -> Report {
    let mut report = Report::new(target, (path.to_owned(), line));
    let remedy = "correct the file, or the command line";
    report.add(
        ("configuration", Severity::Error),
        "configuration",
        failure.to_string(),
        remedy,
    );
    report.unusable = Some(failure.reason());
    report
}

/// Checks one server.
///
/// # Errors
/// The command line does not fit the server.
async fn check(
    server: &Server,
    (call, words): (Option<&str>, &[String]),
    options: &Connection,
    terminal: &Terminal,
) -> Result<Report> {
    let mut report = Report::new(&server.label, server.source());
    // Warnings of another server do not count.
    trace::take_warnings();
    launch::command_line(&mut report, server);
    let begun = Instant::now();
    let session = match session::connect(server, options, terminal).await {
        Ok(session) => session,
        Err(failure) if failure.reason() == Reason::Usage => return Err(failure),
        Err(failure) => {
            report.unusable = Some(launch::explain(&mut report, &failure, server));
            warnings::check(&mut report);
            return Ok(report);
        }
    };
    report.connected_after_ms = Some(begun.elapsed().as_millis());
    // A login in the browser takes its time, too.
    let can_log_in = !server.is_program() && terminal.has_person() && !options.no_browser;
    if !can_log_in {
        launch::slow_start(&mut report);
    }
    match lists::check(&mut report, &session).await {
        Ok(tools) => {
            if let Some(name) = call {
                call::check(&mut report, &session, (name, words), &tools).await?;
            }
        }
        Err(error) => {
            report.add(
                ("list-error", Severity::Error),
                "server",
                error.to_string(),
                "answer the requests for lists as the capabilities of the server declare",
            );
            report.unusable = Some(Failure::from(error).reason());
        }
    }
    manners(&mut report, &session).await;
    session::close(&session).await;
    warnings::check(&mut report);
    revisions(&mut report, server, options, terminal, session.revision()).await;
    behind_a_balancer(&mut report, server, options, terminal).await;
    trace::take_warnings();
    Ok(report)
}

/// Checks the answers to requests that every server must answer, and reports the deviations that were tolerated.
async fn manners(report: &mut Report, session: &ClientSession) {
    if let Err(error) = session.ping().await
        && !error.is_unsupported()
    {
        report.add(
            ("ping", Severity::Warning),
            "ping",
            error.to_string(),
            "answer `ping` with an empty result",
        );
    }
    for it in session.tolerated() {
        let place = if it.method.is_empty() {
            "messages"
        } else {
            &it.method
        };
        let times = match it.count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        report.add(
            (it.leniency.name(), Severity::Warning),
            place,
            format!("{} Seen {times}.", it.leniency.reason()),
            "follow the specification: other hosts may reject this",
        );
    }
}

/// Finds the revisions that the server speaks.
async fn revisions(
    report: &mut Report,
    server: &Server,
    options: &Connection,
    terminal: &Terminal,
    known: Revision,
) {
    let is_pinned = options.revision.is_some();
    for revision in Revision::ALL {
        // Without a pin, the server has agreed to the revision of the session.
        let is_agreed = revision == known && !is_pinned;
        if is_pinned && revision != known {
            continue;
        }
        if is_agreed || speaks(revision, server, options, terminal).await {
            report.revisions.push(revision.as_str());
        }
    }
    let latest = Revision::LATEST;
    if !report.revisions.contains(&latest.as_str()) && !is_pinned {
        report.add(
            ("old-revision", Severity::Note),
            "server",
            format!("does not speak the latest revision, {latest}"),
            "update the server's SDK",
        );
    }
}

/// Whether the server agrees to a session of the revision.
async fn speaks(
    revision: Revision,
    server: &Server,
    options: &Connection,
    terminal: &Terminal,
) -> bool {
    let Ok(client) = session::client(options, terminal) else {
        return false;
    };
    // Nothing is printed: the user has seen the command line, and the messages are those of the first session.
    let Ok(transport) = server.transport(options, terminal) else {
        return false;
    };
    let Ok(session) = client.revisions([revision]).connect(transport).await else {
        return false;
    };
    // A session that is pinned to a modern revision opens without a request.
    let speaks = match revision.is_modern() {
        true => session.discover().await.is_ok_and(|found| {
            let mut versions = found.supported_versions.iter();
            versions.any(|it| it.as_str() == revision.as_str())
        }),
        false => true,
    };
    session::close(&session).await;
    speaks
}

/// Checks a server at a URL for what balancers and proxies need.
async fn behind_a_balancer(
    report: &mut Report,
    server: &Server,
    options: &Connection,
    terminal: &Terminal,
) {
    let observer = Observer::new();
    let Some(transport) = server.observed(options, terminal, observer.clone()) else {
        return;
    };
    let Ok(client) = session::client(options, terminal) else {
        return;
    };
    if let Ok(session) = client.connect(transport).await {
        balancer::check(report, &session, &observer, options.timeout).await;
        session::close(&session).await;
    }
}
