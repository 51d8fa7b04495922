//! What is said over a connection, on the background thread: requests answered, answers delivered, goodbyes heard.
//!
//! Every packet is from a process that is not trusted; one that is malformed or out of place ends its connection.

use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use beeline_mmio::{Pace, is_small_memory};
use rustix::io::Errno;

use crate::Peer;
use crate::disposer::Disposer;
use crate::inbox::Command;
use crate::links::Role;
use crate::mailbox::Mail;
use crate::notices::Going;
use crate::peer::Signalled;
use crate::protocol::Departure;
use crate::service::{Answer, Refusal, Reply, Work, guarded};
use crate::shares::Process;
use crate::socket::{self, PacketBuffer, Received};
use crate::table::{Offered, Table};
use crate::wire::{Header, Kind, MAX_FDS, MAX_NOTIFICATION_BYTES, MAX_PAYLOAD_BYTES, WAKE_ALL, WireError};

/// Unread packets of a dead process that are looked at: far more than an honest one leaves, since it may have no more
/// notifications untaken than [`crate::MAX_UNTAKEN_NOTIFICATIONS`]. Children that it left may go on sending.
const MAX_LAST_WORDS: usize = 1024;

/// Packets of one connection that are read at a time.
const PACKETS: usize = 16;

/// Memory whose descriptor is closed where it was sent: to give back so many bytes takes less time than to wake somebody who does.
const SMALL_FD_BYTES: usize = 32 << 10;

/// What a packet was about: enough to answer it.
struct Request<'a> {
    header: Header,
    payload: &'a [u8],
    fds: Passed,
}

/// Descriptors that a peer has passed. Those that nobody takes are closed elsewhere: that may wait for the peer.
struct Passed {
    fds: Vec<OwnedFd>,
    disposer: Disposer,
}

impl Passed {
    fn is_empty(&self) -> bool {
        self.fds.is_empty()
    }

    fn take(mut self) -> Vec<OwnedFd> {
        mem::take(&mut self.fds)
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        if !self.fds.is_empty() {
            self.disposer.dispose(mem::take(&mut self.fds));
        }
    }
}

fn unproved() -> Refusal {
    Refusal::new(
        "this process has not shown a token that was exchanged with it and is good; a token is good once",
    )
}

impl Table {
    /// Takes some packets from a connection; more wait for the next round, so that nobody else starves. Deaths come before each.
    pub(crate) fn read(&mut self, number: u64, buffer: &mut PacketBuffer) {
        for packet in 0..PACKETS {
            if packet > 0 {
                self.deaths(buffer);
            }
            if !self.read_one(number, buffer) {
                return;
            }
        }
    }

    /// Takes one packet; whether there was one, after which the connection may have ended.
    pub(crate) fn read_one(&mut self, number: u64, buffer: &mut PacketBuffer) -> bool {
        let Some(link) = self.links.get_mut(number) else { return false };
        let (channel, is_busy) = (Arc::clone(&link.channel), link.is_busy);
        // The event may be room in the socket for what waits.
        let Ok(socket) = channel.live() else {
            self.lost(number);
            return false;
        };
        match channel.outbox().pass_on(socket.as_fd()) {
            // A broken pipe is followed by a hang-up, which tells how the peer went.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
            Err(error) => {
                tracing::warn!(%error, "what waits for a peer cannot be sent; it is disconnected");
                self.end(number, Departure::Closed);
                return false;
            }
        }
        if is_busy {
            // Nothing is read before it has its answer; a hang-up would be told again and again.
            if channel.is_hung_up() {
                self.links.unwatch(number);
            }
            return false;
        }
        match socket::receive(socket.as_fd(), buffer) {
            Received::Packet(header, payload, fds) => {
                let fds = self.passed(fds);
                let is_for_all = (header.kind, header.serial) == (Kind::Wake, WAKE_ALL);
                self.packet(number, Request { header, payload, fds });
                // After every packet, a wake-up or not: see `Peer::signal_listeners`.
                if let Some(peer) = self.links.get_mut(number).and_then(|link| link.peer.as_ref()) {
                    peer.signal_listeners(if is_for_all { Signalled::All } else { Signalled::Taken });
                }
                self.heard(number);
                return true;
            }
            Received::Malformed(error, fds) => {
                drop(self.passed(fds));
                self.broken(number, error);
            }
            Received::Nothing => {}
            Received::End(fds) => {
                drop(self.passed(fds));
                self.hung_up(number);
            }
        }
        false
    }

    fn passed(&self, fds: Vec<OwnedFd>) -> Passed {
        Passed { fds, disposer: self.disposer.clone() }
    }

