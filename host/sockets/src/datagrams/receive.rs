//! Receiving: from the windows of senders, and from the kernel behind what they have.

use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_socket_rules::Why;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags};
use smallvec::SmallVec;

use super::incoming::{Found, Incoming};
use super::kept::Inside;
use super::rest::Rest;
use super::socket::{Counted, DatagramSocket, Reader};
use super::turn::{Datagram, DatagramTurn, Step};
use super::waiting::{Pause, Waiting};
use crate::carried::Carried;
use crate::numbers::Claim;
use crate::process::{Process, random};
use crate::readiness::Begin;

/// While windows have something, the clock is looked at behind so many datagrams, and the kernel after this time.
const CLOCK_EVERY: u32 = 64;
const KERNEL_WITHIN: Duration = Duration::from_micros(50);
/// Datagrams of others that the kernel may have before one of a window that waits for its queue to be empty.
const MOST_BEFORE_WINDOW: u32 = 4096;

/// What a look at windows and the kernel found.
enum Look {
    Found(Datagram),
    /// The kernel has one, which the program's own call takes: of a socket that was forbidden it may say more than the engine does.
    OfKernel,
    Nothing,
}

impl DatagramSocket {
    pub(crate) fn receive(
        &'static self,
        process: &Process,
        claim: Claim,
        socket: BorrowedFd<'_>,
        out: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> Step {
        let leaves = flags.contains(RecvFlags::PEEK);
        let waits = !flags.contains(RecvFlags::DONTWAIT) && !self.is_nonblocking.load(Ordering::Relaxed);
        let mut inside = Inside::new(self, process);
        let mut waiting = Waiting::new(process, socket, waits);
        loop {
            let mut reader = self.lock_reader();
            if !claim.holds() {
                drop(reader);
                return match inside.kept() {
                    Some(kept) => self.receive_kept(waiting.at(kept.as_fd()), kept.as_fd(), out, leaves),
                    None => Step::Again,
                };
            }
            let Reader { rest, incoming, .. } = &mut *reader;
            if rest.is_kernels(incoming, || claim.number.has_no_reads()) {
                rest.note_taken(false);
                // Under the lock: who ends the rest sees that a call is in the kernel.
                return Step::of(claim.read());
            }
            // Not during a rest: a new sender would have to be asked, too.
            if !reader.rest.is_on() && self.has_agreed.load(Ordering::Acquire) {
                self.offer_windows(process, &mut reader, claim);
            }
            if reader.incoming.is_empty() {
                // Under the lock: who offers a window sees that a call is in the kernel.
                let step = Step::of(claim.read());
                drop(reader);
                self.ask_set(process);
                return step;
            }
            let is_kernel_due =
                waiting.is_kernel_due() || waiting.is_first_look() && !reader.rest.uses_windows();
            let found = self.look(&mut reader, socket, out, leaves, is_kernel_due);
            if !matches!(found, Ok(Look::Found(Datagram { is_of_window: true, .. }) | Look::Nothing))
                || waiting.is_kernel_due()
            {
                // Not for each look at windows.
                self.prune(process, &mut reader);
            }
            match found {
                Ok(Look::Nothing) => {}
                Ok(Look::OfKernel) => return Step::of(claim.read()),
                Ok(Look::Found(datagram)) => {
                    if datagram.is_of_window
                        && let Some(waited) = waiting.spun()
                    {
                        let Reader { rest, incoming, .. } = &mut *reader;
                        rest.note_wait(incoming, waited, process.rules().spin);
                    }
                    if !leaves {
                        reader.rest.note_taken(datagram.is_of_window);
                        self.count(Counted::Received);
                        if datagram.is_of_window {
                            self.count(Counted::ReceivedByWindow);
                        }
                    }
                    return Step::Turn(DatagramTurn::Done(Ok(datagram)));
                }
                Err(errno) => return Step::Turn(DatagramTurn::Done(Err(errno))),
            }
            inside.enter(&mut reader.inside);
            match waiting.pause(self, reader) {
                Pause::Again => {}
                Pause::Over(errno) => return Step::Turn(DatagramTurn::Done(Err(errno))),
            }
        }
    }

    /// Goes on by a copy of the socket, whose number was closed while the call waited. Nobody is offered a window any more.
    #[cold]
    fn receive_kept(
        &'static self,
        mut waiting: Waiting<'_>,
        socket: BorrowedFd<'_>,
        out: &mut [IoSliceMut<'_>],
        leaves: bool,
    ) -> Step {
        loop {
            let mut reader = self.lock_reader();
            let found = match self.look(&mut reader, socket, out, leaves, true) {
                Ok(Look::Found(datagram)) => Ok(Some(datagram)),
                Ok(Look::OfKernel) => receive_from_kernel(socket, out, flags_of(leaves)),
                Ok(Look::Nothing) => Ok(None),
                Err(errno) => Err(errno),
            };
            match found {
                Ok(None) => {}
                Ok(Some(datagram)) => return Step::Turn(DatagramTurn::Done(Ok(datagram))),
                Err(errno) => return Step::Turn(DatagramTurn::Done(Err(errno))),
            }
            match waiting.pause(self, reader) {
                Pause::Again => {}
                Pause::Over(errno) => return Step::Turn(DatagramTurn::Done(Err(errno))),
            }
        }
    }

    /// Whether its set has room for its windows, or no set watches it.
    pub(crate) fn is_admitted(&self) -> bool {
        // Windows begin behind this look and the next one, at calls in the kernel: pairs with `find`.
        self.admitted.load(Ordering::SeqCst) == self.cookie() && !self.is_forbidden()
    }

    /// Asks the set that watches it, unless it was asked, once a window could be offered. No lock is held: the set looks at windows under its own.
    fn ask_set(&'static self, process: &Process) {
        if !self.has_agreed.load(Ordering::Acquire) || self.is_forbidden() || self.is_admitted() {
            return;
        }
        // First: a registration that is made meanwhile looks at it.
        self.admitted.store(self.cookie(), Ordering::SeqCst);
        match process.sets().begin(self.number.load(Ordering::Relaxed), Carried::Datagrams(self)) {
            Begin::Yes => {}
            Begin::NotYet => self.admitted.store(0, Ordering::SeqCst),
            Begin::Never(refusal) => {
                self.admitted.store(0, Ordering::SeqCst);
                self.forbid(refusal.into());
            }
        }
    }

    /// Offers a window to each sender that may have one.
    #[cold]
    fn offer_windows(&self, process: &Process, reader: &mut Reader, claim: Claim) {
        if self.is_forbidden() {
            return;
        }
        if reader.incoming.is_empty() && !(self.is_admitted() && claim.number.has_no_reads()) {
            return;
        }
        self.has_agreed.store(false, Ordering::Relaxed);
        for flow in self.flows() {
            let is_offered = reader.incoming.iter().any(|incoming| std::ptr::eq(&*incoming.flow, &*flow));
            if is_offered || !flow.is_heard_enough() {
                continue;
            }
            let Some(live) = flow.live() else {
                if flow.has_agreed() {
                    // Looked at again with the next call. The words may be in order by now, so they are not asked once more.
                    self.has_agreed.store(true, Ordering::Relaxed);
                }
                continue;
            };
            let bytes = process.window_bytes();
            if !process.take_memory(bytes) {
                flow.forbid(Why::Memory);
                continue;
            }
            self.give_bells(live.slot());
            self.may_have_news.store(true, Ordering::Release);
            reader.incoming.push(Incoming::offer(&flow, live, bytes, random()));
        }
    }

    /// Lets go of windows whose senders have ended.
    #[cold]
    fn prune(&self, process: &Process, reader: &mut Reader) {
        let mut at = 0;
        while at < reader.incoming.len() {
            if reader.incoming[at].is_over() {
                self.drop_window(process, reader, at);
            } else {
                at += 1;
            }
        }
        if reader.incoming.is_empty() {
            reader.rest = Rest::default();
            self.admitted.store(0, Ordering::SeqCst);
            self.may_have_news.store(false, Ordering::Release);
        }
    }

    fn drop_window(&self, process: &Process, reader: &mut Reader, at: usize) {
        let gone = reader.incoming.swap_remove(at);
        self.take_bells(&gone);
        process.give_memory(gone.window_bytes);
        // Both give back the place.
        self.lock_writer().outgoing.retain(|outgoing| !std::ptr::eq(&*outgoing.flow, &*gone.flow));
        gone.flow.leave();
        reader.next = 0;
    }

    /// Looks at windows, and at the kernel where that is due.
    #[inline]
    fn look(
        &self,
        reader: &mut Reader,
        socket: BorrowedFd<'_>,
        out: &mut [IoSliceMut<'_>],
        leaves: bool,
        is_kernel_due: bool,
    ) -> Result<Look, Errno> {
        if reader.taken >= CLOCK_EVERY {
            reader.taken = 0;
            if reader.kernel_looked_at.is_none_or(|at| at.elapsed() >= KERNEL_WITHIN) {
                let found = self.look_at_kernel(reader, socket, out, leaves)?;
                if !matches!(found, Look::Nothing) {
                    return Ok(found);
                }
            }
        }
        if let Some(datagram) = look_at_windows(reader, out, leaves) {
            return Ok(Look::Found(datagram));
        }
        let is_waited_for = reader.incoming.iter().any(Incoming::waits_for_kernel);
        if !is_kernel_due && !is_waited_for {
            return Ok(Look::Nothing);
        }
        match self.look_at_kernel(reader, socket, out, leaves)? {
            Look::Nothing if is_waited_for => {
                Ok(look_at_windows(reader, out, leaves).map_or(Look::Nothing, Look::Found))
            }
            found => Ok(found),
        }
    }

    /// Bytes of the datagram that a receive would find in a window (`FIONREAD`); `None`: the kernel knows.
    pub(crate) fn next_length(&self) -> Option<usize> {
        if !self.may_have_news.load(Ordering::Relaxed) {
            return None;
        }
        self.lock_reader().incoming.iter_mut().find_map(Incoming::next_length)
    }

    /// Takes a datagram from the kernel, unless the window of its sender has one that was sent before.
    fn look_at_kernel(
        &self,
        reader: &mut Reader,
        socket: BorrowedFd<'_>,
        out: &mut [IoSliceMut<'_>],
        leaves: bool,
    ) -> Result<Look, Errno> {
        reader.kernel_looked_at = Some(Instant::now());
        let questions = self.questions(reader);
        // The sender's window is looked at behind this, so that nothing is passed over that it stored before.
        let Some(seen) = receive_from_kernel(socket, &mut [], RecvFlags::PEEK)? else {
            reader.before_window = 0;
            reader.incoming.iter_mut().for_each(Incoming::kernel_is_empty);
            answer(reader, &questions);
            return Ok(Look::Nothing);
        };
        // One sender may have several: of each group that both are of, and one that it has left.
        for incoming in &mut reader.incoming {
            if Some(incoming.flow.remote) == seen.from
                && let Some(datagram) = look_at_window(incoming, out, leaves)
            {
                return Ok(Look::Found(datagram));
            }
        }
        if reader.incoming.iter().any(Incoming::waits_for_kernel) {
            reader.before_window += 1;
            if reader.before_window > MOST_BEFORE_WINDOW {
                reader.before_window = 0;
                reader.incoming.iter_mut().for_each(Incoming::kernel_is_empty);
            }
        }
        if self.is_forbidden() {
            return Ok(Look::OfKernel);
        }
        let found = receive_from_kernel(socket, out, flags_of(leaves))?.map_or(Look::Nothing, Look::Found);
        // A program that polls may not come before the next one is there.
        let questions = self.questions(reader);
        if !questions.is_empty() && receive_from_kernel(socket, &mut [], RecvFlags::PEEK) == Ok(None) {
            answer(reader, &questions);
        }
        Ok(found)
    }

    /// Which senders would like to know that the kernel's queue is empty, by their places: those to groups alone ask. Before it is looked at: what they sent before they asked is there then, or was taken.
    #[inline]
    fn questions(&self, reader: &Reader) -> SmallVec<[(usize, u64); 4]> {
        if !self.is_for_groups() {
            return SmallVec::new();
        }
        let asked = reader.incoming.iter().enumerate();
        asked.filter_map(|(at, incoming)| Some((at, incoming.question()?))).collect()
    }
}

fn answer(reader: &Reader, questions: &[(usize, u64)]) {
    questions.iter().for_each(|(at, question)| reader.incoming[*at].answer(*question));
}

#[inline]
fn look_at_windows(reader: &mut Reader, out: &mut [IoSliceMut<'_>], leaves: bool) -> Option<Datagram> {
    let count = reader.incoming.len();
    for ahead in 0..count {
        let at = if reader.next + ahead < count { reader.next + ahead } else { reader.next + ahead - count };
        if let Some(datagram) = look_at_window(&mut reader.incoming[at], out, leaves) {
            if !leaves {
                reader.next = if at + 1 < count { at + 1 } else { 0 };
                reader.taken += 1;
            }
            return Some(datagram);
        }
    }
    None
}

#[inline]
fn look_at_window(incoming: &mut Incoming, out: &mut [IoSliceMut<'_>], leaves: bool) -> Option<Datagram> {
    match incoming.receive(out, leaves) {
        Ok(Found::Datagram { copied, length }) => {
            Some(Datagram { copied, length, from: Some(incoming.flow.remote), is_of_window: true })
        }
        Ok(Found::Nothing | Found::BehindKernel) => None,
        Err(error) => {
            // It ends, and is let go of with the next look before a sleep.
            tracing::debug!(%error, remote = %incoming.flow.remote, "a window of datagrams is broken");
            incoming.flow.forbid(Why::Broken);
            incoming.end();
            None
        }
    }
}

fn flags_of(leaves: bool) -> RecvFlags {
    if leaves { RecvFlags::PEEK } else { RecvFlags::empty() }
}

/// What the kernel has at once.
fn receive_from_kernel(
    socket: BorrowedFd<'_>,
    out: &mut [IoSliceMut<'_>],
    flags: RecvFlags,
) -> Result<Option<Datagram>, Errno> {
    let room = out.iter().map(|place| place.len()).sum();
    let mut control = RecvAncillaryBuffer::new(&mut []);
    let flags = flags | RecvFlags::DONTWAIT | RecvFlags::TRUNC;
    match rustix::net::recvmsg(socket, out, &mut control, flags) {
        Ok(received) => {
            let from = received.address.and_then(|from| SocketAddr::try_from(from).ok());
            let (copied, length) = (received.bytes.min(room), received.bytes);
            Ok(Some(Datagram::of_kernel(copied, length, from)))
        }
        Err(Errno::AGAIN) => Ok(None),
        Err(errno) => Err(errno),
    }
}
