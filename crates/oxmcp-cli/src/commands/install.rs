//! `oxmcp install` and `oxmcp uninstall`: servers in the configuration files of hosts.

mod edit;
mod entry;
mod file;
mod host;
mod package;
mod server;

use std::path::PathBuf;

use serde_json::json;

use self::{
    file::Change,
    server::{Entry, Reach},
};
use crate::{
    args::{HostName, Install, Place, Uninstall},
    commands::transcript::is_secret_name,
    failure::{Failure, Reason, Result},
    output,
    terminal::Terminal,
};

pub(crate) fn install(args: &Install, as_json: bool, terminal: &Terminal) -> Result<()> {
    let entries = entry::entries(args, terminal)?;
    let replaces = args.replace;
    let plan = |host: HostName, change: &Change| {
        let mut text = change.after.clone();
        for entry in &entries {
            let value = host::value(host, entry)?;
            let is_ours = is_written(host, change, &entry.name)?;
            let inserted = edit::insert(host, &text, &entry.name, value, replaces && !is_ours);
            text = inserted.map_err(|failure| match is_ours {
                true => Failure::usage(format!(
                    "{} needs another form of the server than a host that shares the file; install for one of them",
                    host::label(host)
                )),
                false => failure,
            })?;
        }
        Ok(text)
    };
    let changes = changes(&args.place, &plan)?;
    let secrets = secrets(&entries);
    if !apply(&changes, (&args.place, &secrets), as_json, terminal)? {
        return Ok(());
    }
    for Entry { name, .. } in &entries {
        for host in &args.place.host {
            let host = host::label(*host);
            terminal.note(&format!(
                "installed; `oxmcp check {host}:{name}` checks it, `oxmcp uninstall {name} --host {host}` removes it"
            ));
        }
    }
    Ok(())
}

pub(crate) fn uninstall(args: &Uninstall, as_json: bool, terminal: &Terminal) -> Result<()> {
    let plan = |host: HostName, change: &Change| {
        let mut text = change.after.clone();
        for name in &args.names {
            if !is_written(host, change, name)? {
                text = edit::remove(host, &text, name)?;
            }
        }
        Ok(text)
    };
    let changes = changes(&args.place, &plan)?;
    apply(&changes, (&args.place, &[]), as_json, terminal)?;
    Ok(())
}

/// Whether another host of this command has changed the entry: hosts can share a file by a link, and the place in it.
fn is_written(host: HostName, change: &Change, name: &str) -> Result<bool> {
    if !change.is_change() {
        return Ok(false);
    }
    let before = edit::find(host, &change.before, name)?;
    Ok(before != edit::find(host, &change.after, name)?)
}

type Plan<'a> = &'a dyn Fn(HostName, &Change) -> Result<String>;

/// The changes of all files. None is written if one of them cannot be made.
fn changes(place: &Place, plan: Plan<'_>) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    let mut hosts: Vec<HostName> = Vec::new();
    for host in &place.host {
        if hosts.contains(host) {
            continue;
        }
        hosts.push(*host);
        let path: PathBuf = host::path(*host, place.scope)?;
        let change = Change::read(path, place.scope)?;
        // Hosts can share a file by a link, and a host can be given twice.
        let same = changes.iter().position(|it: &Change| it.is_of(&change));
        let change = match same {
            Some(index) => changes.remove(index),
            None => change,
        };
        let after = plan(*host, &change);
        let after =
            after.map_err(|failure| failure.of_server(&change.path.display().to_string()))?;
        changes.push(change.to(after));
    }
    Ok(changes)
}

/// The values that are written and not shown: those of headers, and of variables with names of secrets.
fn secrets(entries: &[Entry]) -> Vec<String> {
    let of_entry = |entry: &Entry| -> Vec<String> {
        match &entry.reach {
            Reach::Url(url) => url.headers.iter().map(|(_, value)| value.clone()).collect(),
            Reach::Program(program) => {
                let secret = program.env.iter().filter(|(name, _)| is_secret_name(name));
                secret.map(|(_, value)| value.clone()).collect()
            }
        }
    };
    entries.iter().flat_map(of_entry).collect()
}

/// Shows the changes, asks, and writes them. Returns whether they were written.
fn apply(
    changes: &[Change],
    (place, secrets): (&Place, &[String]),
    as_json: bool,
    terminal: &Terminal,
) -> Result<bool> {
    let changed: Vec<&Change> = changes.iter().filter(|it| it.is_change()).collect();
    let report = |is_written: bool| {
        let files = changes.iter().map(|it| {
            json!({
                "path": it.path.display().to_string(),
                "changed": is_written && it.is_change(),
                "diff": it.diff(secrets),
            })
        });
        output::json(&files.collect::<Vec<_>>())
    };
    let asks = !place.dry_run && !place.yes;
    for change in &changed {
        let diff = change.diff(secrets);
        if !as_json {
            output::diff(&diff)?;
        } else if asks && terminal.has_person() {
            // The result is on stdout, and nobody can agree to what is not shown.
            output::diff_to(&mut anstream::stderr(), &diff)?;
        }
    }
    if changed.is_empty() {
        terminal.note("the files have it already");
    }
    let is_wanted = !place.dry_run && !changed.is_empty();
    if is_wanted && !place.yes {
        let question = match changed.len() {
            1 => "Change this file?".to_owned(),
            count => format!("Change these {count} files?"),
        };
        if !terminal.confirm(&question, "pass `--yes` to change the files without asking")? {
            return Err(Failure::new(Reason::Refused, "nothing was changed"));
        }
    }
    if is_wanted {
        for change in &changed {
            if let Some(backup) = change.write()? {
                terminal.note(&format!(
                    "the contents before the first change are in {}",
                    backup.display()
                ));
            }
        }
    }
    if as_json {
        report(is_wanted)?;
    }
    Ok(is_wanted)
}
