//! Receiving: from the window without a call of the kernel's, and from the socket as the ledger says.

use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_ledger::{Path, Received, Receiver};
use beeline_socket_rules::{Carrier, Why};
use beeline_stream::{Failure, Incoming, Tcp, TcpError};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, sockopt};

use crate::counts::Count;
use crate::endpoint::{AgreedSlot, Endpoint, In, Reader, Stage};
use crate::inside::{Inside, Way};
use crate::lock::Held;
use crate::numbers::Claim;
use crate::process::{Process, random};
use crate::sockets::Sockets;
use crate::turn::{Step, Turn};
use crate::waiting::{Pause, Waiting};
use crate::windows::WindowReader;

/// An end with bytes that the other side has not taken is looked at so long: whether that side is dead.
const DEATH_IS_KNOWN_WITHIN: Duration = Duration::from_millis(5);

/// As much as one call throws away: a window.
const DISCARDED_BYTES: usize = 64 << 10;

/// What a call has got so far.
struct Got<'a, 'b> {
    out: &'a mut [IoSliceMut<'b>],
    /// The slice that is filled next, and how much of it is filled.
    at: usize,
    filled: usize,
    bytes: usize,
    /// Of them those that came by the window.
    by_window: usize,
    leaves: bool,
}

/// What one look found.
enum Look {
    Some,
    Nothing,
    End,
    Failed(Errno),
    /// Something comes with the next bytes that only the program's own call receives.
    Beside,
}

impl Got<'_, '_> {
    fn room(&mut self) -> Option<&mut [u8]> {
        while self.out.get(self.at).is_some_and(|slice| slice.len() == self.filled) {
            (self.at, self.filled) = (self.at + 1, 0);
        }
        self.out.get_mut(self.at).map(|slice| &mut slice[self.filled..])
    }

    fn count(&mut self, bytes: usize) {
        self.filled += bytes;
        self.bytes += bytes;
    }

    fn is_full(&mut self) -> bool {
        self.room().is_none()
    }
}

