//! The words of a board's file, and what they say. A file may have any bytes: whatever they are, they give a view or an error.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::carrier::Carrier;
use super::process::Recorded;
use super::run::Run;
use super::view::{BoardView, Counters, Direction, RowView};
use crate::Why;

/// The first word of a file that is complete: `BLSOCK`, and the version.
pub(super) const FORMAT: u64 = u64::from_le_bytes(*b"BLSOCK01");
pub(super) const HEADER_BYTES: usize = 4096;
pub(super) const ROW_WORDS: usize = 32;
pub(super) const ROW_BYTES: usize = ROW_WORDS * 8;
/// Rows of a part of a board: of one that is made, and by so many it grows.
pub(super) const ROWS: usize = 1024;
/// Parts of a board at most.
pub(super) const PARTS: usize = 16;
/// Rows that are read at most.
const MAX_ROWS: usize = 1 << 16;

/// Words of the header.
pub(super) mod header {
    pub(in crate::board) const FORMAT: usize = 0;
    pub(in crate::board) const ROWS: usize = 1;
    pub(in crate::board) const PID: usize = 2;
    pub(in crate::board) const START: usize = 3;
    pub(in crate::board) const NAMESPACE: usize = 4;
    pub(in crate::board) const BOOT: usize = 5;
    pub(in crate::board) const IMAGE: usize = 6;
    pub(in crate::board) const RUN: usize = 7;
    pub(in crate::board) const RUN_PID: usize = 8;
    pub(in crate::board) const RUN_START: usize = 9;
    pub(in crate::board) const ENDED: usize = 10;
    /// Connections that had no row.
    pub(in crate::board) const UNLISTED: usize = 11;
    /// Written by whoever orders something: what windows are to be in the lowest bit; above it, the count of orders.
    pub(in crate::board) const ORDER: usize = 12;
    /// The order that the process has carried out.
    pub(in crate::board) const CARRIED_OUT: usize = 13;
    /// Four words: where the process is rung when it is given an order.
    pub(in crate::board) const BELL: usize = 14;
    /// Connections that have ended, by the reason for which they were the kernel's; none at 0.
    pub(in crate::board) const TALLIES: usize = 64;
    pub(in crate::board) const TALLY_COUNT: usize = 64;
    /// The path of the program, up to a byte of zero.
    pub(in crate::board) const PROGRAM_OFFSET: usize = 2048;
    pub(in crate::board) const PROGRAM_BYTES: usize = 1024;
}

/// Words of a row. Lines of 64 bytes have one writer each: who opened it, who holds the connection's sending side, who its receiving side.
pub(super) mod row {
    /// [`OPENING`](super::OPENING) or others in the low byte; above them, how often the row was taken.
    pub(in crate::board) const STATE: usize = 0;
    pub(in crate::board) const SOCKET: usize = 1;
    pub(in crate::board) const LOCAL: usize = 2;
    pub(in crate::board) const PEER: usize = 4;
    /// The local one, and the peer's 16 bits higher.
    pub(in crate::board) const PORTS: usize = 6;
    pub(in crate::board) const WHY: usize = 7;
    pub(in crate::board) const SENDING: usize = 8;
    pub(in crate::board) const RINGS: usize = 15;
    pub(in crate::board) const RECEIVING: usize = 16;
    pub(in crate::board) const SPINS: usize = 23;
    pub(in crate::board) const SLEEPS: usize = 24;
    /// In a third line, which either side may write: the process at the other end.
    pub(in crate::board) const PEER_PID: usize = 28;
    pub(in crate::board) const DROPPED: usize = 29;

    /// Words of a direction, from [`SENDING`] or [`RECEIVING`] on.
    pub(in crate::board) const CARRIER: usize = 0;
    pub(in crate::board) const SOCKET_BYTES: usize = 1;
    pub(in crate::board) const WINDOW_BYTES: usize = 2;
    pub(in crate::board) const SOCKET_MESSAGES: usize = 3;
    pub(in crate::board) const WINDOW_MESSAGES: usize = 4;
    pub(in crate::board) const UPS: usize = 5;
    pub(in crate::board) const DOWNS: usize = 6;
}

pub(super) const FREE: u64 = 0;
pub(super) const OPENING: u64 = 1;
pub(super) const OPEN: u64 = 2;
/// Of a connection that has ended, in a run that reads it: taken when no other is free.
pub(super) const CLOSED: u64 = 3;
pub(super) const STATE_MASK: u64 = 0xff;
/// The next taking of a row.
pub(super) const GENERATION: u64 = 0x100;

