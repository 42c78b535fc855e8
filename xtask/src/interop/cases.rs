//! The interop cases, one a line. To add one, add a line.

use Over::{
    Http, Http2, Https, Login, Nginx, NginxTls, Nodes, Proxy, Remote, RemoteLogin, Rolling, Sse,
    Tunnel,
};
use Runtime::{FastMcp, FastMcpSkills, Node, Ours, Python1, Python2};

/// A program that runs a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runtime {
    Node,
    Python1,
    Python2,
    /// Python, with FastMCP.
    FastMcp,
    /// Python, with a newer FastMCP, which has skills.
    FastMcpSkills,
    /// The script is a program of `interop/src/bin`.
    Ours,
}

/// How client and server reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The client starts the server.
    Stdio,
    Http,
    /// The HTTP of 2024-11-05.
    Sse,
    /// The client starts `mcp-remote`, which reaches the server over HTTP.
    Remote,
    /// Over HTTP, with nginx in front of the server.
    Nginx,
    /// Over HTTP, with two nodes of the server, which share a Redis. The client makes events happen to the nodes; see
    /// `interop/nodes.mjs`.
    Nodes,
    /// Over HTTP, with three nodes of the server behind nginx, which share a Redis. All nodes are restarted one after the other, and
    /// Redis fails; see `interop/clients/rolling.mjs`.
    Rolling,
    /// Over HTTP/1.1 with TLS, with Node in front of the server.
    Https,
    /// Over HTTP/2 with TLS, with Node in front of the server.
    Http2,
    /// Over HTTP/2 with TLS, or over HTTP/1.1 if the client does not speak HTTP/2, with nginx in front of the server.
    NginxTls,
    /// Over HTTP, by way of a proxy.
    Proxy,
    /// Over HTTP/2 with TLS, by way of a proxy.
    Tunnel,
    /// Over HTTP, with tokens of this kind by the authorization server in `interop/authorization/issuer.mjs`.
    Login(&'static str),
    /// The client starts `mcp-remote`, which logs in, and reaches the server over HTTP.
    RemoteLogin,
}

/// The advice that our client prints if it does not know the issuer of a certificate.
const ADVICE: &str = "SSL_CERT_FILE";

impl Over {
    pub(crate) fn needs_nginx(self) -> bool {
        matches!(self, Nginx | NginxTls | Rolling)
    }

    pub(crate) fn needs_redis(self) -> bool {
        matches!(self, Nodes | Rolling)
    }

    /// The texts in the transcript by which the connection is recognized if the client is ours.
    pub(crate) fn signs(self) -> &'static [&'static str] {
        match self {
            Https => &[" HTTP/1.1 ", ADVICE],
            Http2 => &[" HTTP/2.0 ", ADVICE],
            NginxTls => &["x-front-protocol=HTTP/2.0", ADVICE],
            Proxy => &["by way of the proxy: a request"],
            Tunnel => &["by way of the proxy: a tunnel", " HTTP/2.0 ", ADVICE],
            _ => &[],
        }
    }
}

/// The arguments of our server as a gateway, without the servers behind it.
const GATEWAY: &[&str] = &["gateway"];

/// A third-party client that talks to our server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    /// The revision that must be spoken.
    pub(crate) revision: &'static str,
    pub(crate) runtime: Runtime,
    /// The path of the script within `interop/`.
    pub(crate) script: &'static str,
    /// The argument that the script calls MODE.
    pub(crate) mode: &'static str,
    pub(crate) over: Over,
    /// Whether the client gives the server time to exit; the oldest clients kill it.
    pub(crate) waits: bool,
    /// Whether third-party servers have the features that the client needs, so that they can stand in for ours.
    pub(crate) has_twin: bool,
    /// The arguments of our server over stdio.
    pub(crate) serves: &'static [&'static str],
}

impl Client {
    const fn without_twin(mut self) -> Self {
        self.has_twin = false;
        self
    }

    /// For a proxy of our server.
    const fn of_proxy(mut self) -> Self {
        self.serves = &["proxy"];
        self.without_twin()
    }

    /// For a gateway of the servers in `interop/servers.json`.
    const fn of_gateway(mut self) -> Self {
        self.serves = GATEWAY;
        self.without_twin()
    }

    pub(crate) fn is_gateway(&self) -> bool {
        self.serves == GATEWAY
    }

    /// For our server with skills, which has nothing else.
    const fn of_skills(mut self) -> Self {
        self.serves = &["skills"];
        self.without_twin()
    }

    const fn that_kills(mut self) -> Self {
        self.waits = false;
        self
    }

    const fn over(mut self, over: Over) -> Self {
        self.over = over;
        self
    }
}

