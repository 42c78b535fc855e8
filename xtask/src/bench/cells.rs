//! The cells of the bench, one row each, with their goals.

/// The end of the connection that is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The server, under the neutral driver.
    Server,
    /// The client, on the raw server.
    Client,
    /// The server's memory, with sessions open.
    Memory,
    /// The memory of the Redis that nodes share.
    Stored,
}

/// A server that only we have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OurServer {
    /// The server of the other cells, with another option.
    Plain,
    /// A node that shares a store with other nodes.
    Node,
    /// A gateway in front of a server in the same process.
    Gateway,
}

/// One row of the tables.
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) side: Side,
    pub(crate) eras: &'static [&'static str],
    /// The first argument of servers and drivers.
    pub(crate) transport: &'static str,
    /// The options of the driver, or of the client.
    pub(crate) load: &'static [&'static str],
    /// The options of the server, which select its tools.
    pub(crate) server: &'static [&'static str],
    /// Our server, if the cell measures a feature that the peers lack.
    pub(crate) ours_alone: Option<OurServer>,
    /// The maximum number of rounds.
    pub(crate) most_rounds: usize,
    /// The numbers of calls of the shorter and of the longer run whose difference is counted; `None` for a cell that is not
    /// counted.
    pub(crate) counted: Option<(u64, u64)>,
    pub(crate) goals: Goals,
}

impl Cell {
    pub(crate) fn is_of_nodes(&self) -> bool {
        self.ours_alone == Some(OurServer::Node)
    }

    /// Whether the goal of this cell is a multiple of the numbers of `other`.
    pub(crate) fn needs(&self, other: &Self) -> bool {
        let beside = self.goals.beside;
        beside.is_some_and(|(name, _)| name == other.name)
    }
}

/// The goals of a cell.
#[derive(Clone, Copy, Default)]
pub(crate) struct Goals {
    /// CPU time per call, as a multiple of raw.
    pub(crate) cpu: Option<f64>,
    /// Instructions per call, as a multiple of raw.
    pub(crate) instructions: Option<f64>,
    /// Allocations per call.
    pub(crate) allocations: Option<f64>,
    /// CPU time and instructions, as a multiple of oxmcp's own numbers in another cell.
    pub(crate) beside: Option<(&'static str, f64)>,
    /// Calls in a second, as a multiple of raw.
    pub(crate) rate: Option<f64>,
    /// The memory of a session, in KiB.
    pub(crate) memory: Option<f64>,
}

const fn goals(cpu: Option<f64>, instructions: Option<f64>, allocations: Option<f64>) -> Goals {
    Goals {
        cpu,
        instructions,
        allocations,
        beside: None,
        rate: None,
        memory: None,
    }
}

const BOTH: &[&str] = &["2025", "2026"];

/// The defaults of a row.
const PLAIN: Cell = Cell {
    name: "",
    side: Side::Server,
    eras: BOTH,
    transport: "stdio",
    load: &[],
    server: &[],
    ours_alone: None,
    most_rounds: usize::MAX,
    counted: None,
    goals: goals(None, None, None),
};

const fn server(
    name: &'static str,
    load: &'static [&'static str],
    counted: Option<(u64, u64)>,
    goals: Goals,
) -> Cell {
    Cell {
        name,
        load,
        counted,
        goals,
        ..PLAIN
    }
}

const fn client(name: &'static str, load: &'static [&'static str], goals: Goals) -> Cell {
    Cell {
        name,
        side: Side::Client,
        load,
        counted: Some((200, 1200)),
        goals,
        ..PLAIN
    }
}

/// A cell with open sessions, and the KiB that each may take.
const fn memory(
    name: &'static str,
    eras: &'static [&'static str],
    load: &'static [&'static str],
    goal: f64,
) -> Cell {
    let mut cell = Cell {
        name,
        side: Side::Memory,
        eras,
        transport: "http",
        load,
        ..PLAIN
    };
    cell.goals.memory = Some(goal);
    cell
}

const fn http(mut cell: Cell) -> Cell {
    cell.transport = "http";
    cell
}

const fn rate(mut cell: Cell, goal: f64) -> Cell {
    cell.goals.rate = Some(goal);
    cell
}

/// A server with the tools `quote`, `wait` and `update`.
const fn more(mut cell: Cell) -> Cell {
    cell.server = &["tools=more"];
    cell
}

/// A feature that the peers lack, with a goal that is a multiple of another cell.
const fn ours_beside(
    mut cell: Cell,
    server: &'static [&'static str],
    other: &'static str,
    goal: f64,
) -> Cell {
    cell.server = server;
    cell.ours_alone = Some(OurServer::Plain);
    beside(cell, other, goal)
}

/// The start of a server with these tools, from the process to the first answer.
const fn start(name: &'static str, server: &'static [&'static str]) -> Cell {
    Cell {
        name,
        eras: &["2025"],
        load: &["work=start"],
        server,
        ..PLAIN
    }
}

const fn beside(mut cell: Cell, other: &'static str, goal: f64) -> Cell {
    cell.goals.beside = Some((other, goal));
    cell
}

/// The same calls through a gateway.
const fn proxied(mut cell: Cell, other: &'static str, goal: f64) -> Cell {
    cell.ours_alone = Some(OurServer::Gateway);
    beside(cell, other, goal)
}

/// A node with these options, under a load of sessions.
const fn nodes(
    name: &'static str,
    load: &'static [&'static str],
    server: &'static [&'static str],
) -> Cell {
    Cell {
        name,
        eras: &["2025"],
        transport: "http",
        load,
        server,
        ours_alone: Some(OurServer::Node),
        ..PLAIN
    }
}

