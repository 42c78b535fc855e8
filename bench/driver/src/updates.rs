//! Updates: calls of a tool that changes a resource, and the notifications to all listeners.

use std::{
    io,
    time::{Duration, Instant},
};

use bench_support::{Era, Latencies, Options, Phase, Report, own_cpu};

use crate::{
    http::{Connection, open, ready},
    process::{Process, Result},
    sessions::{ACKNOWLEDGED, listen},
};

/// The URI of the resource that `update` changes.
const WATCHED: &str = "bench://watched";

/// The notification that each listener receives once per update.
const UPDATED: &str = "notifications/resources/updated";

/// Calls `update` at the first of `servers` servers, again and again. A call is over when all listeners at all servers have
/// received the notification.
pub(crate) fn measure(options: &Options, servers: usize, count: usize) -> Result<Report> {
    let started = (0..servers).map(|_| Process::start(&options.server));
    let (servers, addresses): (Vec<_>, Vec<_>) =
        started.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let mut listeners = Vec::with_capacity(count);
    for address in addresses.iter().cycle().take(count) {
        listeners.push(open_listener(address, options.era)?);
    }
    let first = addresses.first().ok_or("missing the server")?;
    let mut updates = Updates::new(first, options.era, listeners)?;
    // The first update also does the work that is done once for each listener.
    updates.update()?;
    let cpu = || -> Result<Duration> {
        let each = servers.iter().map(Process::cpu);
        Ok(each.sum::<io::Result<Duration>>()?)
    };
    let (own_before, server_before) = (own_cpu(), cpu()?);
    let begun = Instant::now();
    let latencies = updates.run(options.measured())?;
    let wall = begun.elapsed();
    let (own, served) = (own_cpu() - own_before, cpu()? - server_before);
    for server in servers {
        server.stop()?;
    }
    Ok(Report::new(latencies, wall, own, served))
}

fn open_listener(address: &str, era: Era) -> Result<Connection> {
    let (mut connection, requests) = open(address, era, None)?;
    let mut out = Vec::new();
    if era == Era::Modern {
        let filter = format!(r#""resourceSubscriptions":["{WATCHED}"]"#);
        listen(&requests, &filter, &mut out);
        connection.open_stream(&out, ACKNOWLEDGED)?;
        return Ok(connection);
    }
    let subscribe = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{WATCHED}"}}}}"#
    );
    requests.post("resources/subscribe", None, subscribe.as_bytes(), &mut out);
    let answer = connection.exchange(&out)?;
    let text = String::from_utf8_lossy(&answer.messages()?.concat()).into_owned();
    if !text.contains(r#""result""#) {
        return Err(format!("the server refused the subscription: {text}").into());
    }
    out.clear();
    requests.bare("GET", &mut out);
    connection.open_stream(&out, "")?;
    Ok(connection)
}

struct Updates {
    listeners: Vec<Connection>,
    caller: Connection,
    request: Vec<u8>,
}

impl Updates {
    fn new(address: &str, era: Era, listeners: Vec<Connection>) -> Result<Self> {
        let (caller, requests) = open(address, era, None)?;
        let meta = match era.meta() {
            "" => String::new(),
            meta => format!(r#","_meta":{{{meta}}}"#),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"update","arguments":{{}}{meta}}}}}"#
        );
        let mut request = Vec::new();
        requests.post("tools/call", Some("update"), body.as_bytes(), &mut request);
        Ok(Self {
            listeners,
            caller,
            request,
        })
    }

    fn run(&mut self, phase: Phase) -> Result<Latencies> {
        let (begun, mut latencies) = (Instant::now(), Latencies::default());
        for updated in 0.. {
            let since = Instant::now();
            if !phase.goes_on(since.duration_since(begun), updated) {
                break;
            }
            self.update()?;
            latencies.push(since.elapsed());
        }
        Ok(latencies)
    }

    fn update(&mut self) -> Result<()> {
        let answer = self.caller.exchange(&self.request)?;
        let text = String::from_utf8_lossy(&answer.messages()?.concat()).into_owned();
        if !text.contains(r#""text":"updated""#) {
            return Err(format!("unexpected answer: {text:.300}").into());
        }
        for listener in &mut self.listeners {
            listener.busy = true;
        }
        let mut left = self.listeners.len();
        while left > 0 {
            for index in ready(&self.listeners)? {
                let listener = self.listeners.get_mut(index).ok_or("no such listener")?;
                if listener.has_streamed(UPDATED)? {
                    listener.busy = false;
                    left -= 1;
                }
            }
        }
        Ok(())
    }
}
