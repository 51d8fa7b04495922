//! Bytes that this process has sent by a window, and that come back from it: they are given to the socket, behind all that it had, for whoever
//! reads it now.
//!
//! From its answer on, the sender's program sends nothing to the socket by itself: what it sends waits behind what comes back. The thread in the
//! background copies what the other side puts into the place of the window, and gives it to the socket when that has room, by a descriptor of
//! its own, so that a program that closes its number loses nothing.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use beeline_domain::{HighCopy, Peer};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown, sockopt};

use crate::forks::OfProcess;
use crate::lock::locked;
use crate::poll::sleep_for;
use crate::returns::Returns;

/// As much as comes back at most: both buffers of a socket are hardly ever as large.
pub(crate) const MOST_BYTES: u64 = 64 << 20;
/// What a program may send while bytes come back, before its calls find no room.
const BEHIND_BYTES: usize = 1 << 20;
/// Between two looks at the other process, which may end in the middle.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(10);
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

/// Those of each process of a family; a child's are its parent's, which pays them.
static DEBTS: OfProcess<Mutex<Vec<Arc<Mutex<Debt>>>>> = OfProcess::new();
/// A set of the kernel's that is readable when one of their sockets may have room. Who sleeps on it has no socket: a child of fork closes all of them.
static ROOM: OfProcess<Option<HighCopy>> = OfProcess::new();
/// Sockets that one look takes out of it; others keep it readable.
const ROOMS: usize = 16;

/// What one socket is owed.
#[derive(Debug)]
pub(crate) struct Debt {
    returns: Returns,
    /// The process at the other end; none where it is this one.
    peer: Option<Peer>,
    /// Let go with the last byte: a program that closes its number ends the connection by that.
    socket: Option<HighCopy>,
    /// Whether [`ROOM`] tells of its socket.
    is_watched: bool,
    /// The question that was answered.
    number: u64,
    /// Pieces that were copied, and bytes that may come still.
    pieces: u64,
    may_come: u64,
    is_over: bool,
    /// What is given to the socket next, and what the program has sent meanwhile.
    owed: VecDeque<u8>,
    behind: VecDeque<u8>,
    /// How the program's socket lingers, while bytes are owed.
    lingers: Option<Option<Duration>>,
    failed: Option<Errno>,
    /// The program has ended this direction: so is the socket's behind the last byte.
    is_shut: bool,
}

/// Whether all is paid that this process owes.
pub(crate) fn pay() -> bool {
    let Some(debts) = DEBTS.get_or_init(Mutex::default) else { return true };
    let mut debts = locked(debts);
    if !debts.is_empty() {
        forget_rooms();
    }
    debts.retain(|debt| !locked(debt).tend());
    debts.is_empty()
}

fn room() -> Option<&'static HighCopy> {
    let make = || {
        let room = epoll::create(CreateFlags::CLOEXEC).ok()?;
        Some(HighCopy::instead_of(room))
    };
    ROOM.get_or_init(make)?.as_ref()
}

