//! What is measured, a row each.

/// Which end of the connection is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The server, under the neutral driver.
    Server,
    /// The client, on the raw server.
    Client,
}

/// One row of the tables.
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) side: Side,
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
}

const fn goals(cpu: Option<f64>, instructions: Option<f64>, allocations: Option<f64>) -> Goals {
    Goals {
        cpu,
        instructions,
        allocations,
    }
}

const fn server(
    name: &'static str,
    load: &'static [&'static str],
    counted: Option<(u64, u64)>,
    goals: Goals,
) -> Cell {
    Cell {
        name,
        side: Side::Server,
        transport: "stdio",
        load,
        counted,
        goals,
    }
}

const fn client(name: &'static str, load: &'static [&'static str], goals: Goals) -> Cell {
    Cell {
        name,
        side: Side::Client,
        transport: "stdio",
        load,
        counted: Some((200, 1200)),
        goals,
    }
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
];
