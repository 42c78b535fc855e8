//! Lines of the terminal, which are read only while a login waits.
//!
//! The program may read standard input itself, before and after: nothing is read ahead of a line, and no thread remains that would
//! take the next one.

#[cfg(unix)]
use std::io::{self, ErrorKind, IsTerminal};

#[cfg(unix)]
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Mode, OFlags},
    process::getpgrp,
    termios::{LocalModes, tcgetattr, tcgetpgrp, ttyname},
};
#[cfg(unix)]
use tokio::net::unix::pipe::Receiver;

/// The maximum length of a line, in bytes; terminals accept no longer lines.
#[cfg(unix)]
const MAX_LINE: usize = 4096;

/// Whether standard input is a terminal.
#[cfg(unix)]
pub(crate) fn is_input() -> bool {
    io::stdin().is_terminal()
}

/// The next line of standard input, if that is a terminal that gives whole lines to this program; otherwise `None`.
#[cfg(unix)]
pub(crate) async fn line() -> Option<String> {
    if !is_input() {
        return None;
    }
    line_of(open(io::stdin())?).await
}

/// Reopens a terminal: `O_NONBLOCK` belongs to the open file description, and that of standard input is shared with the program
/// and with the shell.
#[cfg(unix)]
fn open(terminal: impl AsFd) -> Option<OwnedFd> {
    let path = ttyname(terminal, Vec::new()).ok()?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path.as_c_str(), flags, Mode::empty()).ok()
}

#[cfg(unix)]
async fn line_of(terminal: OwnedFd) -> Option<String> {
    // The terminal is not a pipe, but waits and reads are the same calls.
    let input = Receiver::from_owned_fd_unchecked(terminal).ok()?;
    let mut line = [0; MAX_LINE];
    loop {
        input.readable().await.ok()?;
        if !gives_lines(&input) {
            return None;
        }
        match input.try_read(&mut line) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The end of input, which a person can type, too.
            Ok(0) | Err(_) => return None,
            Ok(length) => {
                let line = line.get(..length).unwrap_or_default();
                return Some(String::from_utf8_lossy(line).into_owned());
            }
        }
    }
}

/// Whether a read returns a whole line: in a program that reads single keys, the read would take those. A process in the background
/// would be stopped by the read.
#[cfg(unix)]
fn gives_lines(terminal: impl AsFd) -> bool {
    let terminal = terminal.as_fd();
    let modes = tcgetattr(terminal).map(|it| it.local_modes);
    let is_background = tcgetpgrp(terminal).is_ok_and(|group| group != getpgrp());
    modes.is_ok_and(|it| it.contains(LocalModes::ICANON)) && !is_background
}

/// Whether lines are read from standard input. Never on this system, because a read cannot be taken back.
#[cfg(not(unix))]
pub(crate) fn is_input() -> bool {
    false
}

#[cfg(not(unix))]
pub(crate) async fn line() -> Option<String> {
    None
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use futures_util::poll;
    use rustix::{
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
        termios::{OptionalActions, tcsetattr},
    };

    use super::*;

    /// A terminal: the side on which a person types, and the side that programs read.
    fn terminal() -> (OwnedFd, OwnedFd) {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let path = ptsname(&person, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let program = rustix::fs::open(path.as_c_str(), flags, Mode::empty()).unwrap();
        (person, program)
    }

    fn read(program: &OwnedFd) -> String {
        let mut bytes = [0; 100];
        let length = rustix::io::read(program, &mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[tokio::test]
    async fn one_line_is_read_and_later_ones_left() {
        let (person, program) = terminal();
        rustix::io::write(&person, b"pasted\nfor the program\n").unwrap();
        let line = line_of(open(&program).unwrap()).await;
        assert_eq!(line.as_deref(), Some("pasted\n"));
        assert_eq!(read(&program), "for the program\n");
    }

    #[tokio::test]
    async fn reading_stops_when_the_wait_ends() {
        let (person, program) = terminal();
        {
            let mut waiting = Box::pin(line_of(open(&program).unwrap()));
            assert!(poll!(&mut waiting).is_pending());
        }
        rustix::io::write(&person, b"typed later\n").unwrap();
        assert_eq!(read(&program), "typed later\n");
    }

    #[tokio::test]
    async fn single_keys_are_not_consumed() {
        let (person, program) = terminal();
        let mut modes = tcgetattr(&program).unwrap();
        modes.make_raw();
        tcsetattr(&program, OptionalActions::Now, &modes).unwrap();
        rustix::io::write(&person, b"q").unwrap();
        assert_eq!(line_of(open(&program).unwrap()).await, None);
        assert_eq!(read(&program), "q");
    }
}
