//! Sending: into the window without a call of the kernel's, or by the socket.

use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_ledger::{Path, Sender, Stays};
use beeline_mmio::{fence, membarrier};
use beeline_socket_rules::{Carrier, Why};
use beeline_stream::{Failure, Outgoing, Sent, Socket, Tcp, TcpError, Unmoved};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::net::sockopt::{Timeout, socket_timeout};
use smallvec::SmallVec;

use crate::copies::MOST_KEPT_BYTES;
use crate::counts::Count;
use crate::debts;
use crate::endpoint::{AgreedSlot, Endpoint, Stage, Writer};
use crate::handlers::put_off;
use crate::inside::{Inside, Way};
use crate::numbers::Claim;
use crate::poll::poll_for;
use crate::poll::sleep_for;
use crate::process::Process;
use crate::sleepers::ring_other;
use crate::sockets::Sockets;
use crate::turn::{Step, Turn};
use crate::windows::WindowWriter;

/// How long a sender looks for room, and after that lets others run, before it goes on through the socket. A receiver that runs
/// frees a part of the window sooner, and one that was asleep is awake by then.
const ROOM_SPUN_FOR: Duration = Duration::from_micros(20);
const ROOM_WITHIN: Duration = Duration::from_micros(500);
/// How long a sender sleeps on a number that another thread may have closed and used again.
const CLOSE_IS_SEEN_WITHIN: Duration = Duration::from_millis(10);
/// The same for a call that does not wait: as long as a receiver takes to wake, since each byte of a large answer would go through the socket else.
const ROOM_AT_ONCE_WITHIN: Duration = Duration::from_micros(200);
/// Bytes that the socket is given at a time: between two pieces the window is tried again.
const PIECE_BYTES: usize = 256 << 10;
/// Calls that go through the socket before the window is tried again.
const REST_BEHIND_FULL: u32 = 2;
const REST_BEHIND_NO: u32 = 4;

/// What one look did.
enum Put {
    All,
    /// Some, and there is no room for more.
    Full,
    Failed(Errno),
}

struct Given<'a, 'b> {
    bytes: &'a [IoSlice<'b>],
    at: usize,
    sent: usize,
    total: usize,
    /// Of them those that went by the window.
    by_window: usize,
}

impl<'a> Given<'a, '_> {
    fn rest(&mut self) -> Option<&'a [u8]> {
        while self.bytes.get(self.at).is_some_and(|slice| slice.len() == self.sent) {
            (self.at, self.sent) = (self.at + 1, 0);
        }
        self.bytes.get(self.at).map(|slice| &slice[self.sent..])
    }

    fn count(&mut self, bytes: usize) {
        self.sent += bytes;
        self.total += bytes;
    }
}

