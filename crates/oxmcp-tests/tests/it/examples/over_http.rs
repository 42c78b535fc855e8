//! The examples over HTTP.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use super::{prints, program};

/// A program that is killed at the end of the test, whatever its outcome.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn http_server_and_client() {
    let (name, address) = ("http_server", "127.0.0.1:0");
    let mut command = Command::new(program(name));
    let mut server = Running(command.arg(address).stdout(Stdio::piped()).spawn().unwrap());
    let mut url = String::new();
    let output = server.0.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut url).unwrap();

    insta::assert_snapshot!(prints(("http_client", &[url.trim()])), @r"
    It speaks MCP 2026-07-28.
    brew: Brew tea, one cup at a time
      1/3
      2/3
      3/3
    => 3 cups of tea
    ");
}

#[cfg(feature = "auth")]
#[test]
fn protected_server() {
    insta::assert_snapshot!(prints(("protected_server", &[])), @r"
    without a token: refused: true
    with files:read: whoami => ann
    with files:read: delete refused: true
    with files:write: delete => deleted
    ");
}

#[cfg(feature = "auth")]
#[test]
fn own_tokens() {
    insta::assert_snapshot!(prints(("own_tokens", &[])), @r#"
    /mcp: Some("ann") may delete: true
    /mcp: Some("bob") may delete: false
    /mcp: refused with Some(401)
    /inside: Some("carol") may delete: true
    "#);
}

#[cfg(feature = "auth")]
#[test]
fn machine_to_machine() {
    insta::assert_snapshot!(prints(("machine_to_machine", &[])), @"a machine, with scopes reports:write");
}

#[cfg(feature = "auth")]
#[test]
fn step_up() {
    insta::assert_snapshot!(prints(("step_up", &[])), @r"
      the user is asked for read
    read:
    write:
      the user is asked for read+write
    read:
    delete:
      the user is asked for read+write+delete
    granted scopes: read write delete
    ");
}

#[cfg(feature = "auth")]
#[test]
fn web_login() {
    insta::assert_snapshot!(prints(("web_login", &[])), @r"
    ann must log in
    ann is logged in as ann
    bob must log in
    bob is logged in as bob
    ann is logged in as ann
    ");
}

/// The browser that `BROWSER` names: this program, started with the page as its last argument.
#[cfg(all(feature = "auth", target_os = "linux"))]
mod browser {
    use std::env;

    use ::http::{Request, header::LOCATION};
    use bytes::Bytes;
    use oxmcp::http::{DefaultClient, HttpClient};

    use super::{BufRead, BufReader, Command, Running, Stdio, program};

    const ROLE: &str = "OXMCP_TEST_BROWSER";

    #[tokio::test]
    #[ignore = "another test starts it"]
    async fn follows_redirects() {
        if crate::child::role(ROLE).is_none() {
            return;
        }
        let client = DefaultClient::new();
        let mut page = env::args().next_back().unwrap();
        loop {
            let request = Request::get(&page).body(Bytes::new()).unwrap();
            let response = client.send(request).await.unwrap();
            match response.headers().get(LOCATION) {
                Some(to) => to.to_str().unwrap().clone_into(&mut page),
                None => break,
            }
        }
    }

    #[test]
    fn login() {
        let (name, serve) = ("protected_server", "serve");
        let mut command = Command::new(program(name));
        let mut server = Running(command.arg(serve).stdout(Stdio::piped()).spawn().unwrap());
        let mut url = String::new();
        let output = server.0.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut url).unwrap();

        // A colon would start the next browser of the list.
        let test = "examples::over_http::browser::follows_redirects".replace(':', "%c");
        let this = env::current_exe().unwrap();
        let browser = format!("{} --exact {test} --include-ignored %s", this.display());
        let (name, url) = ("login", url.trim());
        let mut command = Command::new(program(name));
        command.arg(url).stdin(Stdio::null());
        command.env("BROWSER", browser).env(ROLE, "");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap(), @r"
        logged in as ann
        granted scopes: files:read files:write
        logged out: true
        ");
        // Two pages were shown: one to log in, and one to agree to more.
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.matches("/issuer/authorize?").count(), 2, "{said}");
    }

    /// A login that no user can complete does not wait for one.
    #[test]
    fn login_without_browser_or_terminal_fails_at_once() {
        let mut command = Command::new(program("protected_server"));
        let mut server = Running(command.arg("serve").stdout(Stdio::piped()).spawn().unwrap());
        let mut url = String::new();
        let output = server.0.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut url).unwrap();
        let mut command = Command::new(program("login"));
        command.arg(url.trim()).stdin(Stdio::null());
        command.env_remove("BROWSER").env("CI", "true");
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains("BROWSER"),
            "{said}"
        );
    }
}

#[test]
fn axum() {
    insta::assert_snapshot!(prints(("axum", &[])), @r"
    /health: ok
    /mcp: 3 / 4 => 0.75
    ");
}
