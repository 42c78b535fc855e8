//! The load on a server: a number of calls in flight, and checks of their answers.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Call, Era, Latencies};

/// The length of a part of a run.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// Calls begin until this time is over.
    Time(Duration),
    /// This number of calls.
    Calls(u64),
}

impl Phase {
    /// Whether another call begins, after this time and this number of calls.
    #[must_use]
    pub fn goes_on(self, elapsed: Duration, started: u64) -> bool {
        match self {
            Self::Time(time) => elapsed < time,
            Self::Calls(calls) => started < calls,
        }
    }
}

/// The load on a server: keeps a number of calls in flight, and judges the answers.
///
/// The caller starts a phase, writes the contents of the buffer, passes every line from the server to [`receive`](Self::receive),
/// and continues until the phase [is over](Self::is_idle).
#[derive(Debug)]
pub struct Load {
    call: Call,
    era: Era,
    conc: usize,
    next_id: u64,
    in_flight: Vec<InFlight>,
    begun: Instant,
    phase: Phase,
    started: u64,
    latencies: Latencies,
}

#[derive(Debug)]
struct InFlight {
    id: u64,
    since: Instant,
    progress: u64,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Progress {
    #[serde(rename = "progressToken")]
    token: u64,
    progress: f64,
}

impl Load {
    /// A load that has not begun.
    #[must_use]
    pub fn new(call: Call, era: Era, conc: usize) -> Self {
        Self {
            call,
            era,
            conc,
            next_id: 1,
            in_flight: Vec::with_capacity(conc),
            begun: Instant::now(),
            phase: Phase::Calls(0),
            started: 0,
            latencies: Latencies::default(),
        }
    }

    /// Begins a phase: appends its first calls to `out`.
    pub fn begin(&mut self, phase: Phase, out: &mut Vec<u8>) {
        self.begun = Instant::now();
        self.phase = phase;
        self.started = 0;
        self.latencies = Latencies::default();
        for _ in 0..self.conc {
            self.call_again(self.begun, out);
        }
    }

    /// Checks a line from the server, and appends the next call to `out`.
    ///
    /// # Errors
    /// Describes the problem of the line.
    pub fn receive(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let message: Message<'_> =
            serde_json::from_slice(line).map_err(|e| wrong(&e.to_string(), line))?;
        match message {
            Message {
                id: Some(id),
                result: Some(result),
                method: None,
                ..
            } => self.answered(id, result, out),
            Message {
                method: Some("notifications/progress"),
                params: Some(params),
                ..
            } => self.progressed(params),
            _ => Err("no result".into()),
        }
        .map_err(|e| wrong(&e, line))
    }

    /// Whether all calls are answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The latencies of the calls of the phase, and its duration.
    #[must_use]
    pub fn end(&mut self) -> (Latencies, Duration) {
        (std::mem::take(&mut self.latencies), self.begun.elapsed())
    }

    fn call_again(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self
            .phase
            .goes_on(now.duration_since(self.begun), self.started)
        {
            self.call.write(out, self.next_id, self.era);
            self.in_flight.push(InFlight {
                id: self.next_id,
                since: now,
                progress: 0,
            });
            self.next_id += 1;
            self.started += 1;
        }
    }

    fn answered(&mut self, id: u64, result: &RawValue, out: &mut Vec<u8>) -> Result<(), String> {
        let index = self
            .in_flight
            .iter()
            .position(|call| call.id == id)
            .ok_or("no call has this id")?;
        let call = self.in_flight.swap_remove(index);
        self.call.check(id, result.get())?;
        if let Call::Progress(n) = self.call
            && call.progress != n
        {
            return Err(format!(
                "expected {n} progress notifications, got {}",
                call.progress
            ));
        }
        let now = Instant::now();
        self.latencies.push(now.duration_since(call.since));
        self.call_again(now, out);
        Ok(())
    }