impl Endpoint {
    pub(crate) fn send(
        &'static self,
        sockets: &Sockets,
        claim: Claim,
        socket: BorrowedFd<'_>,
        bytes: &[IoSlice<'_>],
        flags: SendFlags,
    ) -> Step {
        let mut given = Given { bytes, at: 0, sent: 0, total: 0, by_window: 0 };
        if let [bytes] = bytes {
            // What was put is counted already.
            let put = self.put_at_once(claim, bytes);
            if put > 0 && put == bytes.len() {
                return Step::Turn(Turn::Done(Ok(put)));
            }
            given.count(put);
        }
        if given.rest().is_none() {
            return Step::of(claim.write());
        }
        let waits = !flags.contains(SendFlags::DONTWAIT) && !self.is_nonblocking.load(Ordering::Relaxed);
        let mut ends_at = None;
        let process = sockets.process();
        let mut inside = Inside::new(sockets, self, Way::Sends, socket);
        loop {
            if self.is_written_here() {
                return Step::Turn(Turn::Done(self.put_off(socket, waits, &mut given)));
            }
            let mut writer = self.lock_writer();
            if !inside.holds(claim, &mut writer.inside) {
                return Step::done_or_again(given.total);
            }
            let socket = inside.socket();
            if let Some(errno) = writer.failed.take_if(|_| given.total == 0) {
                return Step::Turn(Turn::Done(Err(errno)));
            }
            if writer.is_shut() {
                let done = if given.total > 0 { Ok(given.total) } else { Err(Errno::PIPE) };
                return Step::Turn(Turn::Done(done));
            }
            let next = given.rest().map_or(0, <[u8]>::len);
            if !self.is_writing(&mut writer, claim, socket, next) {
                if inside.is_kept() {
                    drop(writer);
                    return Step::Turn(Turn::Done(send_rest(process, socket, &mut given, ends_at)));
                }
                let Some(pass) = claim.write() else { return Step::done_or_again(given.total) };
                drop(writer);
                return Step::Turn(match given.total {
                    0 => Turn::Kernel(pass),
                    _ if waits => Turn::Done(send_rest(process, socket, &mut given, ends_at)),
                    total => Turn::Done(Ok(total)),
                });
            }
            match self.put(&mut writer, socket, waits, &mut given) {
                Put::All => return Step::Turn(Turn::Done(Ok(given.total))),
                Put::Failed(errno) if given.total == 0 => return Step::Turn(Turn::Done(Err(errno))),
                Put::Failed(errno) => {
                    writer.failed = Some(errno);
                    return Step::Turn(Turn::Done(Ok(given.total)));
                }
                // What came back has been sent since it was looked for, and nothing is put behind it any more.
                Put::Full if writer.debt.is_some() && !Self::owes(&mut writer) => continue,
                // A socket with room says nothing of those bytes that come first.
                Put::Full if waits && writer.debt.is_some() => {
                    drop(writer);
                    sleep_for(debts::BETWEEN_LOOKS);
                    continue;
                }
                Put::Full if waits => {}
                Put::Full => return Step::Turn(Turn::Done(given.or_again())),
            }
            inside.enter(&mut writer.inside);
            drop(writer);
            let socket = inside.socket();
            if let Err(errno) = wait_for_room(process, socket, &mut ends_at) {
                return Step::Turn(Turn::Done(if given.total > 0 { Ok(given.total) } else { Err(errno) }));
            }
        }
    }

    /// Bytes of a handler that has interrupted a send of its own thread: they go behind those of that send.
    #[cold]
    fn put_off(
        &self,
        socket: BorrowedFd<'_>,
        waits: bool,
        given: &mut Given<'_, '_>,
    ) -> Result<usize, Errno> {
        let now = Some(Duration::ZERO);
        let mut watched = [PollFd::new(&socket, PollFlags::OUT)];
        let has_room = waits || poll_for(&mut watched, now).is_ok() && !watched[0].revents().is_empty();
        let rest: SmallVec<[&[u8]; 8]> = given.bytes.iter().map(|slice| &**slice).collect();
        match has_room.then(|| put_off(socket.as_raw_fd(), &rest)) {
            Some(bytes) if bytes > 0 => Ok(bytes),
            // It cannot wait for its own thread.
            _ if waits => Err(Errno::INTR),
            _ => Err(Errno::AGAIN),
        }
    }

    /// Whether it sends by the ledger, from now on if it can. `next`: what it sends then.
    fn is_writing(&self, writer: &mut Writer, claim: Claim, socket: BorrowedFd<'_>, next: usize) -> bool {
        if Self::owes(writer) {
            return true;
        }
        if writer.is_down_for_ever {
            return false;
        }
        self.answer_loss(writer, Some(socket));
        if self.stage() == Stage::Forbidden {
            self.send_no_more(writer, Some(socket));
            return Self::owes(writer);
        }
        if writer.stream.is_none() && !self.begin_writing(writer, claim, socket) {
            return false;
        }
        let is_low = writer.stream.as_ref().is_some_and(|stream| stream.path() == Path::Kernel);
        if is_low {
            self.try_up(writer, socket, next.min(PIECE_BYTES));
        } else if writer.slot.as_ref().is_some_and(AgreedSlot::has_gone) {
            // What it was sent is lost with it, as bytes in its socket would be; the kernel says how it ended.
            self.send_no_more(writer, Some(socket));
        }
        writer.stream.is_some() || Self::owes(writer)
    }

    #[cold]
    fn begin_writing(&self, writer: &mut Writer, claim: Claim, socket: BorrowedFd<'_>) -> bool {
        let Some((side, agreed)) = self.agreed() else { return false };
        if !claim.number.has_no_writes() {
            return false;
        }
        let given = match self.is_unix() {
            true => Ok(claim.number.sent_bytes().into()),
            false => Tcp::new(socket, side).given_bytes(),
        };
        let given = match given {
            Ok(given) => given,
            Err(error) => {
                tracing::debug!(%error, "the kernel does not say what a connection was given");
                self.forbid(Why::Disconnected);
                return false;
            }
        };
        let (own, theirs) = agreed.slot.sender_ends();
        let stream = Outgoing::new(Sender::new(own, theirs, given));
        let most_kept_bytes = if agreed.is_kept { MOST_KEPT_BYTES } else { 0 };
        writer.stream = Some(stream.keeping(most_kept_bytes));
        writer.slot = Some(agreed);
        writer.needs_fence = !membarrier::is_registered();
        true
    }

    /// Goes up if it can. Else the socket is given the `next` bytes.
    fn try_up(&self, writer: &mut Writer, socket: BorrowedFd<'_>, next: usize) {
        if self.is_held_down(writer) {
            return;
        }
        if writer.rest > 0 {
            writer.rest -= 1;
            return;
        }
        let (Some(stream), Some(agreed)) = (&mut writer.stream, &writer.slot) else { return };
        if !writer.had_window
            && let Some(window) = agreed.slot.offered_window()
        {
            // Refused while the one before is in use, which there is none of.
            let checked = agreed.checked(self.cookie.load(Ordering::Relaxed), agreed.other_cookie);
            let _ = stream.set_window(WindowWriter::new(window, checked));
            writer.had_window = true;
        }
        if !stream.has_window() {
            writer.rest = REST_BEHIND_NO;
            return;
        }
        if writer.catch_up.waits(next, || stream.untaken_bytes()) {
            return;
        }
        // Without a question to the kernel, which going up is. What breaks the rules is found by whoever asks then.
        if stream.is_settled::<TcpError>() == Ok(false) {
            writer.rest = REST_BEHIND_NO;
            return;
        }
        let up = match self.is_unix() {
            // Its socket has no counts: both have counted the same where all was taken. Without a question to the kernel first.
            true if !stream.has_receiver_all() => {
                writer.rest = REST_BEHIND_NO;
                return;
            }
            true => stream.go_up_where_all_is_taken(&mut Tcp::of_unix(socket, stream.given_bytes())),
            false => stream.go_up(&mut Tcp::new(socket, self.side())),
        };
        match up {
            Ok(()) => self.counts.add(Count::Ups, 1),
            Err(Unmoved::Ledger(Stays::OtherBytes { given, told })) => {
                tracing::debug!(given, told, "somebody else has written to a connection");
                self.forbid(Why::OtherWriter);
                self.send_no_more(writer, Some(socket));
            }
            Err(Unmoved::Ledger(Stays::Broken(broken))) => {
                tracing::debug!(?broken, "the other side broke the rules");
                self.forbid(Why::Broken);
                self.send_no_more(writer, Some(socket));
            }
            Err(Unmoved::Ledger(Stays::Gone)) => writer.rest = Writer::NEVER,
            Err(_) => writer.rest = REST_BEHIND_NO,
        }
    }

    /// Puts what there is room for where the stream is, and counts it.
    #[inline]
    fn put(
        &self,
        writer: &mut Writer,
        socket: BorrowedFd<'_>,
        waits: bool,
        given: &mut Given<'_, '_>,
    ) -> Put {
        let (before, before_by_window) = (given.total, given.by_window);
        let put = self.put_in_both(writer, socket, waits, given);
        if given.by_window > before_by_window {
            self.watch_for_silence(writer);
        }
        // Asked in the middle: what is left to send anew is sent though the program may never send again.
        self.answer_loss(writer, Some(socket));
        let is_up = writer.stream.as_ref().is_some_and(|stream| stream.path() == Path::Window);
        let was_up = self.sends_by_window.load(Ordering::Relaxed);
        if is_up != was_up {
            self.sends_by_window.store(is_up, Ordering::Relaxed);
        }
        if is_up && (!was_up || self.owes_acknowledgement.load(Ordering::Relaxed)) {
            self.owes_acknowledgement.store(false, Ordering::Relaxed);
            self.acknowledge(socket);
        }
        if given.total > before {
            let (bytes, by_window) = (given.total - before, given.by_window - before_by_window);
            self.counts.add(Count::SentBytes, bytes as u64);
            self.counts.add(Count::SentByWindowBytes, by_window as u64);
            if let Some(row) = &writer.row {
                row.sends_by(if is_up { Carrier::Window } else { Carrier::Socket });
                row.sent(if by_window > 0 { Carrier::Window } else { Carrier::Socket }, bytes);
            }
        }
        put
    }

    /// Puts what there is room for where the stream is.
    #[inline]
    fn put_in_both(
        &self,
        writer: &mut Writer,
        socket: BorrowedFd<'_>,
        waits: bool,
        given: &mut Given<'_, '_>,
    ) -> Put {
        let room_within = if waits { ROOM_WITHIN } else { ROOM_AT_ONCE_WITHIN };
        let mut tcp = self.socket(socket);
        let mut full_since = None;
        while let Some(rest) = given.rest() {
            let Some(stream) = &mut writer.stream else {
                // Behind what comes back, for which it was taken away.
                match writer.put_behind(rest) {
                    0 => return Put::Full,
                    bytes => given.count(bytes),
                }
                continue;
            };
            let rest = match stream.path() {
                Path::Window => rest,
                Path::Kernel => &rest[..rest.len().min(PIECE_BYTES)],
            };
            match stream.send(rest, &mut tcp) {
                Ok(Sent::Bytes(bytes)) => {
                    let is_low = stream.path() == Path::Kernel;
                    given.by_window += if is_low { 0 } else { bytes };
                    given.count(bytes);
                    full_since = None;
                    if is_low && let Some(next) = given.rest() {
                        self.try_up(writer, socket, next.len().min(PIECE_BYTES));
                    }
                }
                Ok(Sent::SocketFull) => return Put::Full,
                Ok(Sent::WindowFull) => {
                    self.wake(writer);
                    let since = *full_since.get_or_insert_with(Instant::now);
                    let elapsed = since.elapsed();
                    if elapsed < ROOM_SPUN_FOR {
                        std::hint::spin_loop();
                    } else if elapsed < room_within {
                        std::thread::yield_now();
                    } else {
                        self.go_down(writer);
                        writer.rest = REST_BEHIND_FULL;
                    }
                }
                Err(Failure::Socket(TcpError::System(errno))) => return Put::Failed(errno),
                Err(Failure::Socket(error)) => return Put::Failed(self.reset(socket, &error)),
                Err(Failure::Reset(reset)) => return Put::Failed(self.reset(socket, &reset)),
            }
        }
        self.wake(writer);
        Put::All
    }

    /// Rings whoever sleeps at the other end.
    #[inline]
    pub(crate) fn wake(&self, writer: &mut Writer) {
        let Some(agreed) = &writer.slot else { return };
        if writer.needs_fence {
            fence::order_all();
        }
        let wants = agreed.slot.wants_rung();
        if wants != 0 {
            // A set of the other side tells each arrival as an edge.
            agreed.slot.count_sent();
            if writer.needs_fence {
                // A set that has announced itself looks at the count alone.
                fence::order_all();
            }
            self.wake_each(writer, wants);
        }
    }

    fn wake_each(&self, writer: &mut Writer, wants: u64) {
        let Some(agreed) = &writer.slot else { return };
        for (place, last) in writer.sleepers.iter_mut().enumerate() {
            let id = (wants >> (16 * place)) as u16;
            if id == 0 {
                continue;
            }
            let memory = agreed.slot.memory();
            if last.as_ref().is_none_or(|(last, _)| *last != id) {
                *last = Some((id, memory.other_sleeper(id)));
            }
            let Some((_, sleeper)) = last else { continue };
            if let Some(to_ring) = sleeper.to_ring(memory)
                && ring_other(memory, sleeper)
            {
                sleeper.rang(memory, &to_ring);
                self.counts.add(Count::Rings, 1);
                writer.row.iter().for_each(|row| row.rang());
            }
        }
    }
}

impl Given<'_, '_> {
    fn or_again(&self) -> Result<usize, Errno> {
        if self.total > 0 { Ok(self.total) } else { Err(Errno::AGAIN) }
    }
}

/// Gives the kernel the rest of a call that waits, of a connection that became the kernel's meanwhile.
#[cold]
fn send_rest(
    process: &Process,
    socket: BorrowedFd<'_>,
    given: &mut Given<'_, '_>,
    mut ends_at: Option<Option<Instant>>,
) -> Result<usize, Errno> {
    while let Some(rest) = given.rest() {
        let sent = match beeline_tcp::send(socket, rest) {
            Ok(0) => wait_for_room(process, socket, &mut ends_at),
            Ok(bytes) => {
                given.count(bytes);
                Ok(())
            }
            Err(errno) => Err(errno),
        };
        match sent {
            Ok(()) => {}
            Err(errno) if given.total == 0 => return Err(errno),
            // What was sent is said first; the next call finds what is wrong.
            Err(_) => break,
        }
    }
    Ok(given.total)
}

/// Sleeps until the socket has room, or the time-out of its sends is over.
#[cold]
fn wait_for_room(
    process: &Process,
    socket: BorrowedFd<'_>,
    ends_at: &mut Option<Option<Instant>>,
) -> Result<(), Errno> {
    let now = Instant::now();
    let ends_at = match ends_at {
        Some(ends_at) => *ends_at,
        None => {
            let timeout = socket_timeout(socket, Timeout::Send)?;
            *ends_at.insert(timeout.and_then(|timeout| now.checked_add(timeout)))
        }
    };
    let left = ends_at.map(|ends_at| ends_at.saturating_duration_since(now));
    // Who closes the number meanwhile does not wake it: it looks for that now and then.
    let bound = Some(left.map_or(CLOSE_IS_SEEN_WITHIN, |left| left.min(CLOSE_IS_SEEN_WITHIN)));
    match process.sleep(&mut [PollFd::new(&socket, PollFlags::OUT)], bound) {
        Err(Errno::INTR) if ends_at.is_none() && process.restarts_calls() => Ok(()),
        Err(errno) => Err(errno),
        Ok(()) if ends_at.is_some_and(|ends_at| ends_at <= Instant::now()) => Err(Errno::AGAIN),
        Ok(()) => Ok(()),
    }
}
