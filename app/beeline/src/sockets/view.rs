//! Processes and their connections at one moment, with what happened since the look before.

use std::time::Instant;

use beeline_socket_engine::end_name;
use beeline_socket_rules::{BoardView, Carrier, Direction, Life, RowView};
use serde::Serialize;

use super::program_name::shown;

/// A process that has a board, with what is to be shown of it.
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Process {
    pub pid: u32,
    pub program: String,
    /// `running`, `ended` (of a run that is not read yet), or `unknown` (of another pid namespace).
    pub state: &'static str,
    pub connections: Vec<Connection>,
    /// Connections that have ended, by reason.
    pub ended: Vec<Ended>,
    /// Connections that are not listed, for want of room.
    pub unlisted: u64,
}

/// Connections that have ended.
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Ended {
    pub why: Option<&'static str>,
    pub connections: u64,
}

/// A connection. Bytes and messages are of both directions.
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Connection {
    pub socket: u32,
    pub local: String,
    pub peer: String,
    pub peer_pid: Option<u32>,
    pub sends_by: &'static str,
    pub receives_by: &'static str,
    pub bytes: u64,
    pub messages: u64,
    /// The share of the bytes that windows carried, 0 to 1; 0 where there are none.
    pub by_window: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_second: Option<f64>,
    pub fail_overs: u64,
    pub fail_forwards: u64,
    pub spins: u64,
    pub sleeps: u64,
    pub rings: u64,
    pub dropped: u64,
    pub why: Option<&'static str>,
    pub reason: Option<&'static str>,
    #[serde(skip)]
    pub directions: [(&'static str, Direction); 2],
}

/// All that was seen at once.
pub struct Look {
    pub at: Instant,
    pub processes: Vec<Process>,
    /// Whether windows of the domain are down by order.
    pub are_down: bool,
}

impl Look {
    /// What boards say; rates are since `before`.
    pub fn new(at: Instant, boards: Vec<BoardView>, before: Option<&Look>, are_down: bool) -> Self {
        let mut processes: Vec<_> = boards.into_iter().map(Process::of).collect();
        let Some(before) = before else { return Look { at, processes, are_down } };
        let seconds = at.saturating_duration_since(before.at).as_secs_f64();
        for process in &mut processes {
            let earlier = before.processes.iter().find(|earlier| earlier.pid == process.pid);
            for connection in &mut process.connections {
                let earlier = earlier.and_then(|process| {
                    process.connections.iter().find(|earlier| earlier.is_the_same(connection))
                });
                connection.rate(earlier, seconds);
            }
        }
        Look { at, processes, are_down }
    }
}

impl Process {
    fn of(board: BoardView) -> Self {
        let state = match board.life() {
            Life::Running => "running",
            Life::Ended => "ended",
            Life::Unknown => "unknown",
        };
        let open = board.rows.iter().filter(|row| row.is_open);
        let connections = open.map(Connection::of).collect();
        let ended = board
            .ended
            .iter()
            .map(|(why, count)| Ended { why: why.map(|why| why.name()), connections: *count })
            .collect();
        Process {
            pid: board.pid(),
            program: shown(&board.program),
            state,
            connections,
            ended,
            unlisted: board.unlisted,
        }
    }
}

impl Connection {
    fn of(row: &RowView) -> Self {
        let directions = [("sent", row.sending), ("received", row.receiving)];
        let sum = |of: fn(&Direction) -> u64| {
            directions.iter().fold(0u64, |sum, (_, direction)| sum.saturating_add(of(direction)))
        };
        let window = sum(|way| way.window.bytes);
        let bytes = window.saturating_add(sum(|way| way.socket.bytes));
        Connection {
            socket: row.socket,
            local: end_name(row.local),
            peer: end_name(row.peer),
            peer_pid: row.peer_pid,
            sends_by: name(row.sending.carrier),
            receives_by: name(row.receiving.carrier),
            bytes,
            messages: sum(|way| way.window.messages.saturating_add(way.socket.messages)),
            by_window: if bytes == 0 { 0.0 } else { window as f64 / bytes as f64 },
            bytes_per_second: None,
            messages_per_second: None,
            fail_overs: sum(|way| way.downs),
            fail_forwards: sum(|way| way.ups),
            spins: row.spins,
            sleeps: row.sleeps,
            rings: row.rings,
            dropped: row.dropped,
            why: row.why.map(|why| why.name()),
            reason: row.why.map(|why| why.sentence()),
            directions,
        }
    }

    /// Counts that are lower than before are of another connection between the same ends.
    fn is_the_same(&self, later: &Connection) -> bool {
        (self.socket, &self.local, &self.peer) == (later.socket, &later.local, &later.peer)
            && self.bytes <= later.bytes
    }

    fn rate(&mut self, earlier: Option<&Connection>, seconds: f64) {
        if seconds <= 0.0 {
            return;
        }
        let (bytes, messages) = earlier.map_or((0, 0), |it| (it.bytes, it.messages));
        let per_second = |now: u64, was: u64| Some(now.saturating_sub(was) as f64 / seconds);
        self.bytes_per_second = per_second(self.bytes, bytes);
        self.messages_per_second = per_second(self.messages, messages);
    }

    /// What carries it, in a word or two.
    pub fn path(&self) -> String {
        match (self.sends_by, self.receives_by) {
            (sends, receives) if sends == receives => sends.to_owned(),
            (sends, receives) => format!("{sends}, {receives}"),
        }
    }
}

/// The name of what carries bytes.
pub fn name(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Socket => "socket",
        Carrier::Window => "window",
    }
}
