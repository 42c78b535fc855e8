//! The terminal: notes on stderr, progress, and whether a person can answer questions.

use std::{
    fmt,
    io::{IsTerminal, Write, stderr, stdin},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::signal;

use crate::{
    args::Global,
    escape,
    failure::{Failure, Reason, Result},
};

/// A function that gets the lines of a server's own output, with their source.
type Observer = Box<dyn Fn(&str, &str) + Send + Sync>;

/// The terminal of the command, or its absence.
#[derive(Clone)]
pub(crate) struct Terminal {
    is_quiet: bool,
    verbosity: u8,
    has_person: bool,
    /// Whether a line may be overwritten, as progress is.
    is_live: bool,
    /// Whether a question had no answer because there was nobody to ask.
    lacked_person: Arc<AtomicBool>,
    observer: Arc<OnceLock<Observer>>,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").finish_non_exhaustive()
    }
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
            observer: Arc::default(),
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

    /// Prints what the user must know, even if the command is quiet.
    pub(crate) fn tell(&self, text: &str) {
        print(&format!("oxmcp: {}\n", escape::line(text)));
    }

    /// Also gives the lines of servers to a function. Only the first one counts.
    pub(crate) fn observe(&self, observer: impl Fn(&str, &str) + Send + Sync + 'static) {
        // It is called once.
        let _ = self.observer.set(Box::new(observer));
    }

    /// The same terminal, with another function that gets the lines.
    pub(crate) fn observed(&self, observer: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        let mut terminal = self.clone();
        terminal.observer = Arc::default();
        terminal.observe(observer);
        terminal
    }

    /// Prints a line of the server's own output, if that is wanted.
    pub(crate) fn detail(&self, source: &str, line: &str) {
        if let Some(observer) = self.observer.get() {
            observer(source, line);
        }
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
