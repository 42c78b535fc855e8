//! The terminal: notes on stderr, progress, and whether a person can answer questions.

use std::{
    io::{IsTerminal, Write, stderr, stdin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::signal;

use crate::{
    args::Global,
    escape,
    failure::{Failure, Reason, Result},
};

/// The terminal of the command, or its absence.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    is_quiet: bool,
    verbosity: u8,
    has_person: bool,
    /// Whether a line may be overwritten, as progress is.
    is_live: bool,
    /// Whether a question had no answer because there was nobody to ask.
    lacked_person: Arc<AtomicBool>,
}

impl Terminal {
    pub(crate) fn new(global: &Global) -> Self {
        let is_live = stderr().is_terminal();
        Self {
            is_quiet: global.quiet,
            verbosity: global.verbose,
            has_person: is_live && stdin().is_terminal(),
            is_live: is_live && !global.quiet,
            lacked_person: Arc::default(),
        }
    }

    /// Whether somebody can answer questions.
    pub(crate) fn has_person(&self) -> bool {
        self.has_person
    }

    /// Records that a question had no answer because there was nobody to ask.
    pub(crate) fn lack_person(&self) {
        self.lacked_person.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lacked_person(&self) -> bool {
        self.lacked_person.load(Ordering::Relaxed)
    }

    /// Asks a question to be answered with yes or no.
    ///
    /// # Errors
    /// There is nobody to ask, or the user interrupts the command. The remedy says how to do without the question.
    pub(crate) fn confirm(&self, question: &str, remedy: &str) -> Result<bool> {
        if !self.has_person() {
            let message = format!("there is no terminal to answer {question:?}; {remedy}");
            return Err(Failure::new(Reason::PersonNeeded, message));
        }
        dialoguer::Confirm::new()
            .with_prompt(question)
            .default(false)
            .interact()
            .map_err(|_| Failure::new(Reason::Interrupted, "interrupted"))
    }

    /// Prints a note, unless the command is quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_quiet {
            print(&format!("oxmcp: {}\n", escape::line(text)));
        }
    }

    /// Prints a line of the server's own output, if that is wanted.
    pub(crate) fn detail(&self, source: &str, line: &str) {
        if self.verbosity > 0 {
            print(&format!("[{source}] {}\n", escape::line(line)));
        }
    }

    /// Prints a message of the connection, if that is wanted.
    pub(crate) fn wire(&self, line: &str) {
        if self.verbosity > 1 {
            print(&format!("{}\n", escape::line(line)));
        }
    }

    /// Whether messages of the connection are printed.
    pub(crate) fn shows_wire(&self) -> bool {
        self.verbosity > 1
    }

    /// Shows progress: it overwrites its line on a terminal, and is left out elsewhere.
    pub(crate) fn progress(&self, text: &str) {
        if self.is_live {
            print(&format!("\r\u{1b}[K{}", escape::line(text)));
        }
    }

    /// Removes the line of the progress.
    pub(crate) fn end_progress(&self) {
        if self.is_live {
            print("\r\u{1b}[K");
        }
    }
}

/// A note that cannot be written is lost: there is no other place for it.
fn print(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Waits for Ctrl-C, or for the signal by which services are stopped.
pub(crate) async fn stopped() {
    #[cfg(unix)]
    if let Ok(mut terminated) = signal::unix::signal(signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
        return;
    }
    // Without signals, the program runs until it is killed.
    let _ = signal::ctrl_c().await;
}