    /// Declares the deaths that the kernel has told of.
    pub(crate) fn deaths(&mut self, buffer: &mut PacketBuffer) {
        loop {
            let dead = self.links.dead();
            if dead.is_empty() {
                return;
            }
            dead.into_iter().for_each(|number| self.process_ended(number, buffer));
        }
    }

    /// The process at the other end has ended. One that said goodbye first did not die on us. What an owner told us before
    /// it died still counts.
    pub(crate) fn process_ended(&mut self, number: u64, buffer: &mut PacketBuffer) {
        let mut unasked = Vec::new();
        for _ in 0..MAX_LAST_WORDS {
            let Some(link) = self.links.get_mut(number) else { break };
            let is_owner = matches!(link.role, Role::Client(_));
            let channel = Arc::clone(&link.channel);
            let Ok(socket) = channel.live() else { break };
            match socket::receive(socket.as_fd(), buffer) {
                Received::Packet(header, payload, fds) if is_owner || header.kind == Kind::Bye => {
                    let fds = self.passed(fds);
                    self.packet(number, Request { header, payload, fds });
                }
                // A request that nobody waits for any more.
                Received::Packet(_, _, fds) => unasked.extend(fds),
                Received::Malformed(_, fds) | Received::End(fds) => {
                    unasked.extend(fds);
                    break;
                }
                Received::Nothing => break,
            }
        }
        drop(self.passed(unasked));
        self.end(number, Departure::Died);
    }

    /// The socket is no longer ours to read: what comes behind its number is not the peer's.
    fn lost(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(number) else { return };
        tracing::error!(
            pid = link.evidence.pid(),
            "the socket of a connection was closed or replaced in this process"
        );
        if let Role::Client(mailbox) = &link.role {
            mailbox.notices.end(Going::Lost);
        }
        self.end(number, Departure::Closed);
    }

    fn hung_up(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(number) else { return };
        if link.evidence.has_died() {
            // Everything it said before was read: there was no goodbye.
            self.end(number, Departure::Died);
        } else if link.channel.is_closed_here() || matches!((&link.role, &link.peer), (Role::Served(_), None))
        {
            self.end(number, Departure::Closed);
        } else if link.evidence.still_runs() {
            // It closed its end without a goodbye, as exec does: it was read after the hang-up that it runs.
            self.end(number, Departure::Closed);
        } else {
            self.links.hung_up(number, Instant::now());
        }
    }

    fn packet(&mut self, number: u64, request: Request<'_>) {
        let Some(link) = self.links.get_mut(number) else { return };
        match (&link.role, request.header.kind) {
            (_, Kind::Wake)
                if link.peer.is_some() && request.payload.is_empty() && request.fds.is_empty() =>
            {
                // Those of the connection itself are looked for after every packet.
                let branch = link.peer.as_ref().and_then(|peer| peer.find_branch(request.header.serial));
                if let Some(branch) = branch {
                    branch.signal_listeners(Signalled::All);
                }
            }
            (role, Kind::Bye) => {
                if let Role::Client(mailbox) = role {
                    mailbox.notices.goodbye(request.header.serial);
                }
                self.end(number, Departure::Closed);
            }
            (Role::Served(offer), Kind::Prove) if link.peer.is_none() && request.fds.is_empty() => {
                let offer = *offer;
                self.prove(number, offer, &request);
            }
            (Role::Served(_), Kind::Hello) if link.must_prove => {
                self.respond(number, request.header.serial, Err(unproved()));
                self.end(number, Departure::Closed);
            }
            (Role::Served(offer), Kind::Hello) if link.peer.is_none() => {
                let offer = *offer;
                self.hello(number, offer, request);
            }
            (Role::Served(offer), Kind::Call) if link.peer.is_some() => {
                let offer = *offer;
                self.call(number, offer, request);
            }
            (Role::Served(offer), Kind::Tell)
                if link.peer.is_some()
                    && request.payload.len() <= MAX_NOTIFICATION_BYTES
                    && request.fds.is_empty() =>
            {
                let offer = *offer;
                self.told(number, offer, request.payload);
            }
            (Role::Served(offer), Kind::Taken)
                if link.peer.is_some() && request.payload.is_empty() && request.fds.is_empty() =>
            {
                let offer = *offer;
                self.taken(number, offer, request.header.serial);
            }
            (Role::Client(_), Kind::Reply | Kind::Refusal) => self.answer(number, request),
            (Role::Client(mailbox), Kind::Notify) => {
                let (mut fds, mailbox) = (request.fds, Arc::clone(mailbox));
                let received = mailbox.notices.receive(request.header.serial, request.payload, &mut fds.fds);
                if let Err(error) = received {
                    self.broken(number, error);
                } else if let Some(taker) = mailbox.taker() {
                    taker.notified();
                    if Arc::strong_count(&taker) == 1 {
                        // Everybody else has dropped it meanwhile, and its memory with it.
                        self.disposer.dispose(taker);
                    }
                }
            }
            _ => self.broken(number, request.header.out_of_place()),
        }
    }

