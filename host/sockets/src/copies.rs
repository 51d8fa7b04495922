//! Connections of which copies are kept: a window that is written over costs no byte, and neither program is told (record 0080).
//!
//! Whoever receives finds that a message is not what was sent, or that bytes are missing, and asks for the rest; the connection is the kernel's from
//! then on. Its sender leaves the window, and gives the socket once more what the other program may not have. A sender leaves so whenever it goes for
//! ever, for whatever reason: nobody need be there any more who could be asked. Where the socket has no room, the rest is a debt (`debts.rs`); where nobody
//! may be there to pay it, the window stays what has those bytes, as without copies.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_domain::HighCopy;
use beeline_ledger::Path;
use beeline_socket_rules::Why;
use beeline_stream::{Failure, TcpError};
use beeline_tcp::State;
use rustix::io::Errno;

use crate::answers;
use crate::debts::{Debt, MOST_BYTES};
use crate::endpoint::{AgreedSlot, Endpoint, Out, Reader, Stage, Writer};
use crate::endpoints::endpoints;
use crate::forks::{forks, has_just_forked};
use crate::lock::Held;
use crate::poll::sleep_for;
use crate::silence::{LOOKED_AT_EVERY, Silence};
use crate::sleepers::ring;

/// Copies of one direction at most: more than a window and both buffers of a socket hold.
pub(crate) const MOST_KEPT_BYTES: usize = MOST_BYTES as usize;
/// How long a process that ends waits for threads that are at its connections.
const LEFT_WITHIN: Duration = Duration::from_millis(20);
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

impl Endpoint {
    /// Has the sender send anew what a window has lost. Its thread is rung: its program may never send again.
    #[cold]
    pub(crate) fn ask_anew(&self, agreed: &AgreedSlot) {
        self.forbid(Why::Broken);
        Self::ring_other_thread(agreed);
    }

    /// Whether a receive has something to tell that no readiness of the kernel's does: bytes, or that the rules are broken or the window is lost. Where
    /// that is sent anew, the socket tells of it.
    pub(crate) fn has_window_news(&self, reader: &mut Reader) -> bool {
        let Reader { stream: Some(stream), slot, .. } = reader else { return false };
        let has_bytes = stream.has_window_bytes().unwrap_or(true);
        if !stream.is_lost() {
            return has_bytes;
        }
        match slot {
            Some(agreed) if agreed.is_kept => {
                self.ask_anew(agreed);
                has_bytes || agreed.slot.received_returns().is_refused()
            }
            _ => true,
        }
    }