/// Streamed calls in one session. Together with the calls before them they are fewer than the streams of a session that a store in
/// Redis keeps, because a refused stream costs more.
const STREAMED: &[&str] = &["call=progress:1", "calls=500"];

/// Limits a slow cell to one round.
const fn once(mut cell: Cell) -> Cell {
    cell.most_rounds = 1;
    cell
}

/// A cell with this number of sessions in Redis, and the KiB that each may take.
const fn stored(name: &'static str, count: &'static [&'static str], goal: f64) -> Cell {
    let mut cell = nodes(name, count, &[]);
    cell.side = Side::Stored;
    cell.goals.memory = Some(goal);
    cell
}

/// All rows.
pub(crate) const CELLS: &[Cell] = &[
    server(
        "stdio add",
        &["call=add"],
        Some((200, 1200)),
        goals(Some(1.5), Some(1.6), Some(10.0)),
    ),
    server(
        "stdio add x16",
        &["call=add", "conc=16"],
        Some((200, 1200)),
        goals(Some(2.0), Some(2.0), None),
    ),
    server(
        "stdio echo 10 KiB",
        &["call=echo:10240"],
        Some((50, 300)),
        goals(Some(1.0), Some(1.0), None),
    ),
    server(
        "stdio echo 1 MiB",
        &["call=echo:1048576"],
        None,
        goals(Some(1.0), None, None),
    ),
    server(
        "stdio list 100",
        &["call=list"],
        Some((20, 120)),
        goals(Some(1.2), Some(1.2), None),
    ),
    server(
        "stdio progress 1k",
        &["call=progress:1000"],
        Some((2, 7)),
        goals(Some(2.5), Some(2.5), None),
    ),
    ours_beside(
        server(
            "stdio list hidden",
            &["call=list:102"],
            Some((20, 120)),
            goals(None, None, None),
        ),
        &["tools=hidden"],
        "stdio list 100",
        2.0,
    ),
    more(server(
        "stdio rich",
        &["call=quote"],
        Some((100, 600)),
        goals(Some(1.3), Some(1.3), None),
    )),
    more(server(
        "stdio wait x16",
        &["call=wait", "conc=16"],
        Some((200, 1200)),
        goals(Some(1.5), Some(1.5), None),
    )),
    start("start 1k tools", &["tools=1000"]),
    beside(
        start("start 10k tools", &["tools=10000"]),
        "start 1k tools",
        12.0,
    ),
    client("client add", &["conc=1"], goals(None, None, None)),
    client(
        "client add x16",
        &["conc=16"],
        goals(Some(2.0), Some(2.0), None),
    ),
    rate(
        http(server(
            "http add",
            &["call=add"],
            Some((200, 1200)),
            goals(Some(1.5), Some(1.5), Some(30.0)),
        )),
        0.8,
    ),
    http(server(
        "http add x16",
        &["call=add", "conc=16"],
        Some((200, 1200)),
        goals(Some(1.5), Some(1.5), None),
    )),
    ours_beside(
        http(server(
            "http bearer",
            &["call=add", "auth=bearer"],
            // A token is looked up by its SHA-256, for which valgrind lacks the CPU's instructions.
            None,
            goals(None, None, None),
        )),
        &["auth=bearer"],
        "http add",
        1.15,
    ),
    http(server(
        "http echo 10 KiB",
        &["call=echo:10240"],
        Some((50, 300)),
        goals(Some(1.0), Some(1.0), None),
    )),
    http(server(
        "http list 100",
        &["call=list"],
        Some((20, 120)),
        goals(Some(1.2), Some(1.2), None),
    )),
    http(server(
        "http progress 1k",
        &["call=progress:1000"],
        Some((2, 7)),
        goals(Some(2.5), Some(2.5), None),
    )),
    http(more(server(
        "http rich",
        &["call=quote"],
        Some((100, 600)),
        goals(Some(1.3), Some(1.3), None),
    ))),
    http(more(server(
        "http wait x16",
        &["call=wait", "conc=16"],
        Some((200, 1200)),
        goals(Some(1.5), Some(1.5), None),
    ))),
    http(more(server(
        "http update 1k",
        &["work=update:1000"],
        Some((2, 7)),
        goals(Some(2.0), Some(2.0), None),
    ))),
    http(server(
        "http connect",
        &["work=connect"],
        Some((50, 300)),
        goals(Some(1.4), None, None),
    )),
    http(client(
        "http client add",
        &["conc=1"],
        goals(Some(1.5), Some(1.5), None),
    )),
    http(client(
        "http client x16",
        &["conc=16"],
        goals(Some(1.5), Some(1.5), None),
    )),
    proxied(
        server(
            "stdio proxied",
            &["call=add"],
            Some((200, 1200)),
            goals(None, None, None),
        ),
        "stdio add",
        2.5,
    ),
    proxied(
        http(server(
            "http proxied",
            &["call=add"],
            Some((200, 1200)),
            goals(None, None, None),
        )),
        "http add",
        2.5,
    ),
    nodes("nodes in memory", STREAMED, &["store=memory"]),
    beside(
        nodes("nodes streamed", STREAMED, &["store=redis"]),
        "nodes in memory",
        2.0,
    ),
    nodes("nodes restored", &["work=restore"], &["store=redis"]),
    once(nodes(
        "nodes update 10k",
        &["work=fanout:10000"],
        &["store=redis"],
    )),
    stored("stored sessions", &["100000"], 2.0),
    memory("idle session", BOTH, &["work=idle:1000"], 15.0),
    memory("open GET stream", &["2025"], &["work=get:1000"], 15.0),
    memory("listen stream", &["2026"], &["work=listen:1000"], 15.0),
];