    fn progressed(&mut self, params: &RawValue) -> Result<(), String> {
        let Progress { token, progress } =
            serde_json::from_str(params.get()).map_err(|e| e.to_string())?;
        let call = self
            .in_flight
            .iter_mut()
            .find(|call| call.id == token)
            .ok_or("no call has this token")?;
        call.progress += 1;
        if progress == call.progress as f64 {
            Ok(())
        } else {
            Err(format!(
                "expected progress {}, got {progress}",
                call.progress
            ))
        }
    }
}

fn wrong(problem: &str, line: &[u8]) -> String {
    let start = line.get(..300).unwrap_or(line);
    format!("{problem}: {}", String::from_utf8_lossy(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(call: Call) -> Load {
        let mut load = Load::new(call, Era::Modern, 1);
        load.begin(Phase::Calls(1), &mut Vec::new());
        load
    }

    fn text(id: u64, text: &str) -> String {
        let text = serde_json::to_string(text).unwrap();
        format!(
            r#"{{"id":{id},"jsonrpc":"2.0","result":{{"content":[{{"text":{text},"type":"text"}}]}}}}"#
        )
    }

    fn progress(token: u64, progress: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}}}}}"#
        )
    }

    /// Passes the lines to a load of one call, and returns whether it accepted all of them.
    fn judge(call: Call, lines: &[String]) -> bool {
        let mut load = begun(call);
        lines
            .iter()
            .all(|line| load.receive(line.as_bytes(), &mut Vec::new()).is_ok())
            && load.is_idle()
    }

    #[test]
    fn every_request_is_one_line_of_json() {
        for era in [Era::Legacy, Era::Modern] {
            for call in ["add", "echo:1000", "quote", "wait", "list", "progress:5"] {
                let call: Call = call.parse().unwrap();
                let mut out = Vec::new();
                call.write(&mut out, 9, era);
                assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
                let request: serde_json::Value = serde_json::from_slice(&out).unwrap();
                assert_eq!(request["id"], 9);
                let version =
                    &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
                assert_eq!(version.is_null(), era == Era::Legacy);
                if let Call::Echo { text, .. } = &call {
                    assert_eq!(request["params"]["arguments"]["text"], text.as_str());
                }
            }
        }
    }

    #[test]
    fn right_answers_are_accepted() {
        assert!(judge(Call::Add, &[text(1, "8")]));
        let Call::Echo { text: prose, .. } = Call::echo(3000) else {
            unreachable!()
        };
        assert!(judge(Call::echo(3000), &[text(1, &prose)]));
        assert!(judge(
            Call::Progress(2),
            &[progress(1, "1"), progress(1, "2.0"), text(1, "done")]
        ));
    }

    #[test]
    fn wrong_answers_are_rejected() {
        assert!(!judge(Call::Add, &[text(1, "9")]));
        assert!(
            !judge(Call::Add, &[text(2, "9")]),
            "an id that was not asked"
        );
        assert!(!judge(Call::Add, &[]), "no answer");
        assert!(!judge(Call::echo(3000), &[text(1, "It was said")]));
        assert!(!judge(
            Call::List(103),
            &[r#"{"id":1,"result":{"tools":[]}}"#.into()]
        ));
        assert!(
            !judge(Call::Progress(2), &[progress(1, "1"), text(1, "done")]),
            "one was lost"
        );
        assert!(
            !judge(
                Call::Progress(2),
                &[progress(1, "2"), progress(1, "1"), text(1, "done")]
            ),
            "the wrong order"
        );
        assert!(
            !judge(Call::Progress(1), &[text(1, "done"), progress(1, "1")]),
            "after the answer"
        );
        assert!(!judge(
            Call::Add,
            &[r#"{"id":1,"error":{"code":-32603,"message":"no"}}"#.into()]
        ));
    }

    #[test]
    fn phase_ends_after_its_number_of_calls() {
        let mut load = Load::new(Call::Add, Era::Legacy, 2);
        let mut out = Vec::new();
        load.begin(Phase::Calls(3), &mut out);
        for id in 1..=3 {
            assert!(!load.is_idle());
            load.receive(text(id, &(id + 7).to_string()).as_bytes(), &mut out)
                .unwrap();
        }
        assert!(load.is_idle());
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 3);
    }
}