    /// Sends by the socket alone from now on, and gives it what the other program may not have of the window. `socket` is the connection's, where the
    /// caller has it. `false`: the process is out of descriptors, and this is to be called again, as the thread in the background does.
    pub(crate) fn leave(&self, writer: &mut Writer, socket: Option<BorrowedFd<'_>>) -> bool {
        let Some(mut stream) = writer.stream.take() else { return true };
        let own = if socket.is_none() { Some(self.duplicate()) } else { None };
        let socket = match (socket, &own) {
            (Some(socket), _) => Some(socket),
            (None, Some(Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM))) => {
                writer.stream = Some(stream);
                answers::postpone();
                return false;
            }
            // Else another descriptor's by now: the kernel has ended this one.
            (None, own) => own.as_ref().and_then(|own| own.as_ref().ok()).map(AsFd::as_fd),
        };
        let was_in_window = stream.path() == Path::Window;
        let has_gone = writer.slot.as_ref().is_none_or(AgreedSlot::has_gone);
        match socket.filter(|socket| !has_gone || is_held_at_other_end(*socket)) {
            None => Self::leave_in_window(writer, stream),
            Some(socket) => match stream.leave(&mut self.socket(socket)) {
                Ok(true) => {}
                Ok(false) => self.owe(writer, stream.take_owed(), socket),
                Err(Failure::Socket(TcpError::System(errno))) => {
                    writer.failed = writer.failed.or(Some(errno));
                }
                Err(failure) => writer.failed = Some(self.reset(socket, &failure)),
            },
        }
        if was_in_window {
            self.count_down(writer);
        }
        true
    }

    /// What the window has stays there, and is not sent anew if that is lost.
    fn leave_in_window(writer: &Writer, mut stream: Out) {
        stream.go_down();
        writer.slot.iter().for_each(|agreed| agreed.slot.sent_returns().refuse_all());
    }

    /// As [`Endpoint::send_no_more`], where this process may not be there when the socket has room: with all that is to be sent anew, or not at all.
    pub(crate) fn send_no_more_here(&self, writer: &mut Writer, socket: Option<BorrowedFd<'_>>) {
        if !self.fits_the_socket(writer, socket)
            && let Some(stream) = writer.stream.take()
        {
            if stream.path() == Path::Window {
                self.count_down(writer);
            }
            Self::leave_in_window(writer, stream);
        }
        self.send_no_more(writer, socket);
        // It could not be left now, and there may be no later.
        writer.stream.take().into_iter().for_each(|stream| Self::leave_in_window(writer, stream));
    }

    fn fits_the_socket(&self, writer: &mut Writer, socket: Option<BorrowedFd<'_>>) -> bool {
        let Writer { stream: Some(stream), slot: Some(agreed), .. } = writer else { return true };
        let bytes = stream.bytes_to_leave();
        // What is lost is not in the window any more.
        if !agreed.is_kept || bytes == 0 || stream.is_asked_anew::<TcpError>() != Ok(false) {
            return true;
        }
        let room = match socket {
            Some(socket) => beeline_tcp::room(socket),
            None => self.duplicate().and_then(beeline_tcp::room),
        };
        room.is_ok_and(|room| bytes <= room)
    }

    /// Has bytes given to the socket before all others, by whoever pays.
    fn owe(&self, writer: &mut Writer, bytes: VecDeque<u8>, socket: BorrowedFd<'_>) {
        let (Some(agreed), Ok(socket)) = (&writer.slot, HighCopy::of(socket)) else {
            writer.failed =
                Some(self.reset(socket, &"there is no descriptor to send its window's bytes with"));
            return;
        };
        writer.debt = Some(Debt::owing(agreed.slot.sent_returns(), bytes, socket).begin());
        ring(&agreed.slot.memory().own_address());
    }

    /// Does what the receiver of a window asks for that it has lost.
    #[inline]
    pub(crate) fn answer_loss(&self, writer: &mut Writer, socket: Option<BorrowedFd<'_>>) {
        let is_kept = writer.slot.as_ref().is_some_and(|agreed| agreed.is_kept);
        if is_kept
            && writer.stream.as_mut().is_some_and(|stream| stream.is_asked_anew::<TcpError>() != Ok(false))
        {
            self.forbid(Why::Broken);
            self.send_no_more(writer, socket);
        }
    }

    /// Whether somebody waits to be sent anew what this process has sent before it forked, and no child has used the connection since.
    pub(crate) fn claims_for_loss(&self) -> bool {
        if self.made_in.load(Ordering::Relaxed) != forks() || !self.is_asked_anew() {
            return false;
        }
        if has_just_forked() {
            answers::postpone();
            return false;
        }
        self.claim()
    }

    fn is_asked_anew(&self) -> bool {
        let mut writer = self.lock_writer();
        let is_kept = writer.slot.as_ref().is_some_and(|agreed| agreed.is_kept);
        is_kept
            && writer.stream.as_mut().is_some_and(|stream| stream.is_asked_anew::<TcpError>() == Ok(true))
            && self.duplicate().is_ok()
    }

    /// Has it looked at whether its bytes are taken, which a sender that sends nothing more does not see by itself.
    #[inline]
    pub(crate) fn watch_for_silence(&self, writer: &mut Writer) {
        if writer.silence.is_none()
            && let (Some(stream), Some(agreed)) = (&writer.stream, &writer.slot)
            && agreed.is_kept
            && stream.path() == Path::Window
        {
            // One call of the kernel's for as long as there is something that is not taken.
            writer.silence = Some(Silence::begin());
            self.is_watched.store(true, Ordering::Relaxed);
            ring(&agreed.slot.memory().own_address());
        }
    }

    /// Goes to the socket where nothing was taken for long: a receiver that misses bytes of the window finds that out there.
    fn look_for_silence(&self, now: Instant) {
        let Some(mut writer) = self.try_lock_writer() else { return };
        if self.stage() == Stage::Free || !self.is_settled() {
            return self.end_silence(&mut writer);
        }
        let Writer { stream: Some(stream), silence: Some(silence), slot: Some(agreed), .. } = &mut *writer
        else {
            return self.end_silence(&mut writer);
        };
        let untaken = stream.untaken_bytes();
        let is_done = untaken == 0 && silence.is_idle(stream.sent_bytes());
        if stream.path() != Path::Window || is_done {
            // A connection that says nothing needs no copies.
            stream.release();
            return self.end_silence(&mut writer);
        }
        if untaken > 0 && silence.lasts(stream.sent_bytes() - untaken, agreed.slot.is_other_asleep(), now) {
            tracing::debug!(number = self.number.load(Ordering::Relaxed), untaken, "bytes are not taken");
            self.go_down(&mut writer);
            self.end_silence(&mut writer);
            self.wake(&mut writer);
        }
    }

    fn end_silence(&self, writer: &mut Writer) {
        writer.silence = None;
        self.is_watched.store(false, Ordering::Relaxed);
    }
}

