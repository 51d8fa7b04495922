//! The engine as hooks see it: a call on a descriptor is carried out here, or goes to the kernel as it came.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_domain::{ConnectionEnds, DomainConfig};
use beeline_socket_rules::{Settings, Spin, Why};
use beeline_tcp::{Side, State};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, sockopt};

use crate::background::Background;
use crate::carried::Carried;
use crate::copies::leave_all;
use crate::datagrams::{DatagramSocket, table};
use crate::debts;
use crate::endpoint::{Endpoint, Meeting};
use crate::endpoints::{endpoint, endpoints};
use crate::forks::{self, OfProcess};
use crate::give_back::GIVEN_BACK_WITHIN;
use crate::numbers::{self, Claim, Number, Pass, What};
use crate::prepared::prepare;
use crate::process::{Process, Sleep};
use crate::readiness::Sets;
use crate::turn::{Step, Turn};

/// How long a fork waits for bytes that come back, since a socket has last taken some.
const PAID_BEFORE_FORK: Duration = Duration::from_millis(20);

/// Connections of TCP, and sockets of UDP, whose bytes this process carries by windows where the other process does so too.
pub struct Sockets {
    process: Process,
    processes: OfProcess<Arc<Background>>,
}

impl std::fmt::Debug for Sockets {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sockets").field("rules", self.process.rules()).finish_non_exhaustive()
    }
}

impl Sockets {
    /// Nothing is opened, and no thread started, before the first connection is worth it; but the marks of ports, since a handler may call `bind`.
    pub fn new(settings: Settings, domain: DomainConfig) -> Self {
        prepare();
        let sockets = Sockets { process: Process::new(settings, domain), processes: OfProcess::new() };
        if sockets.groups_are_of_host() {
            let _ = sockets.process.marks();
        }
        sockets
    }

    /// The program's epoll sets. Hooks tell them of every set that the program makes, of every change of a registration, and of every number
    /// that is closed or made anew.
    pub fn sets(&self) -> &Sets<Carried> {
        self.process.sets()
    }

    /// How long a call looks before it sleeps.
    pub fn spin(&self) -> Spin {
        self.process.rules().spin
    }

    /// Whether calls are made again that a signal interrupts, as the kernel does it where every handler was installed with `SA_RESTART`.
    pub fn set_restarts_calls(&self, restarts: bool) {
        self.process.set_restarts_calls(restarts);
    }

    /// Has calls sleep in a function of the program's C library, in which a thread may be cancelled: it unwinds through the engine then.
    pub fn set_sleep(&mut self, sleep: Sleep) {
        self.process.set_sleep(sleep);
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) fn background(&self) -> Option<&Arc<Background>> {
        self.processes.get_or_init(|| Arc::new(Background::new()))
    }

    /// The socket is connected or is being connected; this process made it.
    pub fn connected(&self, socket: BorrowedFd<'_>) {
        self.begin(socket, Side::Connected);
    }

    /// The socket was accepted by this process.
    pub fn accepted(&self, socket: BorrowedFd<'_>) {
        self.begin(socket, Side::Accepted);
    }

    /// As [`Sockets::connected`], of a stream of `AF_UNIX` that is connected.
    pub fn unix_connected(&self, socket: BorrowedFd<'_>) {
        self.begin_unix(socket, Side::Connected);
    }

    /// As [`Sockets::accepted`], of a stream of `AF_UNIX`.
    pub fn unix_accepted(&self, socket: BorrowedFd<'_>) {
        self.begin_unix(socket, Side::Accepted);
    }

    /// The number is a listener's: what comes there, comes over a network, and may be told late beside windows.
    pub fn listens(&self, number: RawFd) {
        numbers::number(number).into_iter().for_each(Number::listens);
    }

    fn begin(&self, socket: BorrowedFd<'_>, side: Side) {
        self.forget_number(socket.as_raw_fd());
        if let Some(number) = numbers::number(socket.as_raw_fd()) {
            number.begin(What::Candidate(side));
        }
    }

    fn begin_unix(&self, socket: BorrowedFd<'_>, side: Side) {
        self.forget_number(socket.as_raw_fd());
        if let Some(number) = numbers::number(socket.as_raw_fd()) {
            number.begin_unix(side);
        }
    }

    /// Whether streams of `AF_UNIX` are carried, by the rules.
    pub fn carries_unix(&self) -> bool {
        self.process.rules().unix
    }

