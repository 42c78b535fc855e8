//! Failures of servers, for whatever calls their tools: a group, or a client of a gateway.

use std::{fs, path::PathBuf, time::Duration};

use oxmcp::protocol::CallToolResult;
use serde_json::{Value, json};
use tokio::{select, time::sleep};

use crate::{
    processes::{self, soon},
    servers::{Outcome, Servers, ensure},
};

/// The deadline of a call to a server that does not answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// The time for which a call must stay open.
const WHILE: Duration = Duration::from_millis(500);

/// A caller of tools.
pub(crate) trait Caller {
    fn call(
        &self,
        tool: &str,
        arguments: Value,
        timeout: Duration,
    ) -> impl Future<Output = oxmcp::Result<CallToolResult>>;
}

/// A tool of a server that has no effect, and a word in the server's command line.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    tool: &'static str,
    word: &'static str,
}

/// A legacy server of npm, which has sessions.
pub(crate) const MEMORY: Probe = Probe {
    tool: "memory_read_graph",
    word: "server-memory",
};

/// A modern server of PyPI, which has none.
pub(crate) const TIME: Probe = Probe {
    tool: "time_get_current_time",
    word: "mcp_server_time",
};

const EVERYTHING: Probe = Probe {
    tool: "everything_echo",
    word: "server-everything",
};

/// The server behind the gate.
pub(crate) const SLOW: Probe = Probe {
    tool: "slow_list_allowed_directories",
    word: "server-filesystem",
};

impl Probe {
    fn arguments(self) -> Value {
        json!({"timezone": "UTC", "message": "hi"})
    }
}

pub(crate) async fn answers(caller: &impl Caller, probe: Probe) -> Outcome {
    let result = caller.call(probe.tool, probe.arguments(), processes::LIMIT);
    let result = result.await.map_err(|it| format!("{}: {it}", probe.tool))?;
    let text = result.to_text();
    ensure(!result.is_error, format!("{}: {text}", probe.tool))
}

pub(crate) async fn others_answer(caller: &impl Caller, failing: Probe) -> Outcome {
    for probe in [MEMORY, TIME, EVERYTHING] {
        if probe.tool != failing.tool {
            answers(caller, probe).await?;
        }
    }
    Ok(())
}

/// Stops a server: its calls end with their deadlines, and the calls of others are answered. It continues, and answers.
pub(crate) async fn stop(caller: &impl Caller, probe: Probe) -> Outcome {
    answers(caller, probe).await?;
    processes::signal("STOP", probe.word).await?;
    let call = caller.call(probe.tool, probe.arguments(), DEADLINE);
    let (ended, others) = tokio::join!(call, others_answer(caller, probe));
    others?;
    let is_timeout = ended.as_ref().is_err_and(oxmcp::Error::is_timeout);
    ensure(is_timeout, format!("{} is stopped: {ended:?}", probe.tool))?;
    processes::signal("CONT", probe.word).await?;
    answers(caller, probe).await?;
    others_answer(caller, probe).await
}

/// Kills a server, whose next calls must find it restarted.
pub(crate) async fn kill(caller: &impl Caller, probe: Probe) -> Outcome {
    answers(caller, probe).await?;
    processes::signal("KILL", probe.word).await?;
    others_answer(caller, probe).await?;
    soon(|| answers(caller, probe)).await?;
    answers(caller, probe).await
}

/// Kills a server with an open call, which fails long before its deadline.
pub(crate) async fn kill_in_a_call(caller: &impl Caller) -> Outcome {
    let arguments = json!({"duration": 600, "steps": 600});
    let tool = "everything_trigger-long-running-operation";
    let call = caller.call(tool, arguments, Duration::from_secs(500));
    let killed = async {
        others_answer(caller, EVERYTHING).await?;
        // The call is on its way.
        sleep(WHILE).await;
        processes::signal("KILL", EVERYTHING.word).await
    };
    let both = async { tokio::join!(call, killed) };
    let (ended, killed) = tokio::time::timeout(processes::LIMIT, both).await?;
    killed?;
    ensure(ended.is_err(), format!("the server was killed: {ended:?}"))?;
    soon(|| answers(caller, EVERYTHING)).await
}

/// A server that starts only once its gate is open.
pub(crate) struct Gate(PathBuf);

impl Gate {
    pub(crate) fn new(servers: &Servers) -> Self {
        Self(servers.scratch.join("gate"))
    }

    pub(crate) fn open(&self) -> Outcome {
        fs::write(&self.0, "").map_err(Into::into)
    }

    pub(crate) fn close(&self) -> Outcome {
        fs::remove_file(&self.0).map_err(Into::into)
    }
}

/// The server behind the gate blocks only its own calls.
pub(crate) async fn start_slowly(caller: &impl Caller, gate: &Gate) -> Outcome {
    let call = answers(caller, SLOW);
    tokio::pin!(call);
    select! {
        ended = &mut call => return Err(format!("the server has not started: {ended:?}").into()),
        others = others_answer(caller, SLOW) => others?,
    }
    gate.open()?;
    call.await
}