/// Looks at senders of whose bytes it is not known that they are taken; when to do so again.
pub(crate) fn look_for_silence() -> Option<Duration> {
    let now = Instant::now();
    let watched = || endpoints().filter(|endpoint| endpoint.is_watched.load(Ordering::Relaxed));
    watched().for_each(|endpoint| endpoint.look_for_silence(now));
    watched().next().map(|_| LOOKED_AT_EVERY)
}

/// The process ends, or becomes another program, and with it all descriptors that its programs do not get: what it has kept goes to the sockets. What
/// another process of its family may use is that one's, which has the copy as well; unless somebody has asked for it.
pub(crate) fn leave_all(why: Why) {
    let until = Instant::now() + LEFT_WITHIN;
    // Also what is the kernel's already: its own window may be lost, and the other one not left yet.
    let connected =
        endpoints().filter(|endpoint| matches!(endpoint.stage(), Stage::Agreed | Stage::Forbidden));
    for endpoint in connected.filter(|endpoint| !endpoint.is_written_here()) {
        if !endpoint.is_settled() && !endpoint.claims_for_loss() {
            continue;
        }
        let Some(mut writer) = lock_writer_until(endpoint, until) else { continue };
        if writer.slot.as_ref().is_some_and(|agreed| agreed.is_kept) && writer.stream.is_some() {
            endpoint.forbid(why);
            endpoint.send_no_more_here(&mut writer, None);
        }
    }
}

/// The thread in the background may look at it just now. A thread that sends all the time loses a race against the end of the process.
fn lock_writer_until(endpoint: &Endpoint, until: Instant) -> Option<Held<'_, Writer>> {
    loop {
        match endpoint.try_lock_writer() {
            None if Instant::now() < until => sleep_for(BETWEEN_LOOKS),
            writer => return writer,
        }
    }
}

/// Whether some process has the other end's socket, as a child of one that has ended may.
fn is_held_at_other_end(socket: BorrowedFd<'_>) -> bool {
    beeline_tcp::state(socket)
        .is_ok_and(|state| matches!(state, State::Established | State::FinWait1 | State::FinWait2))
}
