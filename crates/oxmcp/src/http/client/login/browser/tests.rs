//! Tests of prompts, on a machine without screen and keyboard.

use std::collections::VecDeque;

use super::*;
use crate::sync::Mutex;

/// A machine on which a person types the lines of a list.
struct Fake {
    reach: Reach,
    fails: bool,
    typed: Mutex<VecDeque<&'static str>>,
    opened: Arc<Mutex<Vec<String>>>,
    printed: Arc<Mutex<String>>,
}

impl Fake {
    fn new(opens: bool, shows: bool, reads: bool) -> Self {
        Self {
            reach: Reach {
                opens,
                shows,
                reads,
            },
            fails: false,
            typed: Mutex::default(),
            opened: Arc::default(),
            printed: Arc::default(),
        }
    }
}

impl Machine for Fake {
    fn reach(&self) -> Reach {
        self.reach
    }

    fn open(&self, url: String) -> BoxFuture<io::Result<()>> {
        self.opened.lock().push(url);
        let result = match self.fails {
            true => Err(io::Error::other("the screen is dark")),
            false => Ok(()),
        };
        Box::pin(async { result })
    }

    fn print(&self, text: &str) {
        self.printed.lock().push_str(text);
    }

    fn line(&self) -> BoxFuture<Option<String>> {
        let line = self.typed.lock().pop_front().map(str::to_owned);
        Box::pin(async { line })
    }
}

const URL: &str = "https://as.example/authorize?client_id=a&state=right";

fn is_for_a_person(error: &Error) -> bool {
    let source = std::error::Error::source(error).unwrap();
    let error: &AuthError = source.downcast_ref().unwrap();
    error.kind() == oxmcp_auth::AuthErrorKind::InteractionRequired
}

#[tokio::test]
async fn page_is_opened_and_printed() {
    let fake = Fake::new(true, true, true);
    let (opened, printed) = (Arc::clone(&fake.opened), Arc::clone(&fake.printed));
    let browser = Browser::new(fake);
    browser.check().unwrap();
    browser.show(URL.to_owned()).await.unwrap();
    assert_eq!(*opened.lock(), [URL]);
    let printed = printed.lock();
    assert!(
        printed.contains(URL) && printed.contains("paste"),
        "{printed}"
    );
}

#[tokio::test]
async fn page_is_only_printed_without_a_browser() {
    let fake = Fake::new(false, true, false);
    let (opened, printed) = (Arc::clone(&fake.opened), Arc::clone(&fake.printed));
    let browser = Browser::new(fake);
    browser.check().unwrap();
    browser.show(URL.to_owned()).await.unwrap();
    assert!(opened.lock().is_empty());
    let printed = printed.lock();
    assert!(
        printed.contains(URL) && !printed.contains("paste"),
        "{printed}"
    );
}

#[tokio::test]
async fn login_fails_at_once_without_a_user() {
    let browser = Browser::new(Fake::new(false, false, false));
    assert!(is_for_a_person(&browser.check().unwrap_err()));
    for (shows, is_ok) in [(false, false), (true, true)] {
        let mut fake = Fake::new(true, shows, false);
        fake.fails = true;
        let result = Browser::new(fake).show(URL.to_owned()).await;
        assert_eq!(result.is_ok(), is_ok);
        if let Err(error) = result {
            assert!(is_for_a_person(&error));
            let text = error.message();
            assert!(
                text.contains("the screen is dark") && text.contains("BROWSER"),
                "{text}"
            );
        }
    }
}

// Attack: a URL that is dangerous to open.
#[tokio::test]
async fn only_web_pages_are_opened() {
    for url in [
        "file:///etc/passwd?state=right",
        "javascript:alert(1)",
        "http://as.example/authorize?state=right",
        "--help",
        "",
    ] {
        let fake = Fake::new(true, true, false);
        let (opened, printed) = (Arc::clone(&fake.opened), Arc::clone(&fake.printed));
        assert!(
            Browser::new(fake).show(url.to_owned()).await.is_err(),
            "{url}"
        );
        assert!(opened.lock().is_empty() && printed.lock().is_empty());
    }
    let loopback = "http://127.0.0.1:9/authorize?state=right";
    let browser = Browser::new(Fake::new(true, true, false));
    browser.show(loopback.to_owned()).await.unwrap();
}

#[tokio::test]
async fn pasted_text_is_an_answer_with_matching_state() {
    let right = " http://127.0.0.1:1/callback?code=x&state=right#top \n";
    let fake = Fake::new(true, true, true);
    let printed = Arc::clone(&fake.printed);
    fake.typed.lock().extend([
        "\n",
        "no\n",
        "http://127.0.0.1:1/callback?code=x&state=wrong",
        right,
    ]);
    let answer = Browser::new(fake).pasted(Secret::new("right")).await;
    assert_eq!(answer, right.trim());
    let printed = printed.lock();
    assert_eq!(printed.matches("not the address").count(), 2, "{printed}");
}

#[tokio::test]
async fn closed_terminal_leaves_login_to_the_browser() {
    let browser = Browser::new(Fake::new(true, true, true));
    let mut pasted = browser.pasted(Secret::new("right"));
    assert!(futures_util::poll!(&mut pasted).is_pending());
}

#[test]
fn environment_decides_whether_pages_open() {
    use Desktop::{Named, OfSystem};
    for (desktop, variables, opens) in [
        (Named, &[][..], false),
        (Named, &[("DISPLAY", ":0")], true),
        (Named, &[("DISPLAY", "")], false),
        (Named, &[("WAYLAND_DISPLAY", "wayland-0")], true),
        (Named, &[("WSL_DISTRO_NAME", "Debian")], true),
        (Named, &[("DISPLAY", ":0"), ("CI", "true")], false),
        (Named, &[("DISPLAY", ":0"), ("CI", "false")], true),
        (Named, &[("BROWSER", "firefox"), ("CI", "1")], true),
        (Named, &[("BROWSER", "")], false),
        (OfSystem, &[], true),
        (OfSystem, &[("CI", "true")], false),
        (OfSystem, &[("SSH_CONNECTION", "10.0.0.1")], false),
        (
            OfSystem,
            &[("SSH_CONNECTION", "10.0.0.1"), ("BROWSER", "open")],
            true,
        ),
    ] {
        let variable = |name: &str| {
            let mut given = variables.iter().filter(|(it, _)| *it == name);
            given.next().map(|(_, value)| OsString::from(value))
        };
        assert_eq!(
            opens_pages(desktop, variable),
            opens,
            "{desktop:?} {variables:?}"
        );
    }
}
