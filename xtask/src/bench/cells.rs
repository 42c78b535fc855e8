//! The cells of the bench, a row each, with their goals.

/// Which end of the connection is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The server, under the neutral driver.
    Server,
    /// The client, on the raw server.
    Client,
    /// The server's memory, with sessions open.
    Memory,
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
    /// How many calls the shorter and the longer of the two runs make whose difference is counted; none for a cell
    /// that is not counted.
    pub(crate) counted: Option<(u64, u64)>,
    pub(crate) goals: Goals,
}

/// What we want to reach.
#[derive(Clone, Copy, Default)]
pub(crate) struct Goals {
    /// CPU time per call, as a multiple of raw.
    pub(crate) cpu: Option<f64>,
    /// Instructions per call, as a multiple of raw.
    pub(crate) instructions: Option<f64>,
    /// Allocations per call.
    pub(crate) allocations: Option<f64>,
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
        rate: None,
        memory: None,
    }
}

const BOTH: &[&str] = &["2025", "2026"];

/// A row that nothing else is said about.
const PLAIN: Cell = Cell {
    name: "",
    side: Side::Server,
    eras: BOTH,
    transport: "stdio",
    load: &[],
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

/// Sessions that are open, and how many KiB each may take.
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

/// All rows.
pub(crate) const CELLS: &[Cell] = &[
    server(
        "stdio add",
        &["call=add"],
        Some((200, 1200)),
        goals(Some(1.5), Some(1.5), Some(10.0)),
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
        goals(Some(2.0), Some(2.0), None),
    ),
    client("client add", &["conc=1"], goals(None, None, None)),
    client(
        "client add x16",
        &["conc=16"],
        goals(Some(1.3), Some(1.3), None),
    ),
    rate(
        http(server(
            "http add",
            &["call=add"],
            Some((200, 1200)),
            goals(Some(1.4), Some(1.4), Some(30.0)),
        )),
        0.8,
    ),
    http(server(
        "http add x16",
        &["call=add", "conc=16"],
        Some((200, 1200)),
        goals(Some(1.4), Some(1.4), None),
    )),
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
        goals(Some(2.0), Some(2.0), None),
    )),
    http(server(
        "http connect",
        &["work=connect"],
        Some((50, 300)),
        goals(Some(1.4), None, None),
    )),
    http(client(
        "http client add",
        &["conc=1"],
        goals(Some(1.2), Some(1.2), None),
    )),
    http(client(
        "http client x16",
        &["conc=16"],
        goals(Some(1.2), Some(1.2), None),
    )),
    memory("idle session", BOTH, &["work=idle:1000"], 15.0),
    memory("open GET stream", &["2025"], &["work=get:1000"], 15.0),
    memory("listen stream", &["2026"], &["work=listen:1000"], 15.0),
];