impl Endpoint {
    pub(crate) fn receive(
        &'static self,
        sockets: &Sockets,
        claim: Claim,
        socket: BorrowedFd<'_>,
        out: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> Step {
        if let [out] = &mut *out
            && RecvFlags::DONTWAIT.contains(flags)
        {
            let taken = self.take_at_once(claim, out);
            if taken > 0 {
                return Step::Turn(Turn::Done(Ok(taken)));
            }
        }
        let leaves = flags.contains(RecvFlags::PEEK);
        let mut got = Got { out, at: 0, filled: 0, bytes: 0, by_window: 0, leaves };
        if flags.contains(RecvFlags::TRUNC) {
            // Of a stream the kernel throws away what it counts.
            let bytes = got.out.iter().map(|slice| slice.len()).sum::<usize>().min(DISCARDED_BYTES);
            let mut nowhere = vec![0; bytes];
            let out = &mut [IoSliceMut::new(&mut nowhere)];
            return self.receive(sockets, claim, socket, out, flags.difference(RecvFlags::TRUNC));
        }
        if got.is_full() {
            // The kernel waits for bytes and gives none of them.
            let step = self.receive(
                sockets,
                claim,
                socket,
                &mut [IoSliceMut::new(&mut [0])],
                flags | RecvFlags::PEEK,
            );
            return match step {
                Step::Turn(Turn::Done(Ok(_))) => Step::Turn(Turn::Done(Ok(0))),
                step => step,
            };
        }
        self.receive_to(sockets, claim, socket, got, flags)
    }

    fn receive_to(
        &'static self,
        sockets: &Sockets,
        claim: Claim,
        socket: BorrowedFd<'_>,
        mut got: Got<'_, '_>,
        flags: RecvFlags,
    ) -> Step {
        let leaves = got.leaves;
        let waits = !flags.contains(RecvFlags::DONTWAIT) && !self.is_nonblocking.load(Ordering::Relaxed);
        // A peek shows what one path has: it is not waited for more.
        let wants_all = flags.contains(RecvFlags::WAITALL) && !leaves;
        let process = sockets.process();
        let mut waiting = Waiting::new(Inside::new(sockets, self, Way::Receives, socket), waits);
        loop {
            if self.is_read_here() {
                // A handler that has interrupted a receive of its own thread, to which the next byte belongs, and cannot wait for it.
                return Step::Turn(Turn::Done(Err(if waits { Errno::INTR } else { Errno::AGAIN })));
            }
            let mut reader = self.lock_reader();
            if !waiting.inside.holds(claim, &mut reader.inside) {
                return Step::done_or_again(got.bytes);
            }
            let is_kept = waiting.inside.is_kept();
            if let Some(errno) = reader.failed.take_if(|_| got.bytes == 0) {
                return Step::Turn(Turn::Done(Err(errno)));
            }
            if is_kept && !self.goes_on_reading(process, &mut reader) {
                drop(reader);
                return Step::Turn(Turn::Done(receive_rest(waiting.inside.socket(), &mut got, flags)));
            }
            if !is_kept && !self.is_reading(process, &mut reader, claim, socket) {
                drop(reader);
                self.ask_set(process);
                return match got.bytes {
                    0 => Step::of(claim.read()),
                    bytes => Step::Turn(Turn::Done(Ok(bytes))),
                };
            }
            let look = self.look(&mut reader, &mut got, &waiting);
            if matches!(look, Look::Some) && waiting.has_paid() {
                // Looking paid.
                reader.spin_shift = reader.spin_shift.saturating_sub(1);
                reader.row.iter().for_each(|row| row.spin_paid());
            }
            match look {
                Look::Some if got.leaves || !wants_all || got.is_full() => {
                    waiting.inside.leave(&mut reader.inside);
                    return got.done();
                }
                Look::Some => continue,
                Look::End if got.bytes == 0 && !leaves => {
                    drop(reader);
                    return Step::Turn(Turn::Done(self.end_of_stream()));
                }
                Look::End => return got.done(),
                Look::Beside if got.bytes > 0 => return got.done(),
                // The program's own call receives what comes with the bytes.
                Look::Beside if self.stage() != Stage::Forbidden => {
                    self.forbid(Why::Ancillary);
                    continue;
                }
                // Its sender, which breaks the rules, does not let it stop.
                Look::Beside => {}
                Look::Failed(errno) if got.bytes == 0 => return Step::Turn(Turn::Done(Err(errno))),
                Look::Failed(errno) => {
                    reader.failed = Some(errno);
                    return got.done();
                }
                Look::Nothing if got.bytes > 0 && !wants_all => return got.done(),
                Look::Nothing => {}
            }
            match waiting.pause(self, reader) {
                Pause::Again => {}
                Pause::Over(_) if got.bytes > 0 => return got.done(),
                Pause::Over(errno) => return Step::Turn(Turn::Done(Err(errno))),
            }
        }
    }

    /// What a program is told behind the last byte: the end, or a reset where the process at the other end died with unread bytes of ours. The kernel
    /// would see those in its socket; in a window nobody sees them.
    #[cold]
    fn end_of_stream(&self) -> Result<usize, Errno> {
        let started = Instant::now();
        loop {
            let Some(writer) = self.try_lock_writer() else { return Ok(0) };
            let (Some(stream), Some(agreed)) = (&writer.stream, &writer.slot) else { return Ok(0) };
            let Some(peer) = &agreed.peer else { return Ok(0) };
            if self.end_was_told.load(Ordering::Relaxed)
                || stream.path() != Path::Window
                || stream.untaken_bytes() == 0
            {
                return Ok(0);
            }
            if peer.departure().is_some() {
                self.end_was_told.store(true, Ordering::Relaxed);
                return Err(Errno::CONNRESET);
            }
            // It lives and has only shut down, or the kernel has not told of its death yet.
            if started.elapsed() >= DEATH_IS_KNOWN_WITHIN {
                return Ok(0);
            }
            drop(writer);
            std::thread::sleep(DEATH_IS_KNOWN_WITHIN / 20);
        }
    }

    /// Whether it is read by the ledger, from now on if it can be.
    fn is_reading(
        &'static self,
        process: &Process,
        reader: &mut Reader,
        claim: Claim,
        socket: BorrowedFd<'_>,
    ) -> bool {
        if reader.stream.is_none() {
            return !reader.is_stopping && self.begin_reading(process, reader, claim, socket);
        }
        self.goes_on_reading(process, reader)
    }

    /// Whether it is read by the ledger still.
    fn goes_on_reading(&self, process: &Process, reader: &mut Reader) -> bool {
        if !reader.is_stopping && self.stage() == Stage::Forbidden {
            reader.is_stopping = true;
        }
        if reader.is_stopping {
            self.stop_reading(process, reader);
        }
        reader.stream.is_some()
    }

    /// Ends reading by the ledger, if the sender has heard of it and all that it sent before was taken.
    pub(crate) fn stop_reading(&self, process: &Process, reader: &mut Reader) {
        let Some(stream) = &mut reader.stream else { return };
        reader.is_stopping = true;
        // A stream that broke the rules stays, and says so to whoever receives.
        if stream.stop() == Ok(true) {
            self.end_reading(process, reader);
        } else if let Some(agreed) = &reader.slot {
            Self::ring_other_thread(agreed);
        }
    }

    /// Reads by the socket alone from now on.
    pub(crate) fn end_reading(&self, process: &Process, reader: &mut Reader) {
        reader.stream = None;
        self.may_have_news.store(false, Ordering::Relaxed);
        process.give_memory(std::mem::take(&mut reader.window_bytes));
    }

    #[cold]
    fn begin_reading(
        &'static self,
        process: &Process,
        reader: &mut Reader,
        claim: Claim,
        socket: BorrowedFd<'_>,
    ) -> bool {
        let Some((side, agreed)) = self.agreed() else { return false };
        if !self.is_admitted() || !claim.number.has_no_reads() {
            return false;
        }
        let taken = match self.is_unix() {
            true => Ok(claim.number.received_bytes().into()),
            false => Tcp::new(socket, side).taken_bytes(),
        };
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => {
                tracing::debug!(%error, "the kernel does not say what was taken from a connection");
                self.forbid(Why::Disconnected);
                return false;
            }
        };
        let bytes = process.window_bytes();
        if !process.take_memory(bytes) {
            self.forbid(Why::Memory);
            return false;
        }
        let (own, theirs) = agreed.slot.receiver_ends();
        let mut stream: In = Incoming::new(Receiver::new(own, theirs, taken));
        let window = agreed.slot.offer_window((bytes / 64) as u32, random());
        let checked = agreed.checked(agreed.other_cookie, self.cookie.load(Ordering::Relaxed));
        stream.set_window(WindowReader::new(window, checked));
        reader.stream = Some(stream);
        reader.slot = Some(agreed);
        reader.window_bytes = bytes;
        self.may_have_news.store(true, Ordering::Release);
        self.acknowledge(socket);
        true
    }

