//! The driver of a server over HTTP: one connection for each call in flight, all kept alive.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::fd::AsFd,
};

use bench_support::{
    Call, Era, Load, Options, Phase, Report, Requests, Response, Responses, own_cpu,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::process::{Process, Result};

pub(crate) fn measure(options: &Options) -> Result<Report> {
    let (server, address) = Process::start(&options.server)?;
    let (first, requests) = open(&address, options.era, options.authorization)?;
    let mut connections = vec![first];
    for _ in 1..options.conc {
        connections.push(Connection::open(&address)?);
    }
    let mut load = Load::new(options.call.clone(), options.era, options.conc);
    let mut run = |load: &mut Load, phase| {
        Run {
            connections: &mut connections,
            requests: &requests,
            call: &options.call,
        }
        .run(load, phase)
    };
    run(&mut load, options.warm_up())?;
    let (own_before, server_before) = (own_cpu(), server.cpu()?);
    run(&mut load, options.measured())?;
    let (latencies, wall) = load.end();
    let (own, served) = (own_cpu() - own_before, server.cpu()? - server_before);
    server.stop()?;
    Ok(Report::new(latencies, wall, own, served))
}

/// Opens a connection, and a session if the era has sessions.
pub(crate) fn open(
    address: &str,
    era: Era,
    authorization: Option<&'static str>,
) -> Result<(Connection, Requests)> {
    let mut connection = Connection::open(address)?;
    let mut requests = Requests::new(address, era);
    requests.authorization = authorization;
    let mut out = Vec::new();
    let (method, opening) = match era {
        Era::Legacy => ("initialize", era.opening()),
        Era::Modern => ("server/discover", era.opening()),
    };
    requests.post(method, None, opening.as_bytes(), &mut out);
    let answer = connection.exchange(&out)?;
    let text = answer.messages()?.concat();
    let text = String::from_utf8_lossy(&text);
    if !text.contains(r#""result""#) || !text.contains(era.revision()) {
        return Err(format!("the server does not support {}: {text}", era.revision()).into());
    }
    if era == Era::Legacy {
        let session = answer.header("mcp-session-id").map(str::to_owned);
        requests.session = Some(session.ok_or("the server opened no session")?);
        out.clear();
        let confirmation = era.confirmation().as_bytes();
        requests.post("notifications/initialized", None, confirmation, &mut out);
        connection.exchange(&out)?.messages()?;
    }
    Ok((connection, requests))
}

struct Run<'a> {
    connections: &'a mut [Connection],
    requests: &'a Requests,
    call: &'a Call,
}

impl Run<'_> {
    fn run(&mut self, load: &mut Load, phase: Phase) -> Result<()> {
        let mut calls = Vec::new();
        load.begin(phase, &mut calls);
        let calls = calls.split_inclusive(|byte| *byte == b'\n');
        for (connection, call) in self.connections.iter_mut().zip(calls) {
            connection.begin(self.requests, self.call, call)?;
        }
        while !load.is_idle() {
            for index in ready(self.connections)? {
                let connection = self
                    .connections
                    .get_mut(index)
                    .ok_or("no such connection")?;
                let mut next = Vec::new();
                let Some(response) = connection.read()? else {
                    continue;
                };
                for message in response.messages()? {
                    load.receive(message, &mut next)?;
                }
                connection.busy = false;
                if !next.is_empty() {
                    connection.begin(self.requests, self.call, &next)?;
                }
            }
        }
        Ok(())
    }
}

/// The indices of the connections from which something can be read.
pub(crate) fn ready(connections: &[Connection]) -> Result<Vec<usize>> {
    let busy = connections
        .iter()
        .enumerate()
        .filter(|(_, connection)| connection.busy);
    let (indices, mut waited): (Vec<usize>, Vec<_>) = busy
        .map(|(index, connection)| {
            (
                index,
                PollFd::new(connection.socket.as_fd(), PollFlags::POLLIN),
            )
        })
        .unzip();
    poll(&mut waited, PollTimeout::NONE)?;
    let ready = indices.into_iter().zip(waited);
    Ok(ready
        .filter(|(_, waited)| waited.any().unwrap_or(true))
        .map(|(index, _)| index)
        .collect())
}

/// A connection, with one exchange at a time.
pub(crate) struct Connection {
    socket: TcpStream,
    responses: Responses,
    out: Vec<u8>,
    chunk: Vec<u8>,
    /// Whether a response is expected.
    pub(crate) busy: bool,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            responses: Responses::default(),
            out: Vec::new(),
            chunk: vec![0; 16 * 1024],
            busy: false,
        })
    }

    fn begin(&mut self, requests: &Requests, call: &Call, body: &[u8]) -> Result<()> {
        self.out.clear();
        requests.call(call, body, &mut self.out);
        self.busy = true;
        Ok(self.socket.write_all(&self.out)?)
    }

    /// Reads once, and returns the response if it is complete.
    fn read(&mut self) -> Result<Option<Response>> {
        self.fill()?;
        Ok(self.responses.next_response()?)
    }

    fn fill(&mut self) -> Result<()> {
        let read = self.socket.read(&mut self.chunk)?;
        let chunk = self.chunk.get(..read).unwrap_or_default();
        self.responses.room().extend_from_slice(chunk);
        if read == 0 {
            Err("the server closed the connection".into())
        } else {
            Ok(())
        }
    }

    /// Sends a request, and waits for the whole response.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<Response> {
        self.socket.write_all(request)?;
        loop {
            if let Some(response) = self.read()? {
                return Ok(response);
            }
        }
    }

    /// Sends a request whose response is a stream that stays open, and waits until the stream contains `word`.
    pub(crate) fn open_stream(&mut self, request: &[u8], word: &str) -> Result<()> {
        self.socket.write_all(request)?;
        while !self.has_streamed(word)? {}
        Ok(())
    }

    /// Reads once, and says whether the data of the stream that has arrived contains `word`. If so, the data up to then is dropped.
    pub(crate) fn has_streamed(&mut self, word: &str) -> Result<bool> {
        self.fill()?;
        self.responses.has_head()?;
        let Some((response, body)) = self.responses.so_far() else {
            return Ok(false);
        };
        if response.status != 200 {
            return Err(format!("expected a stream, got status {}", response.status).into());
        }
        let found = memchr::memmem::find_iter(body, word.as_bytes())
            .take(2)
            .count();
        if found > 0 {
            self.responses.forget();
        }
        if found > 1 && !word.is_empty() {
            return Err(format!("received {word} more than once").into());
        }
        Ok(found > 0)
    }
}
