//! A task that adds numbers for tools, so that a tool can wait for another task.

use tokio::sync::{mpsc, oneshot};

/// Two numbers, and the channel for their sum.
type Question = (i64, i64, oneshot::Sender<i64>);

/// A handle to the task that adds.
#[derive(Clone, Debug)]
pub struct Adder(mpsc::Sender<Question>);

impl Adder {
    /// Starts the task on the runtime of this thread.
    #[must_use]
    pub fn start() -> Self {
        let (ask, mut asked) = mpsc::channel::<Question>(1024);
        tokio::spawn(async move {
            while let Some((a, b, answer)) = asked.recv().await {
                // A handler that was cancelled needs no sum.
                let _ = answer.send(a.saturating_add(b));
            }
        });
        Self(ask)
    }

    /// Asks the task, and waits for the sum. `None` if the runtime ends.
    pub async fn add(&self, a: i64, b: i64) -> Option<i64> {
        let (answer, answered) = oneshot::channel();
        self.0.send((a, b, answer)).await.ok()?;
        answered.await.ok()
    }
}