/// A third-party server that our client talks to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    /// The revision that must be spoken.
    pub(crate) revision: &'static str,
    pub(crate) runtime: Runtime,
    /// A script within `interop/`, and its arguments. `{port}` stands for the port that it listens on.
    pub(crate) program: &'static [&'static str],
    pub(crate) over: Over,
    /// The tasks of our client, in the words of `interop-client`.
    pub(crate) tasks: &'static [&'static [&'static str]],
    /// The texts that must be in the transcript, which also records the requests to the authorization server.
    pub(crate) says: &'static [&'static str],
}

impl Server {
    const fn that_says(mut self, says: &'static [&'static str]) -> Self {
        self.says = says;
        self
    }

    const fn over(mut self, over: Over) -> Self {
        self.over = over;
        self
    }
}

const fn client(
    name: &'static str,
    revision: &'static str,
    runtime: Runtime,
    script: &'static str,
    mode: &'static str,
) -> Client {
    Client {
        name,
        revision,
        runtime,
        script,
        mode,
        over: Over::Stdio,
        waits: true,
        has_twin: true,
        serves: &[],
    }
}

const TS1: &str = "clients/typescript1.mjs";
const TS2: &str = "clients/typescript2.mjs";
const PY1: &str = "clients/python1.py";
const PY2: &str = "clients/python2.py";
const INSPECTOR: &str = "clients/inspector.mjs";
const TASKS: &str = "clients/tasks.mjs";
const FASTMCP: &str = "clients/fastmcp4.py";
const TS_SKILLS: &str = "clients/skills.mjs";
const INSPECTOR_SKILLS: &str = "clients/inspector-skills.mjs";
const PY_SKILLS: &str = "clients/skills.py";