/// Why the bytes of a file are no board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Odd {
    #[error("it has {found} bytes, and a board {wanted} at least")]
    Short { found: usize, wanted: usize },
    #[error("it begins with {found:#018x}: it is not complete yet, or of another version")]
    Format { found: u64 },
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let word = bytes.get(index * 8..).and_then(|rest| rest.first_chunk::<8>());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// An address as two words: IPv4 ones in their IPv6 form.
pub(super) fn address_words(address: IpAddr) -> [u64; 2] {
    let octets = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let half = |at: usize| octets[at..].first_chunk::<8>().map_or(0, |half| u64::from_le_bytes(*half));
    [half(0), half(8)]
}

fn address(bytes: &[u8], index: usize) -> IpAddr {
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&word(bytes, index).to_le_bytes());
    octets[8..].copy_from_slice(&word(bytes, index + 1).to_le_bytes());
    Ipv6Addr::from(octets).to_canonical()
}

/// What the bytes of a file say, whose rows were looked at twice.
pub(crate) fn board_of(header: &[u8], before: &[u8], after: &[u8]) -> Result<BoardView, Odd> {
    Ok(BoardView { rows: rows_of(before, after), ..header_of(header)? })
}

/// What the header says. Rows are added by [`board_of`].
pub(super) fn header_of(bytes: &[u8]) -> Result<BoardView, Odd> {
    if bytes.len() < HEADER_BYTES {
        return Err(Odd::Short { found: bytes.len(), wanted: HEADER_BYTES });
    }
    let at = |index| word(bytes, index);
    if at(header::FORMAT) != FORMAT {
        return Err(Odd::Format { found: at(header::FORMAT) });
    }
    let path = &bytes[header::PROGRAM_OFFSET..header::PROGRAM_OFFSET + header::PROGRAM_BYTES];
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    let tally = |code| at(header::TALLIES + code);
    let ended = (0..header::TALLY_COUNT).map(|code| (Why::of_code(code as u64), tally(code)));
    Ok(BoardView {
        process: Recorded {
            pid: u32::try_from(at(header::PID)).unwrap_or(0),
            start: at(header::START),
            namespace: at(header::NAMESPACE),
            boot: at(header::BOOT),
            image: at(header::IMAGE),
        },
        run: Run::of_words([at(header::RUN), at(header::RUN_PID), at(header::RUN_START)]),
        has_ended: at(header::ENDED) != 0,
        program: String::from_utf8_lossy(path).into_owned(),
        unlisted: at(header::UNLISTED),
        ended: ended.filter(|(_, count)| *count != 0).collect(),
        rows: Vec::new(),
    })
}

/// Bytes of the rows that a file with this header has.
pub(super) fn rows_bytes(header_bytes: &[u8]) -> usize {
    let rows = usize::try_from(word(header_bytes, header::ROWS)).unwrap_or(usize::MAX);
    rows.min(MAX_ROWS) * ROW_BYTES
}

/// The rows that are somebody's in both of two looks at the bytes behind the header: others were taken or left meanwhile.
pub(super) fn rows_of(before: &[u8], after: &[u8]) -> Vec<RowView> {
    let rows = before.chunks_exact(ROW_BYTES).zip(after.chunks_exact(ROW_BYTES));
    let is_whole = |(before, after): &(&[u8], &[u8])| {
        let state = word(before, row::STATE);
        matches!(state & STATE_MASK, OPEN | CLOSED) && state == word(after, row::STATE)
    };
    rows.filter(is_whole).map(|(before, _)| row_of(before)).collect()
}

fn row_of(bytes: &[u8]) -> RowView {
    let at = |index| word(bytes, index);
    let port = |shift: u32| (at(row::PORTS) >> shift) as u16;
    let direction = |first: usize| Direction {
        carrier: if at(first + row::CARRIER) == 0 { Carrier::Socket } else { Carrier::Window },
        socket: Counters { bytes: at(first + row::SOCKET_BYTES), messages: at(first + row::SOCKET_MESSAGES) },
        window: Counters { bytes: at(first + row::WINDOW_BYTES), messages: at(first + row::WINDOW_MESSAGES) },
        ups: at(first + row::UPS),
        downs: at(first + row::DOWNS),
    };
    RowView {
        is_open: at(row::STATE) & STATE_MASK == OPEN,
        socket: at(row::SOCKET) as u32,
        local: SocketAddr::new(address(bytes, row::LOCAL), port(0)),
        peer: SocketAddr::new(address(bytes, row::PEER), port(16)),
        peer_pid: u32::try_from(at(row::PEER_PID)).ok().filter(|pid| *pid != 0),
        why: Why::of_code(at(row::WHY)),
        sending: direction(row::SENDING),
        receiving: direction(row::RECEIVING),
        rings: at(row::RINGS),
        spins: at(row::SPINS),
        sleeps: at(row::SLEEPS),
        dropped: at(row::DROPPED),
    }
}