    /// A client shows a secret; one that is not good ends its connection.
    fn prove(&mut self, number: u64, offer: u64, request: &Request<'_>) {
        let Some(link) = self.links.get_mut(number) else { return };
        let admissions = self.offers.get(&offer).and_then(|offered| offered.options.admissions.as_ref());
        let answer = admissions.and_then(|admissions| admissions.prove(&link.evidence, request.payload));
        link.must_prove &= answer.is_none();
        let is_good = answer.is_some();
        let result = answer.map(Reply::new).ok_or_else(unproved);
        self.respond(number, request.header.serial, result);
        if !is_good {
            self.end(number, Departure::Closed);
        }
    }

    /// The first packet of a client.
    fn hello(&mut self, number: u64, offer: u64, request: Request<'_>) {
        let Some(link) = self.links.get_mut(number) else { return };
        let header = request.header;
        if link.evidence.confirm(header.started_ticks).is_err() {
            self.end(number, Departure::Died);
            return;
        }
        let peer = Peer::new(Arc::clone(&link.evidence), Arc::clone(&link.channel), header.membarrier);
        let Some(Offered { service, .. }) = self.offers.get_mut(&offer) else { return };
        let result = guarded(|| service.connected(&peer, request.payload, request.fds.take()));
        match result {
            Ok(answer) => {
                link.peer = Some(peer);
                link.deadline = None;
                self.give(number, header.serial, answer, true);
            }
            Err(refusal) => {
                // The service may have kept a clone; for it, too, this peer is over.
                peer.depart(Departure::Closed);
                self.respond(number, header.serial, Err(refusal));
                self.end(number, Departure::Closed);
            }
        }
    }

    /// A later request of a client.
    fn call(&mut self, number: u64, offer: u64, request: Request<'_>) {
        let Some(link) = self.links.get_mut(number) else { return };
        let (Some(peer), Some(offered)) = (&link.peer, self.offers.get_mut(&offer)) else { return };
        let result = guarded(|| offered.service.requested(peer, request.payload, request.fds.take()));
        match result {
            Ok(answer) => self.give(number, request.header.serial, answer, false),
            Err(refusal) => self.respond(number, request.header.serial, Err(refusal)),
        }
    }

    /// What a client tells.
    fn told(&mut self, number: u64, offer: u64, message: &[u8]) {
        let Some(link) = self.links.get_mut(number) else { return };
        if let (Some(peer), Some(offered)) = (&link.peer, self.offers.get_mut(&offer)) {
            // A panic is reported by `guarded`; there is nobody to refuse here.
            let _ = guarded(|| {
                offered.service.told(peer, message);
                Ok(())
            });
        }
    }

    /// Something of a client was read.
    fn heard(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(number) else { return };
        let (Role::Served(offer), Some(peer)) = (&link.role, &link.peer) else { return };
        if let Some(offered) = self.offers.get_mut(offer) {
            // A panic is reported by `guarded`; there is nobody to refuse here.
            let _ = guarded(|| {
                offered.service.heard(peer);
                Ok(())
            });
        }
    }

    fn give(&mut self, number: u64, serial: u32, answer: Answer, is_first: bool) {
        match answer {
            Answer::Now(reply) => self.respond(number, serial, Ok(reply)),
            Answer::Then(reply, afterwards) => {
                self.respond(number, serial, Ok(reply));
                // A panic is reported by `guarded`; whoever asked has its answer.
                let _ = guarded(|| {
                    afterwards();
                    Ok(())
                });
            }
            Answer::Later(work) => self.have_done(number, serial, work, is_first),
        }
    }

    /// Has a worker do what gives an answer. Until it is done, nothing more is read of the connection.
    fn have_done(&mut self, number: u64, serial: u32, work: Work, is_first: bool) {
        let Some(link) = self.links.get_mut(number) else { return };
        let Some(peer) = link.peer.clone() else { return };
        let process = Process::of(&peer);
        self.links.pause(number);
        let inbox = Arc::clone(&self.inbox);
        let job = move |pace: &dyn Pace| {
            let result = if peer.is_alive() {
                guarded(|| work(pace))
            } else {
                drop(work);
                Err(Refusal::new("nobody waits for the answer"))
            };
            drop(peer);
            inbox.post(Command::Answered { link: number, serial, is_first, result });
        };
        self.workers.submit(process, Box::new(job));
    }

