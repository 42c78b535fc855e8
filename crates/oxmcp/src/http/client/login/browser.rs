//! Prompts of a login, which show its page to a person, and read an answer that the person enters by hand.

mod terminal;

use std::{
    env,
    ffi::OsString,
    future::pending,
    io::{self, IsTerminal, Write},
    sync::Arc,
};

use oxmcp_auth::{AuthError, Secret, UrlRules};
use tokio::task::spawn_blocking;

use crate::{
    error::{Error, Result},
    session::task::BoxFuture,
};

/// The prompt of a login whose answer arrives at a listener.
pub(crate) trait Prompt: Send + Sync {
    /// Fails if no person can be asked.
    fn check(&self) -> Result<()>;

    /// Shows the page.
    fn show(&self, url: String) -> BoxFuture<Result<()>>;

    /// The answer with this `state`, if the person enters one by hand; otherwise it stays pending.
    fn pasted(&self, state: Secret) -> BoxFuture<String>;
}

/// A prompt that uses the program's own opener.
pub(crate) struct Opener<F>(pub(crate) F);

impl<F: Fn(String) -> BoxFuture<Result<()>> + Send + Sync> Prompt for Opener<F> {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn show(&self, url: String) -> BoxFuture<Result<()>> {
        self.0(url)
    }

    fn pasted(&self, _: Secret) -> BoxFuture<String> {
        Box::pin(pending())
    }
}

/// The ways to reach a person.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// A browser can be opened.
    opens: bool,
    /// Standard error is a terminal, which shows the URL.
    shows: bool,
    /// Standard input is a terminal, where an answer can be pasted.
    reads: bool,
}

/// A machine with a browser and a terminal, which tests replace.
pub(crate) trait Machine: Send + Sync + 'static {
    fn reach(&self) -> Reach;
    /// Opens a page in a browser.
    fn open(&self, url: String) -> BoxFuture<io::Result<()>>;
    /// Writes to standard error.
    fn print(&self, text: &str);
    /// The next line of the terminal; `None` if none can be read.
    fn line(&self) -> BoxFuture<Option<String>>;
}

/// A prompt that uses the browser and the terminal of a machine.
pub(crate) struct Browser<M>(Arc<M>);

impl<M: Machine> Browser<M> {
    pub(crate) fn new(machine: M) -> Self {
        Self(Arc::new(machine))
    }
}

impl<M: Machine> Prompt for Browser<M> {
    fn check(&self) -> Result<()> {
        let reach = self.0.reach();
        if reach.opens || reach.shows {
            return Ok(());
        }
        Err(nobody("no browser can be opened"))
    }

    fn show(&self, url: String) -> BoxFuture<Result<()>> {
        let machine = Arc::clone(&self.0);
        Box::pin(async move {
            // The part after the `?` was added by this side.
            let page = url.split('?').next().unwrap_or_default();
            UrlRules::https_or_loopback().check(page, "URL of the login page")?;
            let reach = machine.reach();
            machine.print(&instructions(&url, reach));
            if !reach.opens {
                return Ok(());
            }
            match machine.open(url).await {
                Ok(()) => Ok(()),
                Err(error) if reach.shows => {
                    tracing::debug!(%error, "could not open a browser");
                    Ok(())
                }
                Err(error) => Err(nobody(&format!("no browser could be opened ({error})"))),
            }
        })
    }

    fn pasted(&self, state: Secret) -> BoxFuture<String> {
        let machine = Arc::clone(&self.0);
        Box::pin(async move {
            while let Some(line) = machine.line().await {
                let line = line.trim();
                if has_state(line, &state) {
                    return line.to_owned();
                }
                if !line.is_empty() {
                    machine.print(
                        "This is not the address of the last page of the login: that contains `code=` and `state=`.\n",
                    );
                }
            }
            pending().await
        })
    }
}

fn nobody(why: &str) -> Error {
    Error::from(AuthError::interaction_required(format!(
        "a user must log in, but {why} and there is no terminal to show the URL on; log in elsewhere with the same store, \
         name a browser in `BROWSER`, or give this program its own credentials"
    )))
}

fn instructions(url: &str, reach: Reach) -> String {
    let open = if reach.opens {
        "To log in, continue in the browser that opens now, or open this page:"
    } else {
        "To log in, open this page in a browser:"
    };
    let paste = if reach.reads {
        "\nIf the browser ends on a page that does not load, paste the address of that page here, and press Enter.\n"
    } else {
        ""
    };
    format!("{open}\n\n  {url}\n{paste}")
}

/// Whether a URL, or only its query, is the answer to the request with this `state`.
fn has_state(answer: &str, state: &Secret) -> bool {
    let query = answer.split_once('?').map_or(answer, |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.any(|(name, value)| name == "state" && Secret::from(&*value) == *state)
}

/// The machine that the program runs on.
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn reach(&self) -> Reach {
        Reach {
            opens: opens_pages(Desktop::of_this_system(), |name| env::var_os(name)),
            shows: io::stderr().is_terminal(),
            reads: terminal::is_input(),
        }
    }

    fn open(&self, url: String) -> BoxFuture<io::Result<()>> {
        Box::pin(async move {
            let opened = spawn_blocking(move || webbrowser::open(&url));
            opened.await.map_err(io::Error::other)?
        })
    }

    fn print(&self, text: &str) {
        // Without standard error, the text has no reader.
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn line(&self) -> BoxFuture<Option<String>> {
        Box::pin(terminal::line())
    }
}

/// The window system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Desktop {
    /// On a display that the environment names: X11 or Wayland.
    Named,
    /// By the operating system itself.
    OfSystem,
}

impl Desktop {
    const fn of_this_system() -> Self {
        let is_of_system = cfg!(any(
            windows,
            target_vendor = "apple",
            target_os = "android",
            target_os = "haiku"
        ));
        if is_of_system {
            Self::OfSystem
        } else {
            Self::Named
        }
    }
}

/// Whether a person sees a page that is opened, as far as the environment tells.
fn opens_pages(desktop: Desktop, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    if is_set("BROWSER") {
        return true;
    }
    if variable("CI").is_some_and(|it| !it.is_empty() && it != "false" && it != "0") {
        return false;
    }
    match desktop {
        Desktop::Named => ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]
            .into_iter()
            .any(is_set),
        Desktop::OfSystem => !is_set("SSH_CONNECTION"),
    }
}

#[cfg(test)]
mod tests;
