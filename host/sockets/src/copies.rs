//! Connections of which copies are kept: a window that is written over costs no byte, and neither program is told (record 0080).
//!
//! Whoever receives finds that a message is not what was sent, or that bytes are missing, and asks for the rest; the connection is the kernel's from
//! then on. Its sender leaves the window, and gives the socket once more what the other program may not have. A sender leaves so whenever it goes for
//! ever, for whatever reason: nobody need be there any more who could be asked. Where the socket has no room, the rest is a debt (`debts.rs`).

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_domain::high_copy;
use beeline_ledger::Path;
use beeline_socket_rules::{Carrier, Why};
use beeline_stream::{Failure, Tcp, TcpError};

use crate::answers;
use crate::counts::Count;
use crate::debts::{Debt, MOST_BYTES};
use crate::endpoint::{AgreedSlot, Endpoint, Reader, Stage, Writer};
use crate::endpoints::endpoints;
use crate::forks::{forks, has_just_forked};
use crate::silence::{LOOKED_AT_EVERY, Silence};
use crate::sleepers::ring;

/// Copies of one direction at most: more than a window and both buffers of a socket hold.
pub(crate) const MOST_KEPT_BYTES: usize = MOST_BYTES as usize;

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
                has_bytes
            }
            _ => true,
        }
    }

    /// Sends by the socket alone from now on, and gives it what the other program may not have of the window. `socket` is the connection's, where the
    /// caller has it.
    pub(crate) fn leave(&self, writer: &mut Writer, socket: Option<BorrowedFd<'_>>) {
        let Some(mut stream) = writer.stream.take() else { return };
        if stream.path() == Path::Window {
            self.counts.add(Count::Downs, 1);
            writer.row.iter().for_each(|row| row.sends_by(Carrier::Socket));
        }
        if writer.slot.as_ref().is_none_or(AgreedSlot::has_gone) {
            // Nobody has a use for it.
            return stream.go_down();
        }
        let own = if socket.is_none() { self.duplicate().ok() } else { None };
        let Some(socket) = socket.or(own.as_ref().map(AsFd::as_fd)) else {
            // Another descriptor's by now: the kernel has ended this one.
            return stream.go_down();
        };
        match stream.leave(&mut Tcp::new(socket, self.side())) {
            Ok(true) => {}
            Ok(false) => self.owe(writer, stream.take_owed(), socket),
            Err(Failure::Socket(TcpError::System(errno))) => writer.failed = writer.failed.or(Some(errno)),
            Err(failure) => writer.failed = Some(self.reset(socket, &failure)),
        }
    }

    /// Has bytes given to the socket before all others, by whoever pays.
    fn owe(&self, writer: &mut Writer, bytes: VecDeque<u8>, socket: BorrowedFd<'_>) {
        let (Some(agreed), Ok(socket)) = (&writer.slot, high_copy(socket)) else {
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
        if stream.path() != Path::Window || untaken == 0 {
            return self.end_silence(&mut writer);
        }
        if silence.lasts(stream.sent_bytes() - untaken, agreed.slot.is_other_asleep(), now) {
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

/// The process ends, or becomes another program, and with it all descriptors that its programs do not get: what it has kept goes to the sockets.
pub(crate) fn leave_all(why: Why) {
    let own = endpoints().filter(|endpoint| endpoint.stage() == Stage::Agreed && endpoint.is_settled());
    for endpoint in own.filter(|endpoint| !endpoint.is_written_here()) {
        // Who sends meanwhile loses a race against the end of the process.
        let Some(mut writer) = endpoint.try_lock_writer() else { continue };
        if writer.slot.as_ref().is_some_and(|agreed| agreed.is_kept) && writer.stream.is_some() {
            endpoint.forbid(why);
            endpoint.send_no_more(&mut writer, None);
        }
    }
}
