//! The processes that this one has started, and signals for them.

use std::{process, time::Duration};

use tokio::{
    process::Command,
    time::{sleep, timeout},
};

use crate::servers::{Outcome, ensure};

/// The time limit for whatever processes need to do.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The pause between two looks at the processes.
const PAUSE: Duration = Duration::from_millis(50);

/// The running children with a word in their command lines.
pub(crate) async fn with(word: &str) -> Outcome<Vec<String>> {
    let mut ps = Command::new("ps");
    ps.args(["-A", "-o", "pid=,ppid=,stat=,args="]);
    let listed = String::from_utf8_lossy(&ps.output().await?.stdout).into_owned();
    let own = process::id().to_string();
    let found = listed.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (pid, parent, state) = (words.next()?, words.next()?, words.next()?);
        let is_ps = words.next() == Some("ps");
        let is_it = parent == own && !state.starts_with('Z') && !is_ps && line.contains(word);
        is_it.then(|| pid.to_owned())
    });
    Ok(found.collect())
}

/// Sends a signal to all children with a word in their command lines. Returns their number.
pub(crate) async fn signal(name: &str, word: &str) -> Outcome<usize> {
    let found = with(word).await?;
    let mut kill = Command::new("kill");
    let status = kill.arg("-s").arg(name).args(&found).status().await?;
    ensure(
        status.success(),
        format!("could not send {name} to {word}: {found:?}"),
    )?;
    Ok(found.len())
}

/// Tries until it succeeds.
pub(crate) async fn soon<F: Future<Output = Outcome>>(mut attempt: impl FnMut() -> F) -> Outcome {
    let mut last = String::new();
    let tries = async {
        while let Err(error) = attempt().await {
            last = error.to_string();
            sleep(PAUSE).await;
        }
    };
    let ended = timeout(LIMIT, tries).await;
    ended.map_err(|_| format!("not within {LIMIT:?}: {last}").into())
}

/// Waits until all children have ended.
pub(crate) async fn none_left() -> Outcome {
    soon(async || {
        let left = with("").await?;
        ensure(left.is_empty(), format!("processes are left: {left:?}"))
    })
    .await
}