    /// Has the kernel acknowledge what came by the socket. It waits up to 40 ms for an answer that would take the acknowledgement with it, and that answer goes by a
    /// window; the other side's kernel sends no small message before it is acknowledged (Nagle).
    #[cold]
    pub(crate) fn acknowledge(&self, socket: BorrowedFd<'_>) {
        if !self.is_unix()
            && let Err(error) = sockopt::set_tcp_quickack(socket, true)
        {
            tracing::debug!(%error, "what came by the socket is acknowledged when the kernel does so");
        }
    }

    /// Looks at both paths, and counts what was taken.
    #[inline]
    fn look(&self, reader: &mut Reader, got: &mut Got<'_, '_>, waiting: &Waiting<'_>) -> Look {
        let (before, before_by_window) = (got.bytes, got.by_window);
        let look = self.look_at_both(reader, waiting.inside.socket(), got, waiting);
        if got.bytes > before && !got.leaves {
            let (bytes, by_window) = (got.bytes - before, got.by_window - before_by_window);
            self.counts.add(Count::ReceivedBytes, bytes as u64);
            self.counts.add(Count::ReceivedByWindowBytes, by_window as u64);
            if let Some(row) = &reader.row {
                let carrier = if by_window > 0 { Carrier::Window } else { Carrier::Socket };
                row.receives_by(carrier);
                row.received(carrier, bytes);
            }
            if by_window == 0 {
                self.owes_acknowledgement.store(true, Ordering::Relaxed);
            }
        }
        look
    }

    /// Looks at the window, and at the socket where that is due.
    #[inline]
    fn look_at_both(
        &self,
        reader: &mut Reader,
        socket: BorrowedFd<'_>,
        got: &mut Got<'_, '_>,
        waiting: &Waiting<'_>,
    ) -> Look {
        let Reader { stream: Some(stream), slot, .. } = reader else { return Look::Nothing };
        if got.leaves {
            let Some(room) = got.room() else { return Look::Some };
            let mut kernel = self.socket(socket);
            let found = stream.peek(room, &mut kernel);
            if kernel.comes_beside() && matches!(found, Ok(Received::Bytes(_))) {
                return Look::Beside;
            }
            if stream.is_lost()
                && found != Ok(Received::End)
                && let Some(errno) = self.lose(stream, slot.as_ref(), socket)
            {
                return Look::Failed(errno);
            }
            return self.found(found, got, socket);
        }
        if read_window(stream, got) {
            return Look::Some;
        }
        if stream.path() == Path::Window && !waiting.is_socket_due() && stream.has_entry() == Ok(false) {
            return Look::Nothing;
        }
        let before = got.bytes;
        let Some(room) = got.room() else { return Look::Some };
        let found = stream.receive(room, &mut self.socket(socket));
        if stream.is_lost()
            && found != Ok(Received::End)
            && let Some(errno) = self.lose(stream, slot.as_ref(), socket)
        {
            return Look::Failed(errno);
        }
        match self.found(found, got, socket) {
            Look::Some => {
                if let Some(stream) = &mut reader.stream {
                    if stream.path() == Path::Window {
                        got.by_window += got.bytes - before;
                    }
                    read_window(stream, got);
                }
                Look::Some
            }
            look => look,
        }
    }