#[rustfmt::skip]
pub(crate) const CLIENTS: &[Client] = &[
    client("typescript-1.9-client", "2024-11-05", Node, TS1, "sdk-2024-11-05").that_kills(),
    client("typescript-1.12-client", "2025-03-26", Node, TS1, "sdk-2025-03-26").that_kills(),
    client("typescript-1.22-client", "2025-06-18", Node, TS1, "sdk-2025-06-18").that_kills(),
    client("typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk"),
    client("typescript-2-client-legacy", "2025-11-25", Node, TS2, "legacy"),
    client("typescript-2-client-auto", "2026-07-28", Node, TS2, "auto"),
    client("typescript-2-client-modern", "2026-07-28", Node, TS2, "2026-07-28"),
    client("python-1-client", "2025-11-25", Python1, PY1, "legacy"),
    client("python-2-client-legacy", "2025-11-25", Python2, PY2, "legacy"),
    client("python-2-client-auto", "2026-07-28", Python2, PY2, "auto"),
    client("python-2-client-modern", "2026-07-28", Python2, PY2, "2026-07-28"),
    client("inspector-legacy", "2025-11-25", Node, INSPECTOR, "legacy"),
    client("inspector-modern", "2026-07-28", Node, INSPECTOR, "modern"),
    client("http-typescript-1.12-client", "2025-03-26", Node, TS1, "sdk-2025-03-26").over(Http),
    client("http-typescript-1.22-client", "2025-06-18", Node, TS1, "sdk-2025-06-18").over(Http),
    client("http-typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").over(Http),
    client("http-typescript-2-client-legacy", "2025-11-25", Node, TS2, "legacy").over(Http),
    client("http-typescript-2-client-auto", "2026-07-28", Node, TS2, "auto").over(Http),
    client("http-typescript-2-client-modern", "2026-07-28", Node, TS2, "2026-07-28").over(Http),
    client("http-python-1-client", "2025-11-25", Python1, PY1, "legacy").over(Http),
    client("http-python-2-client-legacy", "2025-11-25", Python2, PY2, "legacy").over(Http),
    client("http-python-2-client-auto", "2026-07-28", Python2, PY2, "auto").over(Http),
    client("http-python-2-client-modern", "2026-07-28", Python2, PY2, "2026-07-28").over(Http),
    client("http-inspector-legacy", "2025-11-25", Node, INSPECTOR, "legacy").over(Http),
    client("http-inspector-modern", "2026-07-28", Node, INSPECTOR, "modern").over(Http),
    client("tasks-client", "2026-07-28", Node, TASKS, "2026-07-28").without_twin(),
    client("http-tasks-client", "2026-07-28", Node, TASKS, "2026-07-28").over(Http).without_twin(),
    client("tasks-client-legacy", "2025-11-25", Node, TASKS, "legacy").without_twin(),
    client("http-tasks-client-legacy", "2025-11-25", Node, TASKS, "legacy").over(Http).without_twin(),
    client("skills-typescript-client-legacy", "2025-11-25", Node, TS_SKILLS, "legacy").of_skills(),
    client("skills-typescript-client", "2026-07-28", Node, TS_SKILLS, "auto").of_skills(),
    client("skills-fastmcp-client", "2026-07-28", FastMcpSkills, PY_SKILLS, "auto").of_skills(),
    client("skills-inspector-legacy", "2025-11-25", Node, INSPECTOR_SKILLS, "legacy").of_skills(),
    client("skills-inspector", "2026-07-28", Node, INSPECTOR_SKILLS, "modern").of_skills(),
    client("proxy-typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").of_proxy(),
    client("proxy-typescript-2-client-legacy", "2025-11-25", Node, TS2, "legacy").of_proxy(),
    client("proxy-typescript-2-client", "2026-07-28", Node, TS2, "auto").of_proxy(),
    client("proxy-python-1-client", "2025-11-25", Python1, PY1, "legacy").of_proxy(),
    client("proxy-python-2-client", "2026-07-28", Python2, PY2, "auto").of_proxy(),
    client("proxy-tasks-client", "2026-07-28", Node, TASKS, "2026-07-28").of_proxy(),
    client("proxy-tasks-client-legacy", "2025-11-25", Node, TASKS, "legacy").of_proxy(),
    client("gateway-typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").of_gateway(),
    client("gateway-typescript-2-client", "2026-07-28", Node, TS2, "auto").of_gateway(),
    client("gateway-typescript-2-client-legacy", "2025-11-25", Node, TS2, "legacy").of_gateway(),
    client("gateway-python-1-client", "2025-11-25", Python1, PY1, "legacy").of_gateway(),
    client("gateway-python-2-client", "2026-07-28", Python2, PY2, "auto").of_gateway(),
    client("gateway-python-2-client-legacy", "2025-11-25", Python2, PY2, "legacy").of_gateway(),
    client("http-mcp-remote", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").over(Remote),
    client("nginx-typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").over(Nginx),
    client("nginx-typescript-2-client", "2026-07-28", Node, TS2, "auto").over(Nginx),
    client("nginx-tls-typescript-2-client", "2026-07-28", Node, TS2, "auto").over(NginxTls),
    client("nginx-tls-python-2-client-legacy", "2025-11-25", Python2, PY2, "legacy").over(NginxTls),
    client("nodes-typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").over(Nodes).that_kills().without_twin(),
    client("nodes-typescript-2-client-legacy", "2025-11-25", Node, TS2, "legacy").over(Nodes).that_kills().without_twin(),
    client("nodes-typescript-2-client", "2026-07-28", Node, TS2, "auto").over(Nodes).that_kills().without_twin(),
    client("nodes-python-1-client", "2025-11-25", Python1, PY1, "legacy").over(Nodes).that_kills().without_twin(),
    client("nodes-python-2-client-legacy", "2025-11-25", Python2, PY2, "legacy").over(Nodes).that_kills().without_twin(),
    client("nodes-python-2-client", "2026-07-28", Python2, PY2, "auto").over(Nodes).that_kills().without_twin(),
    client("rolling-typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").over(Rolling).that_kills().without_twin(),
    client("rolling-typescript-2-client", "2026-07-28", Node, TS2, "auto").over(Rolling).that_kills().without_twin(),
    client("rolling-python-1-client", "2025-11-25", Python1, PY1, "legacy").over(Rolling).that_kills().without_twin(),
    client("rolling-python-2-client", "2026-07-28", Python2, PY2, "auto").over(Rolling).that_kills().without_twin(),
    client("rolling-fastmcp-client-legacy", "2025-11-25", FastMcp, FASTMCP, "legacy").over(Rolling).that_kills().without_twin(),
    client("rolling-fastmcp-client", "2026-07-28", FastMcp, FASTMCP, "auto").over(Rolling).that_kills().without_twin(),
    client("login-typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").over(Login("opaque")),
    client("login-typescript-2-client-legacy", "2025-11-25", Node, TS2, "legacy").over(Login("opaque")),
    client("login-typescript-2-client", "2026-07-28", Node, TS2, "auto").over(Login("opaque")),
    client("login-python-1-client", "2025-11-25", Python1, PY1, "legacy").over(Login("opaque")),
    client("login-python-2-client-legacy", "2025-11-25", Python2, PY2, "legacy").over(Login("opaque")),
    client("login-python-2-client", "2026-07-28", Python2, PY2, "auto").over(Login("opaque")),
    client("login-mcp-remote", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").over(RemoteLogin),
    client("sse-typescript-1.9-client", "2024-11-05", Node, TS1, "sdk-2024-11-05").over(Sse),
    client("sse-typescript-1.32-client", "2025-11-25", Node, TS1, "@modelcontextprotocol/sdk").over(Sse),
    client("sse-typescript-2-client", "2025-11-25", Node, TS2, "legacy").over(Sse),
    client("sse-python-1-client", "2025-11-25", Python1, PY1, "legacy").over(Sse),
    client("sse-python-2-client", "2025-11-25", Python2, PY2, "legacy").over(Sse),
];

/// Our client with all servers in `interop/servers.json` at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// The arguments of `interop-group`, without the servers.
    pub(crate) args: &'static [&'static str],
}

