//! Sessions and their cost: opening one, and keeping many open.

use std::time::Instant;

use bench_support::{Era, Held, Latencies, Options, Phase, Report, Requests, own_cpu};

use crate::{
    http::{Connection, open},
    process::{Process, Result},
};

/// The first message in the answer to a request to listen.
pub(crate) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Opens sessions, each on its own connection, and ends them again.
pub(crate) fn connect(options: &Options) -> Result<Report> {
    let (server, address) = Process::start(&options.server)?;
    connect_for(options.warm_up(), &address, options.era)?;
    let (own_before, server_before) = (own_cpu(), server.cpu()?);
    let begun = Instant::now();
    let latencies = connect_for(options.measured(), &address, options.era)?;
    let wall = begun.elapsed();
    let (own, served) = (own_cpu() - own_before, server.cpu()? - server_before);
    server.stop()?;
    Ok(Report::new(latencies, wall, own, served))
}

fn connect_for(phase: Phase, address: &str, era: Era) -> Result<Latencies> {
    let (begun, mut latencies) = (Instant::now(), Latencies::default());
    for opened in 0.. {
        let since = Instant::now();
        if !phase.goes_on(since.duration_since(begun), opened) {
            break;
        }
        let (mut connection, requests) = open(address, era, None)?;
        if era == Era::Legacy {
            let mut out = Vec::new();
            requests.bare("DELETE", &mut out);
            connection.exchange(&out)?.messages()?;
        }
        latencies.push(since.elapsed());
    }
    Ok(latencies)
}

/// Opens sessions at one server, and makes the first call of each at another, whose CPU time counts.
pub(crate) fn restore(options: &Options) -> Result<Report> {
    let (opening, first) = Process::start(&options.server)?;
    let (server, second) = Process::start(&options.server)?;
    let mut connection = Connection::open(&second)?;
    let mut restore_for = |phase: Phase| -> Result<Latencies> {
        let (begun, mut latencies) = (Instant::now(), Latencies::default());
        for restored in 0.. {
            if !phase.goes_on(begun.elapsed(), restored) {
                break;
            }
            let (_, mut requests) = open(&first, options.era, None)?;
            requests.host.clone_from(&second);
            let (mut body, mut out) = (Vec::new(), Vec::new());
            options.call.write(&mut body, restored, options.era);
            requests.call(&options.call, &body, &mut out);
            let since = Instant::now();
            let answer = connection.exchange(&out)?.messages()?.concat();
            latencies.push(since.elapsed());
            let answer = String::from_utf8_lossy(&answer);
            if !answer.contains(r#""result""#) {
                return Err(format!("the session was not restored: {answer:.300}").into());
            }
        }
        Ok(latencies)
    };
    restore_for(options.warm_up())?;
    let (own_before, server_before) = (own_cpu(), server.cpu()?);
    let begun = Instant::now();
    let latencies = restore_for(options.measured())?;
    let wall = begun.elapsed();
    let (own, served) = (own_cpu() - own_before, server.cpu()? - server_before);
    server.stop()?;
    opening.stop()?;
    Ok(Report::new(latencies, wall, own, served))
}

/// Keeps sessions open, each on its own connection, and returns the server's memory per session, in KiB.
pub(crate) fn hold(options: &Options, held: Held, count: usize) -> Result<f64> {
    /// The number of sessions that are opened before the measurement, so that one-time allocations of the server do not count.
    const BEFORE: usize = 50;
    let (server, address) = Process::start(&options.server)?;
    let mut kept = Vec::with_capacity(BEFORE + count);
    for _ in 0..BEFORE {
        kept.push(open_one(&address, options.era, held)?);
    }
    let before = server.memory()?;
    for _ in 0..count {
        kept.push(open_one(&address, options.era, held)?);
    }
    let memory = server.memory()? - before;
    server.stop()?;
    Ok(memory / count as f64)
}

fn open_one(address: &str, era: Era, held: Held) -> Result<Connection> {
    let (mut connection, requests) = if era == Era::Modern && held == Held::Listen {
        (Connection::open(address)?, Requests::new(address, era))
    } else {
        open(address, era, None)?
    };
    let mut out = Vec::new();
    match held {
        Held::Idle => return Ok(connection),
        Held::Get => requests.bare("GET", &mut out),
        Held::Listen => listen(&requests, r#""toolsListChanged":true"#, &mut out),
    }
    let word = if held == Held::Listen {
        ACKNOWLEDGED
    } else {
        ""
    };
    connection.open_stream(&out, word)?;
    Ok(connection)
}

/// Appends a request to listen with these members of the filter.
pub(crate) fn listen(requests: &Requests, filter: &str, out: &mut Vec<u8>) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{{filter}}},"_meta":{{{}}}}}}}"#,
        requests.era.meta()
    );
    requests.post("subscriptions/listen", None, body.as_bytes(), out);
}