    /// Whether a number is a stream of `AF_UNIX` that may be carried, or is.
    pub fn is_unix(&self, number: RawFd) -> bool {
        let Some((what, claim)) = numbers::number(number).map(Number::claim) else { return false };
        match what {
            What::Endpoint(index) => endpoint(index).is_unix(),
            _ => claim.is_of_unix(),
        }
    }

    /// A number has another meaning: what it stood for was closed by a call that nobody saw.
    pub(crate) fn forget_number(&self, number: RawFd) {
        match numbers::number(number).map(Number::forget) {
            Some(What::Endpoint(index)) => self.end_endpoint(endpoint(index), None),
            Some(What::Datagrams(index)) => self.close_datagrams(index, None),
            _ => {}
        }
    }

    /// Whether a number may be a connection of ours: one load.
    #[inline]
    pub fn is_known(&self, number: RawFd) -> bool {
        numbers::number(number).is_some_and(Number::is_known)
    }

    /// The endpoint that a number has, if its connection was worth one.
    pub fn endpoint(&self, number: RawFd) -> Option<&'static Endpoint> {
        match numbers::number(number)?.claim().0 {
            What::Endpoint(index) => Some(endpoint(index)).filter(|endpoint| self.is_own(endpoint)),
            _ => None,
        }
    }

    pub(crate) fn is_own(&self, endpoint: &Endpoint) -> bool {
        endpoint.made_in.load(Ordering::Relaxed) == forks::forks()
    }

    /// The endpoint of a number that the program is about to wait for. Behind a fork it is claimed as by a receive; one of which nobody
    /// knows the next byte is reset, which the kernel tells of.
    pub fn carried_to_wait_for(&self, socket: BorrowedFd<'_>) -> Option<Carried> {
        loop {
            let (what, claim) = numbers::number(socket.as_raw_fd())?.claim();
            let index = match what {
                What::Endpoint(index) => index,
                What::Datagrams(_) => {
                    return self.datagram_socket(socket.as_raw_fd()).map(Carried::Datagrams);
                }
                _ => return None,
            };
            let endpoint = endpoint(index);
            if endpoint.is_settled() {
                return Some(Carried::Connection(endpoint));
            }
            if let Step::Turn(_) = self.shared(endpoint, claim, socket) {
                return None;
            }
        }
    }

    /// The first use of an endpoint behind a fork, in either process. Where both have used it, nobody knows which byte comes next, so nobody gets any.
    #[cold]
    fn shared(&self, endpoint: &'static Endpoint, claim: Claim, socket: BorrowedFd<'_>) -> Step {
        if endpoint.is_plain() {
            let _ = claim.number.forget();
            return Step::Again;
        }
        if self.is_own(endpoint) {
            if endpoint.claim() {
                return Step::Again;
            }
        } else if endpoint.adopt() {
            self.give_back(endpoint, socket, Why::Forked, Instant::now() + GIVEN_BACK_WITHIN);
            return Step::Again;
        }
        let _ = claim.number.forget();
        // Whoever was first makes it one that all of them may use.
        if endpoint.becomes_plain(Instant::now() + GIVEN_BACK_WITHIN) {
            return Step::Again;
        }
        Step::Turn(Turn::Done(Err(endpoint.reset(socket, &"two processes of a family use it"))))
    }

    /// Receives as much as has come, and waits for it as the program would.
    #[inline]
    pub fn receive(&self, socket: BorrowedFd<'_>, out: &mut [IoSliceMut<'_>], flags: RecvFlags) -> Turn {
        self.turn(socket, Claim::read, |endpoint, claim| endpoint.receive(self, claim, socket, out, flags))
    }

    /// Sends as much as there is room for, and waits for room as the program would.
    #[inline]
    pub fn send(&self, socket: BorrowedFd<'_>, bytes: &[IoSlice<'_>], flags: SendFlags) -> Turn {
        self.turn(socket, Claim::write, |endpoint, claim| endpoint.send(self, claim, socket, bytes, flags))
    }

    /// Has the endpoint of a number carry out a call, or counts it among those in the kernel.
    #[inline]
    fn turn(
        &self,
        socket: BorrowedFd<'_>,
        enter_kernel: fn(Claim) -> Option<Pass>,
        mut carry: impl FnMut(&'static Endpoint, Claim) -> Step,
    ) -> Turn {
        loop {
            let Some((what, claim)) = numbers::number(socket.as_raw_fd()).map(Number::claim) else {
                return Turn::Kernel(Pass::uncounted());
            };
            let step = match what {
                What::Unknown
                | What::Left
                | What::Listener
                | What::DatagramCandidate
                | What::Datagrams(_) => {
                    return Turn::Kernel(Pass::uncounted());
                }
                What::OfParent => {
                    claim.take_over();
                    Step::Again
                }
                What::Candidate(side)
                    if self.is_worth_it(claim)
                        && claim.is_alone(socket.as_raw_fd())
                        && self.has_heard_of_ends() =>
                {
                    self.nominate(socket, claim, side)
                }
                What::Candidate(_) => Step::of(enter_kernel(claim)),
                What::Endpoint(index) => {
                    let endpoint = endpoint(index);
                    match endpoint.is_settled() {
                        true => carry(endpoint, claim),
                        false => self.shared(endpoint, claim, socket),
                    }
                }
            };
            if let Step::Turn(turn) = step {
                return turn;
            }
        }
    }

    fn is_worth_it(&self, claim: Claim) -> bool {
        let (messages, bytes) = claim.number.traffic();
        let rules = self.process.rules();
        messages >= rules.begin_after_messages || bytes >= rules.begin_after_bytes
    }

    /// Whether the thread in the background has heard of enough connections that ended to be asked for another one.
    #[cold]
    fn has_heard_of_ends(&self) -> bool {
        self.background().is_none_or(|background| !background.nominating().are_many_unheard())
    }

    /// Makes an endpoint of a connection that was worth it, or leaves it to the kernel for ever.
    #[cold]
    fn nominate(&self, socket: BorrowedFd<'_>, claim: Claim, side: Side) -> Step {
        let made = self.background().and_then(|background| {
            let mut endpoints = background.nominating();
            if !claim.holds() {
                return Some(None);
            }
            let (cookie, ends, is_nonblocking) = look_at(socket, claim.is_of_unix())?;
            if let Err(why) = self.process.decide(&ends) {
                // Where no thread can be started it is taken there.
                drop(endpoints);
                background.list(self.process.place(), socket.as_raw_fd(), ends, why);
                return None;
            }
            let ends = self.process.placed(ends);
            let endpoint = endpoints.take()?;
            let meeting = Meeting { side, is_unix: ends.is_unix(), agreed: None, is_decided: false };
            endpoint.begin(socket.as_raw_fd(), cookie, meeting, is_nonblocking);
            if !claim.becomes(What::Endpoint(endpoint.index)) {
                // Another thread has closed it, or made it the kernel's, since it was looked at.
                endpoint.end(None);
                endpoints.give(endpoint.index);
                return Some(None);
            }
            Some(Some((background, endpoint, cookie, ends)))
        });
        match made {
            Some(Some((background, endpoint, cookie, ends))) => {
                background.meet(self.process.place(), endpoint, cookie, ends);
            }
            Some(None) => {}
            // The kernel's for ever.
            None => _ = claim.number.forget(),
        }
        Step::Again
    }

    /// Leaves a connection to the kernel for ever, as soon as what is in its windows is received.
    pub fn forbid(&self, socket: BorrowedFd<'_>, why: Why) {
        let Some(number) = numbers::number(socket.as_raw_fd()) else { return };
        match number.claim().0 {
            What::Unknown | What::Listener => {}
            What::Candidate(_) | What::OfParent | What::Left | What::DatagramCandidate => _ = number.forget(),
            What::Endpoint(index) => self.forbid_endpoint(endpoint(index), why),
            What::Datagrams(index) => self.forbid_datagrams(index, why),
        }
    }

    /// A child has the connection from now on: what this process does with it is the kernel's. The child's it can be only when this process has closed its number.
    pub fn leave_to_child(&self, socket: BorrowedFd<'_>) {
        let Some(number) = numbers::number(socket.as_raw_fd()) else { return };
        match number.claim().0 {
            What::Candidate(Side::Accepted) => number.become_(What::Left),
            What::Left => {}
            _ => self.forbid(socket, Why::Forked),
        }
    }

    /// As [`Sockets::forbid`], of an endpoint.
    pub fn forbid_endpoint(&self, endpoint: &Endpoint, why: Why) {
        if !self.is_own(endpoint) {
            return;
        }
        endpoint.forbid(why);
        // What a handler has interrupted sees it itself.
        if !endpoint.is_written_here() {
            endpoint.send_no_more(&mut endpoint.lock_writer(), None);
        }
        if !endpoint.is_read_here() {
            endpoint.stop_reading(&self.process, &mut endpoint.lock_reader());
        }
    }

    /// Waits until what the program has sent, and what came back of it, is in the socket, for what the kernel alone is to send behind that. Who must not
    /// wait is told whether it is so.
    pub fn settle_sending(&self, socket: BorrowedFd<'_>, waits: bool) -> bool {
        let Some(endpoint) = self.endpoint(socket.as_raw_fd()) else { return true };
        // A handler that has interrupted a send of its own thread does not wait for it.
        if endpoint.is_written_here() {
            return true;
        }
        let waits = waits && !endpoint.is_nonblocking.load(Ordering::Relaxed);
        let within = if waits { GIVEN_BACK_WITHIN } else { Duration::ZERO };
        while !endpoint.settle_sending(Instant::now() + within) {
            if !waits {
                return false;
            }
        }
        true
    }

    /// The program is about to shut its socket down: what it sent is in order before that. Where the socket has no room for bytes that come before its
    /// end, it is ended behind them, and false is the answer: then the kernel is not asked for the end of that direction.
    #[must_use]
    pub fn shutdown(&self, socket: BorrowedFd<'_>, how: Shutdown) -> bool {
        if how != Shutdown::Write
            && let Some(endpoint) = self.endpoint(socket.as_raw_fd())
            && endpoint.is_unix()
            && !endpoint.is_read_here()
            && !endpoint.is_written_here()
        {
            // Who sends to it is told at once (`EPIPE`), by the socket; what has come is received from there. Where nothing has, nobody is asked, who may be stopped.
            match endpoint.has_news() {
                true => {
                    _ = self.give_back(endpoint, socket, Why::HalfClosed, Instant::now() + GIVEN_BACK_WITHIN)
                }
                false => self.forbid_endpoint(endpoint, Why::HalfClosed),
            }
        }
        if how != Shutdown::Read
            && let Some(endpoint) = self.endpoint(socket.as_raw_fd())
            && !endpoint.is_written_here()
        {
            let mut writer = endpoint.lock_writer();
            endpoint.send_no_more(&mut writer, Some(socket));
            // Its end would come before them.
            if Endpoint::shuts_behind_owed(&mut writer) {
                return false;
            }
        }
        true
    }

    /// The number is about to be closed, or to become another descriptor's. A connection at which calls wait stays until they have returned.
    pub fn close(&self, socket: BorrowedFd<'_>) {
        let Some(number) = numbers::number(socket.as_raw_fd()) else { return };
        let index = match number.forget() {
            What::Endpoint(index) => index,
            What::Datagrams(index) => return self.close_datagrams(index, Some(socket)),
            What::Left | What::Candidate(Side::Accepted) if number.has_one_child() => {
                return forks::leave_to_last_child(socket.as_raw_fd());
            }
            _ => return,
        };
        let endpoint = endpoint(index);
        // A child may use it after this: it is ended by whoever has used it last, and else by the kernel.
        if !endpoint.is_settled() {
            return;
        }
        let one_less = |copies: u32| copies.checked_sub(1);
        if endpoint.copies.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            return;
        }
        if endpoint.is_read_here() || endpoint.is_written_here() {
            // Of a handler: the call that it has interrupted has the socket until it is left.
            endpoint.keep_for_interrupted(socket);
        } else if endpoint.keep(socket) {
            self.end_left(endpoint);
        } else {
            self.end_connection(endpoint, socket);
        }
    }

    /// The socket is about to be closed. Unread bytes of the window make the kernel reset the connection, as unread bytes of the socket do.
    pub(crate) fn end_connection(&self, endpoint: &Endpoint, socket: BorrowedFd<'_>) {
        if endpoint.has_news() {
            if endpoint.is_unix() {
                // What is unread in the socket is the only thing that makes its end a reset there.
                self.give_back(endpoint, socket, Why::Disconnected, Instant::now() + GIVEN_BACK_WITHIN);
            } else {
                let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
            }
        }
        self.end_endpoint(endpoint, Some(socket));
    }

    pub(crate) fn end_endpoint(&self, endpoint: &Endpoint, socket: Option<BorrowedFd<'_>>) {
        if !endpoint.is_settled() {
            return;
        }
        let window_bytes = std::mem::take(&mut endpoint.lock_reader().window_bytes);
        self.process.give_memory(window_bytes);
        let cookie = endpoint.end(socket);
        if let Some(background) = self.background() {
            background.release(endpoint, cookie);
        }
    }

    /// The program made a call wait or not wait (`O_NONBLOCK`).
    pub fn set_nonblocking(&self, number: RawFd, is_nonblocking: bool) {
        if let Some(endpoint) = self.endpoint(number) {
            endpoint.is_nonblocking.store(is_nonblocking, Ordering::Relaxed);
        } else if let Some(datagrams) = self.datagram_socket(number) {
            datagrams.is_nonblocking.store(is_nonblocking, Ordering::Relaxed);
        }
    }

    /// Bytes that a receive would find (`FIONREAD`); `None`: the kernel knows. At most a message of the window is counted.
    pub fn unread_bytes(&self, socket: BorrowedFd<'_>) -> Option<Result<usize, Errno>> {
        let endpoint = self.endpoint(socket.as_raw_fd())?;
        if !endpoint.may_have_news.load(Ordering::Relaxed) {
            return None;
        }
        let mut most = vec![0; self.process.window_bytes()];
        let out = &mut [IoSliceMut::new(&mut most)];
        match self.receive(socket, out, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Turn::Kernel(_) => None,
            Turn::Done(Err(Errno::AGAIN)) => Some(Ok(0)),
            Turn::Done(found) => Some(found),
        }
    }

    /// The process is about to end: it is listed no more.
    pub fn end(&self) {
        leave_all(Why::Disconnected);
        self.settle();
        self.background().into_iter().for_each(|background| background.end());
    }

    /// Waits until what came back to this process is in its sockets, as long as they take some of it now and then: before it ends, or is another program.
    pub fn settle(&self) -> bool {
        debts::pay_all(GIVEN_BACK_WITHIN)
    }

    /// The process is about to be another program, and descriptors of connections that only this one has are closed then: what their windows have is in the
    /// sockets before, where copies are kept. They are the kernel's from then on, also where there is no such program.
    pub fn leave_for_program(&self) -> bool {
        leave_all(Why::Executed);
        self.settle()
    }

    /// This process is about to fork. What comes back to it is in its sockets before that, if that takes a moment only: a child could not pay it. Until
    /// [`Sockets::after_fork`] its thread in the background looks at no endpoint.
    pub fn before_fork(&self) {
        let until = Instant::now() + PAID_BEFORE_FORK;
        loop {
            debts::pay_all(PAID_BEFORE_FORK);
            forks::keep_out();
            // It may have answered a question meanwhile.
            if debts::pay() || Instant::now() >= until {
                break;
            }
            forks::let_in();
        }
        forks::before_fork(numbers::are_any());
    }

    /// This process has forked, or could not.
    pub fn after_fork(&self) {
        forks::after_fork();
    }

    /// This process is a child of fork. Its parent's connections are its parent's; its own begin anew.
    pub fn in_child(&self) {
        forks::in_child();
        endpoints().for_each(Endpoint::drop_kept_of_parent);
        debts::drop_those_of_parent();
        table::sockets().for_each(DatagramSocket::drop_kept_of_parent);
        self.process.begin_anew();
    }
}

/// The cookie and the ends of a connection, and whether its calls wait; `None` where the kernel does not say, or it is none.
fn look_at(socket: BorrowedFd<'_>, is_unix: bool) -> Option<(u64, ConnectionEnds, bool)> {
    let is_established = match is_unix {
        true => beeline_tcp::is_unix_stream(socket),
        false => beeline_tcp::is_tcp(socket) && beeline_tcp::state(socket).ok()? == State::Established,
    };
    if !is_established {
        return None;
    }
    // A cork is as good as none: what it holds is the kernel's, and comes before bytes of the window when the program takes it out.
    if sockopt::socket_oobinline(socket).ok()? {
        return None;
    }
    let cookie = beeline_tcp::cookie(socket).ok()?;
    // Of AF_UNIX the kernel's list says, too, whether it is connected.
    let ends = if is_unix { ConnectionEnds::of_unix(socket) } else { ConnectionEnds::of(socket) }.ok()?;
    let flags = fcntl_getfl(socket).ok()?;
    Some((cookie, ends, flags.contains(OFlags::NONBLOCK)))
}