    /// A window was written over. Where its sender has a copy, that is asked for; else the connection is reset: the sender does not know, and
    /// may never send again.
    #[cold]
    fn lose(&self, stream: &In, agreed: Option<&AgreedSlot>, socket: BorrowedFd<'_>) -> Option<Errno> {
        if let Some(agreed) = agreed.filter(|agreed| agreed.is_kept) {
            self.ask_anew(agreed);
            // In this order: a sender that sends nothing anew any more has said before what it does.
            let is_refused = agreed.slot.received_returns().is_refused() && stream.has_entry() == Ok(false);
            return is_refused
                .then(|| self.reset(socket, &"its window was written over, and its sender has left it"));
        }
        self.forbid(Why::Lost);
        Some(self.reset(socket, &"its window was written over"))
    }

    fn found(
        &self,
        found: Result<Received, Failure<TcpError>>,
        got: &mut Got<'_, '_>,
        socket: BorrowedFd<'_>,
    ) -> Look {
        match found {
            Ok(Received::Bytes(bytes)) => {
                got.count(bytes);
                Look::Some
            }
            Ok(Received::Nothing) => Look::Nothing,
            Ok(Received::End) => Look::End,
            Err(Failure::Socket(TcpError::System(errno))) => Look::Failed(errno),
            Err(Failure::Socket(TcpError::Beside)) => Look::Beside,
            Err(Failure::Socket(error)) => Look::Failed(self.reset(socket, &error)),
            Err(Failure::Reset(reset)) => Look::Failed(self.reset(socket, &reset)),
        }
    }

    /// Whether bytes lie in its window that no readiness of the kernel's tells of. No system call.
    pub fn has_news(&self) -> bool {
        if !self.may_have_news.load(Ordering::Acquire) || self.is_read_here() {
            return false;
        }
        let look = || {
            let mut reader = self.lock_reader();
            let has_news = self.has_window_news(&mut reader);
            let is_in_window = reader.stream.as_ref().is_some_and(|stream| stream.path() == Path::Window);
            (has_news, is_in_window)
        };
        match &*self.quiet.load() {
            Some(quiet) => !quiet.is_so() && quiet.look(look),
            None => look().0,
        }
    }

    /// Bytes that its program has taken, in the socket and by the window.
    pub fn taken_bytes(&self) -> u64 {
        if self.is_read_here() {
            0
        } else {
            self.lock_reader().stream.as_ref().map_or(0, Incoming::taken_bytes)
        }
    }

    /// Whether a reader has to look before it sleeps.
    pub(crate) fn is_worth_a_look(&self, reader: Held<'_, Reader>) -> bool {
        let mut reader = reader;
        let has_news = self.has_window_news(&mut reader);
        let Some(stream) = &reader.stream else { return true };
        has_news || stream.path() == Path::Window && stream.has_entry().unwrap_or(true)
    }
}

impl Got<'_, '_> {
    fn done(&self) -> Step {
        Step::Turn(Turn::Done(Ok(self.bytes)))
    }
}

/// Receives by the kernel from a socket whose number the program has closed while a call waited.
#[cold]
fn receive_rest(socket: BorrowedFd<'_>, got: &mut Got<'_, '_>, flags: RecvFlags) -> Result<usize, Errno> {
    if got.bytes > 0 {
        return Ok(got.bytes);
    }
    let mut control = RecvAncillaryBuffer::default();
    rustix::net::recvmsg(socket, got.out, &mut control, flags).map(|received| received.bytes)
}

/// Takes what the window has, as far as there is room. Whether it had something.
#[inline]
fn read_window(stream: &mut In, got: &mut Got<'_, '_>) -> bool {
    let before = got.bytes;
    while let Some(room) = got.room() {
        match stream.read_window(room) {
            Some(bytes) => got.count(bytes),
            None => break,
        }
    }
    got.by_window += got.bytes - before;
    got.bytes > before
}