/// Each is told once, and looked for here by who tends all of them next.
fn forget_rooms() {
    if let Some(room) = room() {
        let mut events = [const { MaybeUninit::uninit() }; ROOMS];
        let _ = epoll::wait(room, &mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    }
}

/// In a child, which pays nothing: its copies of the sockets would keep connections open that its parent has closed. One that a thread of the parent's was
/// paying in that moment stays.
pub(crate) fn drop_those_of_parent() {
    let Some(Ok(debts)) = DEBTS.of_parent().map(Mutex::try_lock) else { return };
    for debt in &*debts {
        if let Ok(mut debt) = debt.try_lock() {
            debt.socket = None;
        }
    }
}

/// Waits until all is paid, but no longer than this since a socket has last taken something: of a process that ends nobody pays what is left.
pub(crate) fn pay_all(within: Duration) -> bool {
    let (mut owed, mut since) = (usize::MAX, Instant::now());
    while !pay() {
        let left = DEBTS
            .get_or_init(Mutex::default)
            .map_or(0, |debts| locked(debts).iter().map(|debt| locked(debt).owed.len()).sum::<usize>());
        if left < owed {
            since = Instant::now();
        }
        owed = left;
        if since.elapsed() >= within {
            return false;
        }
        sleep_for(BETWEEN_LOOKS);
    }
    true
}

/// Resets the connections that are owed something still: nobody will pay.
pub(crate) fn lose_all() {
    let Some(debts) = DEBTS.get_or_init(Mutex::default) else { return };
    for debt in &*locked(debts) {
        let mut debt = locked(debt);
        if !debt.is_paid() {
            debt.lose("nobody is left in the process to send what came back");
        }
    }
}

/// What wakes a thread that pays: sockets with too little room; and how long it may sleep at most.
pub(crate) fn waited_for() -> (Option<PollFd<'static>>, Option<Duration>) {
    let Some(debts) = DEBTS.get_or_init(Mutex::default) else { return (None, None) };
    let (mut is_full, mut longest) = (false, None);
    for debt in &*locked(debts) {
        let debt = locked(debt);
        is_full |= !debt.owed.is_empty() && debt.is_watched;
        if !debt.is_over || !debt.is_watched {
            longest = Some(LOOKED_AT_EVERY);
        }
    }
    (room().filter(|_| is_full).map(|room| PollFd::new(room, PollFlags::IN)), longest)
}

impl Debt {
    /// What comes back by an answer to this question: at most so many bytes, for this socket.
    pub(crate) fn new(
        returns: Returns,
        number: u64,
        may_come: u64,
        socket: HighCopy,
        peer: Option<Peer>,
    ) -> Self {
        Debt {
            returns,
            peer,
            socket: Some(socket),
            is_watched: false,
            number,
            pieces: 0,
            may_come,
            is_over: false,
            owed: VecDeque::new(),
            behind: VecDeque::new(),
            lingers: None,
            failed: None,
            is_shut: false,
        }
    }

    /// Bytes that this process sends anew by itself, to this socket.
    pub(crate) fn owing(returns: Returns, bytes: VecDeque<u8>, socket: HighCopy) -> Self {
        let debt = Debt::new(returns, 0, 0, socket, None);
        Debt { owed: bytes, is_over: true, ..debt }
    }

    /// Ends the socket's direction behind the last byte; `false` where that is paid, and the socket let go: then the kernel is to end it now.
    pub(crate) fn shut_behind(&mut self) -> bool {
        if self.tend() {
            return false;
        }
        self.is_shut = true;
        true
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut
    }

    /// Has it paid, by whoever pays.
    pub(crate) fn begin(mut self) -> Arc<Mutex<Debt>> {
        if let (Some(room), Some(socket)) = (room(), &self.socket) {
            // By edges, which a socket that has been full gives, and no other.
            let flags = EventFlags::OUT | EventFlags::ET;
            self.is_watched = epoll::add(room, socket, EventData::new_u64(0), flags).is_ok();
        }
        let debt = Arc::new(Mutex::new(self));
        if let Some(debts) = DEBTS.get_or_init(Mutex::default) {
            locked(debts).push(Arc::clone(&debt));
        }
        debt
    }

    /// What the socket failed with.
    pub(crate) fn failed(&self) -> Option<Errno> {
        self.failed
    }

    /// Puts what its program sends behind what comes back, as much as there is room for. None where all is paid: nobody would send it.
    pub(crate) fn put_behind(&mut self, bytes: &[u8]) -> usize {
        if self.is_paid() {
            return 0;
        }
        let behind = if self.is_over { &mut self.owed } else { &mut self.behind };
        let room = BEHIND_BYTES.saturating_sub(behind.len()).min(bytes.len());
        behind.extend(&bytes[..room]);
        room
    }

    /// Copies what has come, and gives the socket what it takes. Whether nothing is left to do.
    pub(crate) fn tend(&mut self) -> bool {
        while !self.is_over {
            // Before the look at the question: a process that ended behind it had said so.
            let has_gone = self.peer.as_ref().is_some_and(|peer| peer.departure().is_some());
            if self.returns.asked() != Some(self.number) {
                self.end();
            } else if !self.copy() {
                if has_gone {
                    self.lose("the other process has ended while it gave bytes back");
                }
                break;
            }
        }
        self.pay();
        if self.is_paid()
            && let Some(socket) = self.socket.take()
        {
            if let Some(room) = room().filter(|_| self.is_watched) {
                // The program may have the socket longer.
                let _ = epoll::delete(room, &socket);
            }
            if self.is_shut
                && let Err(errno) = shutdown(&socket, Shutdown::Write)
            {
                self.failed = self.failed.or(Some(errno));
            }
        }
        self.is_paid()
    }

    pub(crate) fn is_paid(&self) -> bool {
        self.is_over && self.owed.is_empty()
    }

    /// Copies a piece; whether there was one.
    fn copy(&mut self) -> bool {
        let mut piece = Vec::new();
        let Some(bytes) = self.returns.take(self.pieces + 1, &mut piece) else { return false };
        let Some(may_come) = self.may_come.checked_sub(bytes as u64) else {
            self.lose("more bytes came back than were sent");
            return false;
        };
        (self.pieces, self.may_come) = (self.pieces + 1, may_come);
        self.owed.extend(piece);
        // First, so that they are in the socket when the other side goes on.
        self.pay();
        self.returns.say_copied(self.pieces);
        true
    }

    fn end(&mut self) {
        self.is_over = true;
        let behind = std::mem::take(&mut self.behind);
        self.owed.extend(behind);
    }

    /// Nobody knows which byte comes next.
    fn lose(&mut self, why: &str) {
        tracing::warn!(why, "a connection is reset");
        self.socket.iter().for_each(|socket| _ = beeline_tcp::reset(socket));
        self.fail(Errno::CONNRESET);
    }

    fn fail(&mut self, errno: Errno) {
        self.failed = Some(errno);
        self.is_over = true;
        self.owed.clear();
        self.behind.clear();
    }

    fn pay(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        while !self.owed.is_empty() {
            match beeline_tcp::send(&socket, self.owed.as_slices().0) {
                Ok(0) => break,
                Ok(bytes) => _ = self.owed.drain(..bytes),
                Err(errno) => self.fail(errno),
            }
        }
        self.linger(&socket);
        self.socket = Some(socket);
    }

    /// A process that is killed now would leave an end behind bytes that are not all: its socket is one that is reset then.
    fn linger(&mut self, socket: &HighCopy) {
        if !self.owed.is_empty() && self.lingers.is_none() {
            self.lingers = sockopt::socket_linger(socket).ok();
            let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        } else if self.owed.is_empty()
            && let Some(before) = self.lingers.take()
        {
            let _ = sockopt::set_socket_linger(socket, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use beeline_mmio::Region;

    use super::*;
    use crate::returns::RETURN_WORDS;

    const PLACE_BYTES: usize = 4096;
    /// Nothing takes so long that does not hang.
    const HANGS: Duration = Duration::from_secs(20);

    /// A debt of at most so many bytes, the words by which they come, and the socket that they come to in the end.
    fn debt(may_come: u64) -> (Debt, Returns, TcpStream) {
        let region = Region::private(64 + PLACE_BYTES);
        let returns = Returns::new(region.words(0, RETURN_WORDS), region, 64, PLACE_BYTES);
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let number = returns.ask();
        let socket = HighCopy::instead_of(listener.accept().unwrap().0.into());
        let debt = Debt::new(returns.clone(), number, may_come, socket, None);
        (debt, returns, other)
    }

    #[test]
    fn what_came_back_is_in_the_socket_before_its_piece_is_acknowledged_and_before_what_the_program_sent() {
        let (mut debt, returns, mut other) = debt(8);
        debt.behind.extend(b"behind");
        returns.put(1, b"came");
        assert!(!debt.tend());
        assert!(returns.is_copied(1));
        returns.put(2, b"back");
        assert!(!debt.tend());
        let mut out = [0; 8];
        other.read_exact(&mut out).unwrap();
        assert_eq!(&out, b"cameback");
        returns.end(debt.number);
        assert!(debt.tend());
        other.read_exact(&mut out[..6]).unwrap();
        assert_eq!(&out[..6], b"behind");
    }

    #[test]
    fn more_bytes_than_were_sent_reset_the_connection() {
        let (mut debt, returns, mut other) = debt(7);
        returns.put(1, b"came");
        assert!(!debt.tend());
        returns.put(2, b"back");
        assert!(debt.tend());
        assert_eq!(debt.failed, Some(Errno::CONNRESET));
        assert!(!returns.is_copied(2));
        let ended = loop {
            match other.read(&mut [0; 8]) {
                Ok(bytes) if bytes > 0 => {}
                ended => break ended,
            }
        };
        assert_eq!(ended.unwrap_err().raw_os_error(), Some(Errno::CONNRESET.raw_os_error()));
    }

    #[test]
    fn piece_that_is_not_the_next_one_is_not_taken() {
        let (mut debt, returns, _other) = debt(100);
        for number in [0, 2, u64::from(u32::MAX)] {
            returns.put(number, b"piece");
            assert!(!debt.tend());
            assert!(debt.owed.is_empty() && debt.pieces == 0, "{number}");
        }
    }

    #[test]
    fn socket_that_is_owed_bytes_is_one_that_is_reset_if_the_process_is_killed() {
        let (mut debt, returns, mut other) = debt(1 << 30);
        let mut number = 0;
        while debt.owed.is_empty() {
            number += 1;
            returns.put(number, &[7; PLACE_BYTES]);
            assert!(!debt.tend());
        }
        let program_s = debt.socket.as_ref().unwrap().as_fd().try_clone_to_owned().unwrap();
        assert_eq!(sockopt::socket_linger(&program_s), Ok(Some(Duration::ZERO)));
        returns.end(debt.number);
        let mut out = vec![0; PLACE_BYTES * number as usize];
        let reader = std::thread::spawn(move || other.read_exact(&mut out).map(|()| out));
        while !debt.tend() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        assert!(reader.join().unwrap().unwrap().iter().all(|byte| *byte == 7));
        assert_eq!(sockopt::socket_linger(&program_s), Ok(None));
    }

    #[test]
    fn direction_ends_behind_what_is_owed_and_by_the_kernel_s_call_once_that_is_paid() {
        let (mut debt, returns, mut other) = debt(4);
        other.set_read_timeout(Some(HANGS)).unwrap();
        returns.put(1, b"back");
        assert!(debt.shut_behind());
        returns.end(debt.number);
        assert!(debt.tend());
        let mut out = Vec::new();
        other.read_to_end(&mut out).unwrap();
        assert_eq!(out, b"back");
        // Its socket is gone, and nobody would end anything.
        assert!(!debt.shut_behind());
    }

    #[test]
    fn debt_that_is_paid_keeps_no_socket_open_and_takes_no_bytes() {
        let (mut debt, returns, mut other) = debt(4);
        returns.put(1, b"back");
        assert!(!debt.tend());
        assert_eq!(debt.put_behind(b"behind"), 6);
        returns.end(debt.number);
        assert!(debt.tend());
        assert_eq!(debt.put_behind(b"late"), 0);
        let mut out = Vec::new();
        other.set_read_timeout(Some(HANGS)).unwrap();
        other.read_to_end(&mut out).unwrap();
        assert_eq!(out, b"backbehind");
    }
}