const fn group(name: &'static str, args: &'static [&'static str]) -> Group {
    Group { name, args }
}

#[rustfmt::skip]
pub(crate) const GROUPS: &[Group] = &[
    group("group-six-servers", &["use"]),
    group("group-failures", &["fail"]),
    group("gateway-failures", &["fail-behind", "2026-07-28"]),
    group("gateway-failures-legacy", &["fail-behind", "2025-11-25"]),
];

/// Restricts our client to the newest legacy revision.
const LEGACY: &[&str] = &["--revision", "2025-11-25"];

/// The calls of every server with the tools of `interop-server`.
#[rustfmt::skip]
const CALCULATOR: &[&str] = &[
    "--list", "add", "--list", "divide", "--list", "slow", "--list", "echo",
    "--call", "add", r#"{"a":1,"b":2}"#, "3",
    "--call", "echo", r#"{"text":"line\nbreak and 🦀"}"#, r"line\nbreak and 🦀",
    "--fail", "divide", r#"{"a":1,"b":0}"#, "b must not be 0",
    "--fail", "add", r#"{"a":"one","b":2}"#, "",
    "--progress", "slow", r#"{"steps":5}"#, "5",
    "--cancel", "slow", r#"{"steps":1000000}"#,
    "--call", "echo", r#"{"text":"still here"}"#, "still here",
];

/// Lets our client follow the calls that the server runs as tasks.
const FOLLOW: &[&str] = &["--follow"];

/// The tasks of `servers/fastmcp4.py`.
#[rustfmt::skip]
const BAKERY: &[&str] = &[
    "--call", "mill", r#"{"sacks":20}"#, "20 sacks of flour",
    "--held", "mill", r#"{"sacks":50}"#, "sack ", "50 sacks of flour",
    "--cancelled", "mill", r#"{"sacks":1000000}"#,
    "--ask", "bake", "{}",
    r#"[{"action":"accept","content":{"flour":"rye"}},{"action":"accept","content":{"loaves":3}}]"#,
    "3 loaves of rye",
    "--decline", "bake", "{}",
    "--fail", "burn", "{}", "it is burnt",
];

/// The task of `server-everything`, which takes seconds.
#[rustfmt::skip]
const RESEARCH: &[&str] = &[
    "--call", "simulate-research-query", r#"{"topic":"tea"}"#, "Research Report: tea",
    "--ask", "simulate-research-query", r#"{"topic":"python","ambiguous":true}"#,
    r#"[{"action":"accept","content":{"interpretation":"snake"}}]"#,
    "python (snake)",
    "--held", "simulate-research-query", r#"{"topic":"tea"}"#, "Gathering|Analyzing|Synthesizing|Generating", "Research Report: tea",
    "--cancelled", "simulate-research-query", r#"{"topic":"tea"}"#,
];

/// A tool that adds another tool.
#[rustfmt::skip]
const GROWING: &[&str] = &[
    "--changed", "grow", "{}",
    "--call", "grown", "{}", "here",
];

/// Prompts, resources, completion, and what the client does for the server.
#[rustfmt::skip]
const FEATURES: &[&str] = &[
    "--prompt", "review", r#"{"code":"fn main() {}","language":"rust"}"#, "Review this rust code",
    "--listed", "memo://greeting", "--listed", "memo://pages/{topic}/{page}",
    "--read", "memo://greeting", "hello",
    "--read", "memo://pixel", "AP9/",
    "--read", "memo://pages/caf%C3%A9/7", "page 7 of café",
    "--complete", "review", "language", "r", "rust",
    "--complete", "memo://pages/{topic}/{page}", "topic", "te", "teak",
    "--call", "think", r#"{"question":"why?"}"#, "the model says: because of",
    "--call", "where", "{}", "file:///home/moon",
];

/// A log of a level that the client sets, and a resource that changes.
#[rustfmt::skip]
const NEWS: &[&str] = &[
    "--log", "shout", "{}", "warning", "loud",
    "--updated", "memo://greeting", "touch", "{}",
    "--read", "memo://greeting", "hello again",
];

/// A trace that the server continues; for servers whose SDK supports OpenTelemetry.
const TRACE: &[&str] = &["--trace", "trace"];

/// A tool that asks the user two questions.
#[rustfmt::skip]
const QUESTIONS: &[&str] = &[
    "--ask", "delete", r#"{"project":"moon"}"#,
    r#"[{"action":"accept","content":{"name":"moon"}},{"action":"accept","content":{"sure":true}}]"#,
    "deleted moon, counted once",
    "--decline", "delete", r#"{"project":"moon"}"#,
];

/// More calls than an HTTP/2 connection allows at once, and more than it allows in total.
#[rustfmt::skip]
const MANY: &[&str] = &[
    "--many", "100", "echo", r#"{"text":"one of many"}"#, "one of many",
    "--many", "100", "echo", r#"{"text":"one of many"}"#, "one of many",
    "--call", "add", r#"{"a":1,"b":2}"#, "3",
];

/// Many calls at once, each of which is answered only after the client has answered a request of the server.
#[rustfmt::skip]
const MANY_THOUGHTS: &[&str] = &[
    "--many", "40", "think", r#"{"question":"why?"}"#, "the model says: because of",
];

#[rustfmt::skip]
const EVERYTHING: &[&str] = &[
    "--list", "get-sum",
    "--call", "echo", r#"{"message":"hi"}"#, "Echo: hi",
    "--call", "get-sum", r#"{"a":1,"b":2}"#, "The sum of 1 and 2 is 3.",
    "--call", "get-structured-content", r#"{"location":"New York"}"#, "humidity",
    "--fail", "get-sum", r#"{"a":"one","b":2}"#, "",
    "--fail", "no_such_tool", "{}", "not found",
    "--progress", "trigger-long-running-operation", r#"{"duration":1,"steps":4}"#, "4",
    "--prompt", "args-prompt", r#"{"city":"Oslo"}"#, "Oslo",
    "--listed", "demo://resource/static/document/features.md",
    "--listed", "demo://resource/dynamic/blob/{resourceId}",
    "--read", "demo://resource/dynamic/text/7", "Resource 7",
    "--complete", "completable-prompt", "department", "E", "Engineering",
    "--call", "get-roots-list", "{}", "file:///home/moon",
    "--call", "trigger-sampling-request", r#"{"prompt":"why?","maxTokens":10}"#, "because of",
    "--ask", "trigger-elicitation-request", "{}",
    r#"[{"action":"accept","content":{"name":"Moon","check":true,"firstLine":"It was noon."}}]"#,
    "It was noon.",
];

const PERSON: &[&str] = &["--login", "person", "{issuer}"];
/// For the Python SDK 1.x, which adds a slash to the issuer.
const PINNED: &[&str] = &["--login", "pinned", "{issuer}"];
const DOCUMENT: &[&str] = &["--login", "document", "{issuer}"];
const DOCUMENT_KEY: &[&str] = &["--login", "document-key", "{issuer}"];
const SECRET: &[&str] = &["--login", "secret", "{issuer}"];
const KEY: &[&str] = &["--login", "key", "{issuer}"];

/// Calls for which a token for `mcp:basic` suffices. The last is made after that token has expired.
#[rustfmt::skip]
const REFRESH: &[&str] = &[
    "--call", "echo", r#"{"text":"with a token"}"#, "with a token",
    "--wait", "4", "--call", "echo", r#"{"text":"with another"}"#, "with another",
];

const ASKED_ONCE: &[&str] = &["--logins", "1"];
const ASKED_NEVER: &[&str] = &["--logins", "0"];

/// A tool that needs another scope.
#[rustfmt::skip]
const STEP_UP: &[&str] = &["--call", "write", "{}", "ann writes", "--logins", "2"];
const TOUCH: &[&str] = &["--call", "touch", "{}", "touched", "--logins", "2"];
const SERVICE_STEP_UP: &[&str] = &["--call", "write", "{}", "service"];

#[rustfmt::skip]
const REPLAY: &[&str] = &[
    "--replay", "{url}", "echo", r#"{"text":"alone"}"#, "alone",
];

const REVOKE: &[&str] = &[
    "--revoke",
    "{issuer}",
    "echo",
    r#"{"text":"again"}"#,
    "again",
];

/// The server is given the directory `interop/servers`.
#[rustfmt::skip]
const FILESYSTEM: &[&str] = &[
    "--list", "read_text_file",
    "--call", "list_directory", r#"{"path":"."}"#, "[FILE] typescript2.mjs",
    "--call", "read_text_file", r#"{"path":"typescript2.mjs","head":1}"#, "A server of the TypeScript SDK 2.x",
    "--fail", "read_text_file", r#"{"path":"/etc/passwd"}"#, "Access denied",
];

const fn server(
    name: &'static str,
    revision: &'static str,
    runtime: Runtime,
    program: &'static [&'static str],
    tasks: &'static [&'static [&'static str]],
) -> Server {
    Server {
        name,
        revision,
        runtime,
        program,
        over: Over::Stdio,
        tasks,
        says: &[],
    }
}

/// The skill of `interop/skills`, which has a file with a byte order mark and line breaks of Windows.
#[rustfmt::skip]
const SKILL: &[&str] = &[
    "--skill", "skill://refunds/SKILL.md", "references/limits.md", "\u{feff}# Limits\r\n\r\nAt most 100 €.\r\n",
];
const WRONG_SIZE: &[&str] = &["--lie", "skill://refunds/SKILL.md", "size"];
const WRONG_DIGEST: &[&str] = &["--lie", "skill://refunds/SKILL.md", "digest"];
const WRONG_FRONTMATTER: &[&str] = &["--lie", "skill://refunds/SKILL.md", "frontmatter"];

const TS1_SERVER: &str = "servers/typescript1.mjs";
const TS2_SERVER: &str = "servers/typescript2.mjs";
const PY1_SERVER: &str = "servers/python1.py";
const PY2_SERVER: &str = "servers/python2.py";
const FASTMCP_SERVER: &str = "servers/fastmcp4.py";
const TS_SKILLS_SERVER: &str = "servers/skills.mjs";
const PY_SKILLS_SERVER: &str = "servers/skills.py";
const EVERYTHING_SERVER: &str =
    "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
const FILESYSTEM_SERVER: &str =
    "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";

/// The methods that a client calls if it follows a task, answers its questions and cancels it.
const TASK_EXTENSION: &[&str] = &["\"tasks/get\"", "\"tasks/update\"", "\"tasks/cancel\""];
/// The same for 2025-11-25, in which the answers are not sent by `tasks/update`.
const CORE_TASKS: &[&str] = &["\"tasks/get\"", "\"tasks/result\"", "\"tasks/cancel\""];

/// Servers of the first two revisions cannot ask the user; legacy ones of the Python SDKs take no subscriptions or no log level;
/// and a legacy one of the TypeScript SDK 2.x has no sessions, in which it could ask.
#[rustfmt::skip]
pub(crate) const SERVERS: &[Server] = &[
    server("typescript-1.9-server", "2024-11-05", Node, &[TS1_SERVER, "sdk-2024-11-05"], &[CALCULATOR, FEATURES, NEWS]),
    server("typescript-1.12-server", "2025-03-26", Node, &[TS1_SERVER, "sdk-2025-03-26"], &[CALCULATOR, FEATURES, NEWS]),
    server("typescript-1.22-server", "2025-06-18", Node, &[TS1_SERVER, "sdk-2025-06-18"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS]),
    server("typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS]),
    server("typescript-2-server", "2026-07-28", Node, &[TS2_SERVER], &[CALCULATOR, GROWING, FEATURES, NEWS, QUESTIONS]),
    server("python-1-server", "2025-11-25", Python1, &[PY1_SERVER], &[CALCULATOR, FEATURES, QUESTIONS]),
    server("python-2-server", "2026-07-28", Python2, &[PY2_SERVER], &[CALCULATOR, TRACE, FEATURES, NEWS, QUESTIONS]),
    server("server-everything", "2025-11-25", Node, &[EVERYTHING_SERVER, "stdio"], &[EVERYTHING]),
    server("tasks-fastmcp", "2026-07-28", FastMcp, &[FASTMCP_SERVER], &[FOLLOW, BAKERY]).that_says(TASK_EXTENSION),
    server("tasks-everything", "2025-11-25", Node, &[EVERYTHING_SERVER, "stdio"], &[FOLLOW, RESEARCH]).that_says(CORE_TASKS),
    server("skills-typescript-server", "2026-07-28", Node, &[TS_SKILLS_SERVER], &[SKILL]),
    server("skills-typescript-server-legacy", "2025-11-25", Node, &[TS_SKILLS_SERVER], &[LEGACY, SKILL]),
    server("skills-typescript-wrong-size", "2026-07-28", Node, &[TS_SKILLS_SERVER, "size"], &[WRONG_SIZE]),
    server("skills-typescript-wrong-digest", "2026-07-28", Node, &[TS_SKILLS_SERVER, "digest"], &[WRONG_DIGEST]),
    server("skills-typescript-wrong-frontmatter", "2026-07-28", Node, &[TS_SKILLS_SERVER, "frontmatter"], &[WRONG_FRONTMATTER]),
    server("skills-fastmcp-server", "2026-07-28", FastMcpSkills, &[PY_SKILLS_SERVER], &[SKILL]),
    server("skills-fastmcp-wrong-size", "2026-07-28", FastMcpSkills, &[PY_SKILLS_SERVER, "size"], &[WRONG_SIZE]),
    server("skills-fastmcp-wrong-digest", "2026-07-28", FastMcpSkills, &[PY_SKILLS_SERVER, "digest"], &[WRONG_DIGEST]),
    server("http-tasks-fastmcp", "2026-07-28", FastMcp, &[FASTMCP_SERVER, "http", "{port}"], &[FOLLOW, BAKERY]).over(Http).that_says(TASK_EXTENSION),
    server("http-tasks-everything", "2025-11-25", Node, &[EVERYTHING_SERVER, "streamableHttp"], &[FOLLOW, RESEARCH]).over(Http).that_says(CORE_TASKS),
    server("http-typescript-1.12-server", "2025-03-26", Node, &[TS1_SERVER, "sdk-2025-03-26", "http", "{port}"], &[CALCULATOR, FEATURES, NEWS]).over(Http),
    server("http-typescript-1.22-server", "2025-06-18", Node, &[TS1_SERVER, "sdk-2025-06-18", "http", "{port}"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS]).over(Http),
    server("http-typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "http", "{port}"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS]).over(Http),
    server("http-typescript-2-server", "2026-07-28", Node, &[TS2_SERVER, "http", "{port}"], &[CALCULATOR, GROWING, FEATURES, NEWS, QUESTIONS]).over(Http),
    server("http-python-1-server", "2025-11-25", Python1, &[PY1_SERVER, "streamable-http", "{port}"], &[CALCULATOR, FEATURES, QUESTIONS]).over(Http),
    server("http-python-2-server", "2026-07-28", Python2, &[PY2_SERVER, "streamable-http", "{port}"], &[CALCULATOR, TRACE, FEATURES, NEWS, QUESTIONS]).over(Http),
    server("http-typescript-2-server-legacy", "2025-11-25", Node, &[TS2_SERVER, "http", "{port}"], &[LEGACY, CALCULATOR]).over(Http),
    server("http-python-2-server-legacy", "2025-11-25", Python2, &[PY2_SERVER, "streamable-http", "{port}"], &[LEGACY, CALCULATOR, TRACE, FEATURES, QUESTIONS]).over(Http),
    server("http-everything", "2025-11-25", Node, &[EVERYTHING_SERVER, "streamableHttp"], &[EVERYTHING]).over(Http),
    server("https-typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "http", "{port}"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS, MANY, MANY_THOUGHTS]).over(Https),
    server("https-python-2-server", "2026-07-28", Python2, &[PY2_SERVER, "streamable-http", "{port}"], &[CALCULATOR, TRACE, FEATURES, NEWS, QUESTIONS, MANY, MANY_THOUGHTS]).over(Https),
    server("http2-typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "http", "{port}"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS, MANY, MANY_THOUGHTS]).over(Http2),
    server("http2-typescript-2-server", "2026-07-28", Node, &[TS2_SERVER, "http", "{port}"], &[CALCULATOR, GROWING, FEATURES, NEWS, QUESTIONS, MANY, MANY_THOUGHTS]).over(Http2),
    server("nginx-http2-typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "http", "{port}"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS, MANY, MANY_THOUGHTS]).over(NginxTls),
    server("nginx-http2-typescript-2-server", "2026-07-28", Node, &[TS2_SERVER, "http", "{port}"], &[CALCULATOR, GROWING, FEATURES, NEWS, QUESTIONS, MANY, MANY_THOUGHTS]).over(NginxTls),
    server("nginx-http2-python-2-server-legacy", "2025-11-25", Python2, &[PY2_SERVER, "streamable-http", "{port}"], &[LEGACY, CALCULATOR, TRACE, FEATURES, QUESTIONS, MANY]).over(NginxTls),
    server("proxy-typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "http", "{port}"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS, MANY]).over(Proxy),
    server("proxy-typescript-2-server", "2026-07-28", Node, &[TS2_SERVER, "http", "{port}"], &[CALCULATOR, GROWING, FEATURES, NEWS, QUESTIONS, MANY]).over(Proxy),
    server("tunnel-typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "http", "{port}"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS, MANY, MANY_THOUGHTS]).over(Tunnel),
    server("tunnel-python-2-server", "2026-07-28", Python2, &[PY2_SERVER, "streamable-http", "{port}"], &[CALCULATOR, TRACE, FEATURES, NEWS, QUESTIONS, MANY, MANY_THOUGHTS]).over(Tunnel),
    server("sse-typescript-1.9-server", "2024-11-05", Node, &[TS1_SERVER, "sdk-2024-11-05", "sse", "{port}"], &[CALCULATOR, FEATURES, NEWS]).over(Sse),
    server("sse-typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "sse", "{port}"], &[CALCULATOR, FEATURES, NEWS, QUESTIONS]).over(Sse),
    server("sse-python-1-server", "2025-11-25", Python1, &[PY1_SERVER, "sse", "{port}"], &[CALCULATOR, FEATURES, QUESTIONS]).over(Sse),
    server("sse-python-2-server", "2025-11-25", Python2, &[PY2_SERVER, "sse", "{port}"], &[CALCULATOR, TRACE, FEATURES, QUESTIONS]).over(Sse),
    server("sse-everything", "2025-11-25", Node, &[EVERYTHING_SERVER, "sse"], &[EVERYTHING]).over(Sse),
    server("server-filesystem", "2025-11-25", Node, &[FILESYSTEM_SERVER, "."], &[FILESYSTEM]),
    server("login-typescript-1.32-server", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "protected", "{port}", "{url}", "{issuer}"], &[PERSON, CALCULATOR, FEATURES, REFRESH, ASKED_ONCE, TOUCH]).over(Login("jwt")),
    server("login-typescript-1.32-router", "2025-11-25", Node, &[TS1_SERVER, "@modelcontextprotocol/sdk", "protected", "{port}", "{url}"], &[PERSON, CALCULATOR, FEATURES, ASKED_ONCE, TOUCH]).over(Login("jwt")),
    server("login-typescript-2-server", "2026-07-28", Node, &[TS2_SERVER, "protected", "{port}", "{url}", "{issuer}"], &[PERSON, CALCULATOR, FEATURES, QUESTIONS, REFRESH, ASKED_ONCE, TOUCH]).over(Login("jwt")),
    server("login-python-1-server", "2025-11-25", Python1, &[PY1_SERVER, "protected", "{port}", "{url}", "{issuer}"], &[PINNED, CALCULATOR, FEATURES, REFRESH, ASKED_ONCE]).over(Login("jwt")),
    server("login-python-2-server", "2026-07-28", Python2, &[PY2_SERVER, "protected", "{port}", "{url}", "{issuer}"], &[PERSON, CALCULATOR, FEATURES, QUESTIONS, REFRESH, ASKED_ONCE]).over(Login("jwt")),
    ours("oidc-provider-login", "jwt", &[PERSON, CALCULATOR, REFRESH, ASKED_ONCE, STEP_UP, REPLAY])
        .that_says(&["POST /reg of ", "authorization_code of ", "-> 403", " refresh_token of ", "-> 400 invalid_grant"]),
    ours("oidc-provider-opaque", "opaque", &[PERSON, CALCULATOR, REVOKE])
        .that_says(&["POST /token/introspection of mcp-server -> 200", "POST /token/revocation of ", "mcp-name=echo -> 401"]),
    ours("oidc-provider-dpop", "bound", &[PERSON, CALCULATOR, REFRESH, ASKED_ONCE, STEP_UP])
        .that_says(&["POST /token authorization_code of ", "-> 400 use_dpop_nonce"]),
    ours("oidc-provider-document", "jwt", &[DOCUMENT, REFRESH, ASKED_ONCE, STEP_UP])
        .that_says(&["POST /token refresh_token of https://client.example/public.json -> 200"]),
    ours("oidc-provider-document-key", "jwt", &[DOCUMENT_KEY, REFRESH, ASKED_ONCE])
        .that_says(&["POST /token refresh_token of https://client.example/key.json -> 200"]),
    ours("oidc-provider-secret", "jwt", &[SECRET, REFRESH, SERVICE_STEP_UP, ASKED_NEVER])
        .that_says(&["POST /token client_credentials of service -> 200"]),
    ours("oidc-provider-key", "jwt", &[KEY, REFRESH, SERVICE_STEP_UP, ASKED_NEVER])
        .that_says(&["POST /token client_credentials of service-key -> 200"]),
];

/// The command of our server that accepts only requests with an access token.
pub(crate) const PROTECTED: &[&str] = &[
    "interop-server",
    "protected",
    "127.0.0.1:{port}",
    "{url}",
    "{issuer}",
    "{tokens}",
];

/// A case of our own server, protected. Only the authorization server is foreign.
const fn ours(
    name: &'static str,
    tokens: &'static str,
    tasks: &'static [&'static [&'static str]],
) -> Server {
    Server {
        name,
        revision: "2026-07-28",
        runtime: Ours,
        program: PROTECTED,
        over: Login(tokens),
        tasks,
        says: &[],
    }
}

/// The server that stands in for ours when the scripts of the clients are themselves tested: the first of [`SERVERS`] over the same
/// transport that speaks the revision.
pub(crate) fn twin(client: &Client) -> Option<&'static Server> {
    let speaks =
        |server: &&Server| server.revision == client.revision || server.revision == "2026-07-28";
    let over = match client.over {
        Remote | Nginx | NginxTls => Http,
        RemoteLogin => Login("opaque"),
        over => over,
    };
    SERVERS
        .iter()
        .filter(|_| client.has_twin)
        .filter(speaks)
        .filter(|server| server.over == over)
        .find(|server| server.name.ends_with("-server"))
}