    /// The work behind an answer is done.
    pub(crate) fn answered(
        &mut self,
        number: u64,
        serial: u32,
        is_first: bool,
        result: Result<Reply, Refusal>,
    ) {
        if self.worked_in_vain(number) {
            self.disposer.dispose(result);
            return;
        }
        if let Err(error) = self.links.resume(number) {
            tracing::warn!(%error, "a connection cannot be read again; it is closed");
            self.end(number, Departure::Closed);
            return;
        }
        // The refusal of a first request ends the connection.
        let is_over = is_first && result.is_err();
        if let Some(peer) = self.links.get_mut(number).and_then(|link| link.peer.as_ref().filter(|_| is_over))
        {
            peer.depart(Departure::Closed);
        }
        self.respond(number, serial, result);
        if is_over {
            self.end(number, Departure::Closed);
        }
    }

    /// A client has taken notifications.
    fn taken(&mut self, number: u64, offer: u64, count: u32) {
        let Some(link) = self.links.get_mut(number) else { return };
        match link.channel.outbox().client_took(count) {
            Ok(false) => {}
            Ok(true) => {
                if let (Some(peer), Some(offered)) = (&link.peer, self.offers.get_mut(&offer)) {
                    // A panic is reported by `guarded`; there is nobody to refuse here.
                    let _ = guarded(|| {
                        offered.service.has_room(peer);
                        Ok(())
                    });
                }
            }
            Err(error) => self.broken(number, error),
        }
    }

    fn respond(&mut self, number: u64, serial: u32, result: Result<Reply, Refusal>) {
        let Some(link) = self.links.get_mut(number) else { return };
        let result = result.and_then(|reply| {
            if reply.payload.len() <= MAX_PAYLOAD_BYTES && reply.fds.len() <= MAX_FDS {
                return Ok(reply);
            }
            let (bytes, fds) = (reply.payload.len(), reply.fds.len());
            Err(Refusal::new(format!(
                "the service's answer of {bytes} bytes and {fds} descriptors is too large"
            )))
        });
        let sent = match &result {
            Ok(reply) => {
                let fds: Vec<_> = reply.fds.iter().map(AsFd::as_fd).collect();
                let header = self.identity.header(Kind::Reply, serial);
                link.channel.live().and_then(|socket| {
                    link.channel.outbox().answer(socket.as_fd(), header, &reply.payload, &fds)
                })
            }
            Err(refusal) => {
                let header = self.identity.header(Kind::Refusal, serial);
                link.channel.live().and_then(|socket| {
                    link.channel.outbox().answer(socket.as_fd(), header, refusal.to_wire(), &[])
                })
            }
        };
        if let Ok(Reply { fds, .. }) = result
            && !fds.iter().all(|fd| is_small_memory(fd.as_fd(), SMALL_FD_BYTES))
        {
            // The last descriptor of memory that nobody has mapped any more frees it.
            self.disposer.dispose(fds);
        }
        match sent {
            // A broken pipe is followed by a hang-up, which tells how the peer went.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
            Err(error) => {
                tracing::warn!(%error, "a peer does not take its answer; it is disconnected");
                self.end(number, Departure::Closed);
            }
        }
    }

    /// The owner's answer to this process.
    fn answer(&mut self, number: u64, request: Request<'_>) {
        let Some(link) = self.links.get_mut(number) else { return };
        let (Role::Client(mailbox), Some(peer)) = (&link.role, &link.peer) else { return };
        let header = request.header;
        let answer = match header.kind {
            Kind::Reply => Ok(Reply { payload: request.payload.to_vec(), fds: request.fds.take() }),
            _ => Err(Refusal::from_wire(request.payload)),
        };
        if let Some(late) = mailbox.deliver(header.serial, answer, peer.clone()) {
            self.disposer.dispose(late);
        }
    }

    /// A packet that is not in order ends its connection.
    fn broken(&mut self, number: u64, error: WireError) {
        let Some(link) = self.links.get_mut(number) else { return };
        tracing::warn!(pid = link.evidence.pid(), %error, "a peer broke the protocol; it is disconnected");
        match &link.role {
            Role::Client(mailbox) => {
                mailbox.close(Mail::Broken(error));
                mailbox.notices.end(Going::Broken(error));
            }
            Role::Served(_) => {
                let refusal = Refusal::new(error.to_string());
                let _ = link.channel.send(self.identity.header(Kind::Refusal, 1), refusal.to_wire(), &[]);
            }
        }
        self.end(number, Departure::Closed);
    }
}
