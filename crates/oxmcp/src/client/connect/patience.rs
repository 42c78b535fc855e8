//! The timeouts of a server that is being connected to.

use std::{future::pending, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    client::session::ClientSession,
    error::{Error, Result},
    session::task::after,
    transport::traits::Startup,
};

/// The longest time that the start of a server may take, whatever it writes meanwhile.
pub(crate) const LONGEST_START: Duration = Duration::from_secs(5 * 60);
/// The time after which a warning is logged that names the silent server.
const SAY_SO: Duration = Duration::from_secs(10);

/// Waits until a session is opened, but no longer than its server may take to start.
pub(crate) async fn opened_in_time(
    opening: impl Future<Output = Result<ClientSession>>,
    startup: Option<Startup>,
    server: String,
) -> Result<ClientSession> {
    let say_so = async {
        sleep(SAY_SO).await;
        tracing::warn!(server, "still waiting for the first response of the server");
        pending().await
    };
    let give_up = async {
        let Some(startup) = &startup else {
            return pending().await;
        };
        let begun = Instant::now();
        let last = begun + LONGEST_START;
        loop {
            let deadline = after(startup.last_activity(), startup.timeout()).min(last);
            if Instant::now() >= deadline {
                return given_up(begun, startup);
            }
            sleep_until(deadline).await;
        }
    };
    tokio::select! {
        biased;
        opened = opening => opened,
        error = give_up => Err(error),
        error = say_so => Err(error),
    }
}

fn given_up(begun: Instant, startup: &Startup) -> Error {
    let (limit, waited) = (startup.timeout(), begun.elapsed());
    Error::timeout(format!(
        "the server did not respond within {waited:.0?} after its start: the limit is {limit:?} without output \
         (`Command::start_timeout`) and {LONGEST_START:?} in total"
    ))
}
