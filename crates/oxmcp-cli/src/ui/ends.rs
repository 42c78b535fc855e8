//! The two ends of a connection on this machine, and the users that they belong to.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use axum::{extract::connect_info::Connected, serve::IncomingStream};
use tokio::net::TcpListener;

/// The tables of the system's connections. A browser may make one of either kind.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The bytes of a table that are read.
const MAX_TABLE: u64 = 64 << 20;

/// The state of an open connection. Linux shows root as the user of connections that were closed.
const ESTABLISHED: &str = "01";

/// The addresses of both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    own: Option<SocketAddr>,
    peer: SocketAddr,
}

impl Connected<IncomingStream<'_, TcpListener>> for Ends {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self {
            own: stream.io().local_addr().ok(),
            peer: *stream.remote_addr(),
        }
    }
}

impl Ends {
    /// Whether no other user can be at the other end with a URL from the arguments of the browser.
    ///
    /// macOS and Windows give the URL to the browser without arguments that other users can read. Elsewhere both ends must belong to
    /// the same user, which only Linux tells.
    pub(crate) fn are_private(self) -> bool {
        if cfg!(any(target_os = "macos", windows)) {
            return true;
        }
        let Some(own) = self.own else { return false };
        let user_of = |from, to| {
            TABLES.iter().find_map(|path| {
                let table = BufReader::new(File::open(path).ok()?.take(MAX_TABLE));
                user(table, from, to)
            })
        };
        let peer = user_of(self.peer, own);
        peer.is_some() && peer == user_of(own, self.peer)
    }
}

/// The user that the end `from` of a connection belongs to.
fn user(table: impl BufRead, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    table.lines().map_while(Result::ok).find_map(|line| {
        // Its number, the two addresses, the state, the queues, the timer, the retransmissions, the user.
        let mut columns = line.split_ascii_whitespace().skip(1);
        let is_wanted = address(columns.next()?)? == from
            && address(columns.next()?)? == to
            && columns.next()? == ESTABLISHED;
        if !is_wanted {
            return None;
        }
        columns.nth(3)?.parse().ok()
    })
}

/// An address of a table: words in the byte order of the machine, and the port. IPv4 within IPv6 is IPv4.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes);
    if ip.len() == 8 {
        return Some((Ipv4Addr::from(word(ip)?), port).into());
    }
    let mut bytes = [0; 16];
    for (index, four) in bytes.chunks_exact_mut(4).enumerate() {
        four.copy_from_slice(&word(ip.get(8 * index..8 * index + 8)?)?);
    }
    Some((Ipv6Addr::from(bytes).to_canonical(), port).into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The user of the first connection of a table.
    fn found(lines: &str) -> Option<u32> {
        let [from, to] = [([127, 0, 0, 1], 40_001), ([127, 0, 0, 1], 40_002)].map(SocketAddr::from);
        user(lines.as_bytes(), from, to)
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn tables_tell_the_user_of_an_end() {
        let four = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:9C42 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 21 1 0 100 0 0 10 0\n\
            \x20  1: 0100007F:9C41 0100007F:9C42 01 00000000:00000000 00:00000000 00000000  1001        0 22 1 0 20 4 30 10 -1\n\
            \x20  2: 0100007F:9C42 0100007F:9C41 01 00000000:00000000 00:00000000 00000000  1000        0 23 1 0 20 4 30 10 -1\n";
        assert_eq!(found(four), Some(1001));
        assert_eq!(found(&four.replace("9C42 01", "9C42 05")), None);
        assert_eq!(found(&four.replace(":9C41", ":9C40")), None);
        let six = "0: 0000000000000000FFFF00000100007F:9C41 0000000000000000FFFF00000100007F:9C42 01 0:0 0:0 0 1002 0 22";
        assert_eq!(found(six), Some(1002));
        assert_eq!(found("0: 7F:9C41 7F:9C42 01"), None);
    }

    #[tokio::test]
    async fn own_connections_are_private() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(own).unwrap();
        let (_accepted, peer) = listener.accept().await.unwrap();
        let ends = Ends {
            own: Some(own),
            peer,
        };
        assert!(ends.are_private());
        assert!(!Ends { own: None, ..ends }.are_private());
        client.shutdown(std::net::Shutdown::Both).unwrap();
        assert!(!ends.are_private());
    }
}
