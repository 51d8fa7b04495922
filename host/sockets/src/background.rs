//! The thread that finds the processes at the other ends, and agrees with them on connections.
//!
//! It is started with the first connection that is worth it, and sleeps while nobody is looked for. No call of the program's waits for it.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use beeline_domain::{
    Agreed, ConnectionEnds, Domain, DomainConfig, HighCopy, Met, Pairs, PairsOptions, Peer, PeerId,
};
use beeline_mmio::Region;
use beeline_socket_rules::{Board, Order, Row, Run, Why};
use rustix::event::{PollFd, PollFlags};

use crate::answers::take_postponed;
use crate::carried::Carried;
use crate::copies;
use crate::datagrams::DatagramSocket;
use crate::datagrams::flow::{Asking, released};
use crate::datagrams::table::sockets;
use crate::deaths::end_of;
use crate::debts;
use crate::endpoint::{AgreedSlot, Endpoint, Stage};
use crate::endpoints::{Endpoints, endpoint, endpoints};
use crate::forks;
use crate::held;
use crate::hosts::BetweenHosts;
use crate::lock::{Held, locked};
use crate::memory::{PairMemory, memory_bytes, memory_here};
use crate::poll::{poll_for, sleep_for};
use crate::prepared::{place_descriptors_high, prepare};
use crate::readiness::Sets;
use crate::sleepers::{OwnBell, ring_again, ring_other};
use crate::talk::{ASKED_AT_FIRST, Talk, pause_behind};
use crate::unseen_sets::UnseenSets;
use crate::whose::Whose;

/// Slots of a pair's memory: 4 GiB of addresses, of which only what is used is there.
const SLOTS: u32 = 16_384;
/// Connections that are asked for soon when something became known, at most.
const ASKED_AT_ONCE: usize = 64;
/// For how long that is: an older one waits for something else.
const YOUNG: Duration = Duration::from_millis(100);
/// Between two questions for one of many connections, at least: each time all of them are looked at.
const PAUSE_OF_MANY: Duration = Duration::from_millis(1);
/// Until the domain's thread says that a process has gone whose end the kernel has told of.
const GONE_SOON: Duration = Duration::from_millis(1);
/// Until a bell is rung again that could not be.
const RINGS_AGAIN: Duration = Duration::from_millis(1);
/// Between two looks at the orders of a process that has connections with other network namespaces.
const LOOKS_FOR_ORDERS: Duration = Duration::from_secs(1);
/// Until a question is looked at again that could not be answered yet.
const POSTPONED_FOR: Duration = Duration::from_millis(10);

/// Where a process meets others, as it was when the program began: programs clear their environment.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub domain: DomainConfig,
    /// Whether the rules have copies kept of what connections send.
    pub wants_copies: bool,
    /// Whether processes of other users are met, too.
    pub other_users: bool,
    /// Whether the rules name hosts, which may have network namespaces of their own.
    pub has_hosts: bool,
    /// The run that waits for the list of connections.
    pub run: Option<Run>,
    /// The program's epoll sets, as far as hooks saw them made.
    pub sets: Arc<Sets<Carried>>,
}

/// What the threads of a process tell the one in the background.
#[derive(Debug)]
pub(crate) struct Background {
    nominating: Mutex<Endpoints>,
    desk: Mutex<Desk>,
    /// Where the process lists its connections; none where it cannot.
    board: OnceLock<Board>,
}

#[derive(Debug, Default)]
struct Desk {
    jobs: Vec<Job>,
    state: State,
    bell: Option<Arc<OwnBell>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    NotStarted,
    Running,
    /// It is to end.
    Ending,
    /// It has ended, or cannot run here, and nothing is carried.
    Over,
}

#[derive(Debug)]
enum Job {
    Meet(Wanted),
    /// Lists a connection that stays with the kernel.
    List {
        number: RawFd,
        ends: ConnectionEnds,
        why: Why,
    },
    Release {
        endpoint: u32,
        cookie: u64,
    },
}

/// A connection, or a socket of UDP, whose other end is looked for.
#[derive(Debug)]
struct Wanted {
    whose: Whose,
    cookie: u64,
    ends: ConnectionEnds,
    /// Nobody has looked yet whether it is in a set that was not seen.
    is_new: bool,
    since: Instant,
    due: Instant,
}

impl Background {
    pub(crate) fn new() -> Self {
        Background { nominating: Mutex::default(), desk: Mutex::default(), board: OnceLock::new() }
    }

    pub(crate) fn nominating(&self) -> Held<'_, Endpoints> {
        locked(&self.nominating)
    }

    /// Asks for the other end of a connection.
    pub(crate) fn meet(
        self: &Arc<Self>,
        place: &Place,
        endpoint: &'static Endpoint,
        cookie: u64,
        ends: ConnectionEnds,
    ) {
        self.look_for(place, Whose::Connection(endpoint), cookie, ends);
    }

    /// Asks for the socket of UDP at another address.
    pub(crate) fn meet_flow(
        self: &Arc<Self>,
        place: &Place,
        flow: Asking,
        cookie: u64,
        ends: ConnectionEnds,
    ) {
        self.look_for(place, Whose::Flow(flow), cookie, ends);
    }

    fn look_for(self: &Arc<Self>, place: &Place, whose: Whose, cookie: u64, ends: ConnectionEnds) {
        let now = Instant::now();
        let wanted = Wanted { whose, cookie, ends, is_new: true, since: now, due: now };
        self.ask(Job::Meet(wanted));
        self.start(place);
    }

    /// Has a connection listed that stays with the kernel, if somebody waits for the list (`beeline run --why`).
    pub(crate) fn list(self: &Arc<Self>, place: &Place, number: RawFd, ends: ConnectionEnds, why: Why) {
        if place.run.is_some() {
            self.ask(Job::List { number, ends, why });
            self.start(place);
        }
    }

    /// The process is about to end.
    pub(crate) fn end(&self) {
        self.board.get().into_iter().for_each(Board::end);
    }

    /// A connection has ended.
    pub(crate) fn release(&self, endpoint: &Endpoint, cookie: u64) {
        self.nominating().ended();
        self.ask(Job::Release { endpoint: endpoint.index, cookie });
    }

    fn ask(&self, job: Job) {
        let mut desk = locked(&self.desk);
        // There may never be one that hears of it: a child of fork ends connections of its parent's.
        let has_no_thread = desk.state == State::NotStarted && matches!(job, Job::Release { .. });
        if desk.state == State::Over || has_no_thread {
            drop(desk);
            return self.leave(job);
        }
        desk.jobs.push(job);
        if let Some(bell) = &desk.bell {
            bell.ring();
        }
    }

    fn leave(&self, job: Job) {
        match job {
            Job::Meet(wanted) if wanted.whose.is_still(wanted.cookie) => wanted.whose.forbid(Why::Domain),
            Job::Release { endpoint, .. } => self.nominating().heard(endpoint),
            Job::Meet(_) | Job::List { .. } => {}
        }
    }

    fn start(self: &Arc<Self>, place: &Place) {
        let mut desk = locked(&self.desk);
        if desk.state != State::NotStarted {
            return;
        }
        desk.state = State::Running;
        drop(desk);
        prepare();
        let place = place.clone();
        let own = Arc::clone(self);
        let spawned = beeline_mmio::thread::start("beeline-sockets", move || own.work(&place));
        if let Err(error) = spawned {
            self.fail(&error);
        }
    }

    /// What the thread does: it ends where it cannot work, or is to end.
    fn work(&self, place: &Place) {
        place_descriptors_high();
        let begun = Domain::open(&place.domain).map_err(|error| error.to_string()).and_then(|domain| {
            match Board::create(domain.path(), place.run) {
                Ok(board) => _ = self.board.set(board),
                Err(error) => tracing::debug!(%error, "connections are not listed"),
            }
            let hosts = Arc::new(BetweenHosts::default());
            let pairs = domain.pairs_with(PairsOptions {
                memory_bytes: memory_bytes(SLOTS),
                socket_of: Box::new(ConnectionEnds::socket_at_the_kernel),
                other_users: place.other_users.then_some(&place.domain),
                progress_of: place.has_hosts.then(|| Arc::clone(&hosts).asked()),
            });
            pairs.map(|pairs| (pairs, hosts)).map_err(|error| error.to_string())
        });
        let begun = begun.and_then(|(pairs, hosts)| {
            OwnBell::of_engine().map(|bell| (pairs, hosts, bell)).map_err(|error| error.to_string())
        });
        match begun {
            Err(error) => self.fail(&error),
            Ok((pairs, hosts, bell)) => {
                locked(&self.desk).bell = Some(Arc::clone(&bell));
                let wakes = Arc::clone(&bell);
                pairs.wake_by(move || wakes.ring());
                Worker {
                    pairs,
                    bell,
                    wants_copies: place.wants_copies,
                    board: self.board.get(),
                    order: Order::default(),
                    wanted: Vec::new(),
                    looked_again: Instant::now(),
                    least_pause: Duration::ZERO,
                    memories: BTreeMap::new(),
                    ends: Vec::new(),
                    talk: Talk::new(Instant::now()),
                    dying: Vec::new(),
                    unseen: UnseenSets::new(Arc::clone(&place.sets)),
                    here: BTreeMap::new(),
                    ends_here: BTreeMap::new(),
                    hosts,
                }
                .run(self);
                self.close_desk();
            }
        }
    }

    /// Ends the thread, and with it all that this process has in its domain. Waits until the kernel has none of the library's threads any more, but no longer
    /// than `until`; whether it has none.
    pub(crate) fn end_threads(&self, until: Instant) -> bool {
        let bell = {
            let mut desk = locked(&self.desk);
            desk.state = match desk.state {
                State::NotStarted | State::Over => State::Over,
                State::Running | State::Ending => State::Ending,
            };
            desk.bell.clone()
        };
        bell.iter().for_each(|bell| bell.ring());
        drop(bell);
        beeline_mmio::thread::wait_until_gone(until)
    }

    fn fail(&self, error: &dyn std::fmt::Display) {
        tracing::warn!(%error, "connections stay with the kernel in this process");
        self.close_desk();
    }

    fn close_desk(&self) {
        let mut desk = locked(&self.desk);
        desk.state = State::Over;
        desk.bell = None;
        let jobs = std::mem::take(&mut desk.jobs);
        // Others nominate, and ask for something meanwhile.
        drop(desk);
        jobs.into_iter().for_each(|job| self.leave(job));
    }
}

/// What the thread knows of other processes, and whom it looks for.
struct Worker<'a> {
    pairs: Pairs,
    bell: Arc<OwnBell>,
    wants_copies: bool,
    board: Option<&'a Board>,
    /// The last order that was carried out.
    order: Order,
    wanted: Vec<Wanted>,
    /// When they are, or were, asked for because something became known.
    looked_again: Instant,
    least_pause: Duration,
    /// The memory of each process that this one shares connections with.
    memories: BTreeMap<PeerId, (Peer, PairMemory)>,
    /// What is readable when one of these processes has ended.
    ends: Vec<(PeerId, HighCopy)>,
    talk: Talk,
    /// Processes that have ended, until the domain says so too.
    dying: Vec<PeerId>,
    unseen: UnseenSets,
    /// Memory of connections of which this process has both ends, by both cookies, for the end that has not come yet.
    here: BTreeMap<(u64, u64), Region>,
    /// The same as each end has it, by its cookie.
    ends_here: BTreeMap<u64, PairMemory>,
    hosts: Arc<BetweenHosts>,
}

impl Worker<'_> {
    fn run(mut self, asked: &Background) {
        forks::enter();
        self.begin_obeying();
        loop {
            let (jobs, is_ending) = {
                let mut desk = locked(&asked.desk);
                (std::mem::take(&mut desk.jobs), desk.state == State::Ending)
            };
            // Behind that: who is to be met again was released before.
            released().into_iter().for_each(|cookie| self.release(cookie));
            for job in jobs {
                match job {
                    Job::Meet(wanted) => self.begin(wanted),
                    Job::List { number, ends, why } => {
                        // Dropped at once, and listed still for who waits for the list.
                        if let Some(row) = self.row(number, &ends) {
                            row.set_why(Some(why));
                        }
                    }
                    Job::Release { endpoint: index, cookie } => {
                        self.release(cookie);
                        endpoint(index).unlist();
                        asked.nominating().heard(index);
                    }
                }
            }
            if is_ending {
                forks::leave();
                return self.memories.values().for_each(|(_, memory)| self.bell.leave(memory));
            }
            let turned = self.pairs.turn();
            self.pairs.empty_slots(|memory, slot| PairMemory::empty_windows(memory, SLOTS, slot));
            let now = Instant::now();
            self.talk.took(turned, now);
            self.look_again(turned.news, now);
            self.look_for_unseen_sets(now);
            let wanted = std::mem::take(&mut self.wanted);
            self.least_pause = if wanted.len() > ASKED_AT_ONCE { PAUSE_OF_MANY } else { Duration::ZERO };
            self.wanted = wanted.into_iter().filter_map(|wanted| self.ask(wanted, now)).collect();
            self.bury();
            debts::pay();
            let silence = copies::look_for_silence();
            forks::leave();
            let is_postponed = take_postponed();
            let postponed = is_postponed.then_some(POSTPONED_FOR);
            let (to_ring, elsewhere) = (self.ring_again(), self.looks_for_orders());
            let at_most = postponed.into_iter().chain(silence).chain(to_ring).chain(elsewhere).min();
            let is_rung = self.sleep(at_most);
            forks::enter();
            if elsewhere.is_some() && !is_rung {
                self.obey();
            }
            if is_rung || is_postponed {
                self.obey();
                // Somebody asks this side to send by the socket.
                endpoints().for_each(Endpoint::tend);
                sockets().for_each(DatagramSocket::answer_rests);
            }
        }
    }

    /// Forgets processes that have gone.
    fn bury(&mut self) {
        for (id, (_, memory)) in self.memories.extract_if(.., |_, (peer, _)| peer.departure().is_some()) {
            self.bell.leave(&memory);
            memory.forget_ringer();
            self.ends.retain(|(of, _)| *of != id);
            self.dying.retain(|of| *of != id);
            let living = endpoints().filter(|endpoint| endpoint.stage() != Stage::Free);
            living.for_each(|endpoint| endpoint.reset_behind(id));
        }
    }

    fn begin(&mut self, wanted: Wanted) {
        if let Some(row) = self.row(wanted.whose.number(), &wanted.ends)
            && wanted.whose.is_still(wanted.cookie)
        {
            wanted.whose.list(row);
        }
        if let Whose::Connection(endpoint) = wanted.whose
            && wanted.ends.are_between_hosts()
        {
            self.hosts.add(wanted.cookie, endpoint);
        }
        self.wanted.push(wanted);
    }

    fn row(&self, number: RawFd, ends: &ConnectionEnds) -> Option<Row> {
        self.board?.row(u32::try_from(number).ok()?, ends.local(), ends.remote())
    }

    /// Windows are what they are in the domain, until an order is given.
    fn begin_obeying(&mut self) {
        if let Some(board) = self.board {
            board.set_bell(self.bell.address().to_words());
            held::set(board.windows_of_domain());
            self.obey();
        }
    }

    /// Rings who could not be rung; until it is tried again.
    fn ring_again(&self) -> Option<Duration> {
        let is_left = self.memories.values().filter(|(_, memory)| ring_again(memory)).count() > 0;
        is_left.then_some(RINGS_AGAIN)
    }

    /// Where others are in other network namespaces, an order may come from there: whoever gives it cannot ring, and wakes only who runs.
    fn looks_for_orders(&self) -> Option<Duration> {
        let mut memories = self.memories.values();
        memories.any(|(_, memory)| memory.ringer().is_some()).then_some(LOOKS_FOR_ORDERS)
    }

    /// Carries out what was ordered since it was looked at last.
    fn obey(&mut self) {
        let Some((board, order)) = self.board.map(|board| (board, board.order())) else { return };
        let Some(windows) = order.windows().filter(|_| order != self.order) else { return };
        self.order = order;
        held::set(windows);
        endpoints().for_each(|endpoint| endpoint.obey(windows));
        for (_, memory) in self.memories.values() {
            ring_other(memory, &memory.other_sleeper(0));
        }
        board.carried_out(order);
    }

    /// Until somebody rings, which it returns, or a connection is to be asked for again, or the time is over.
    fn sleep(&mut self, at_most: Option<Duration>) -> bool {
        let wanted = self.wanted.iter().map(|wanted| wanted.due);
        let due = wanted.chain(self.talk.due()).min();
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let left = if self.dying.is_empty() {
            left
        } else {
            Some(left.map_or(GONE_SOON, |left| left.min(GONE_SOON)))
        };
        let (full, looked_at) = debts::waited_for();
        let left = left.into_iter().chain(looked_at).chain(at_most).min();
        if !self.bell.is_whole() {
            // The program has closed numbers of the library's, or has other files there: nobody can ring, and all is looked at now and then.
            sleep_for(left.map_or(POSTPONED_FOR, |left| left.min(POSTPONED_FOR)));
            return true;
        }
        let ringing = self.bell.bell();
        let ends = self.ends.iter().map(|(_, end)| PollFd::new(end, PollFlags::IN));
        let notifications = self.pairs.notifications();
        let said = notifications.iter().map(|said| PollFd::new(said, PollFlags::IN));
        let mut watched: Vec<_> =
            std::iter::once(PollFd::new(&ringing, PollFlags::IN)).chain(ends).chain(said).collect();
        watched.extend(full);
        // Every signal is blocked here.
        let _ = poll_for(&mut watched, left);
        let mut has_ended =
            watched[1..].iter().map(|end| !end.revents().is_empty()).collect::<Vec<_>>().into_iter();
        let is_rung = !watched[0].revents().is_empty();
        let ended = self.ends.extract_if(.., |_| has_ended.next() == Some(true));
        // One whose number the program has closed says nothing.
        self.dying.extend(ended.filter(|(_, end)| end.is_whole()).map(|(id, _)| id));
        if is_rung {
            self.bell.clear();
        }
        is_rung
    }

    /// Looks whether connections that were just nominated are waited for in sets that nobody sees; a look is for all of them.
    fn look_for_unseen_sets(&mut self, now: Instant) {
        let new = self.wanted.iter().filter(|wanted| wanted.is_new);
        let numbers: Vec<RawFd> = new.map(|wanted| wanted.whose.number()).collect();
        if numbers.is_empty() || self.unseen.due() > now {
            return;
        }
        let are_waited_for = self.unseen.have_any(&numbers);
        for wanted in self.wanted.iter_mut().filter(|wanted| wanted.is_new) {
            wanted.is_new = false;
            if are_waited_for && wanted.whose.is_still(wanted.cookie) {
                wanted.whose.forbid(Why::Poll);
            }
        }
    }

    /// Has young connections asked for soon, where something became known that may be of them: each step of agreeing would wait for a pause else.
    fn look_again(&mut self, news: usize, now: Instant) {
        if news == 0 {
            return;
        }
        // Whatever others say, and however fast, this is not often: what comes before the next time waits for that.
        if self.looked_again <= now {
            self.looked_again = (self.looked_again + ASKED_AT_FIRST).max(now);
        }
        let soon = self.looked_again;
        let young = self.wanted.iter_mut().filter(|wanted| !wanted.is_new && now - wanted.since < YOUNG);
        young.take(ASKED_AT_ONCE).for_each(|wanted| wanted.due = wanted.due.min(soon));
    }

    /// Asks for a connection that is due; returns it where it is to be asked for again.
    fn ask(&mut self, mut wanted: Wanted, now: Instant) -> Option<Wanted> {
        if wanted.due > now {
            return Some(wanted);
        }
        if !wanted.whose.is_still(wanted.cookie) {
            self.hosts.remove(wanted.cookie);
            self.pairs.release(wanted.cookie);
            return None;
        }
        if wanted.is_new {
            wanted.due = self.unseen.due();
            return Some(wanted);
        }
        match self.pairs.meet(wanted.cookie, &wanted.ends) {
            Ok(Met::NotYet) => {
                wanted.due = now + pause_behind(now - wanted.since).max(self.least_pause);
                return Some(wanted);
            }
            Ok(Met::SameSocket) => wanted.whose.forbid(Why::OwnPeer),
            Ok(Met::ThisProcess { other_cookie }) => self.agree_here(&wanted, other_cookie),
            Ok(Met::Agreed(agreed)) => self.agree(&wanted, agreed),
            Err(error) => {
                tracing::debug!(%error, "the table of connections cannot be used");
                wanted.whose.forbid(Why::Domain);
            }
        }
        None
    }

    fn agree(&mut self, wanted: &Wanted, agreed: Agreed) {
        let side = usize::from(!agreed.owns);
        let (_, memory) = self.memories.entry(agreed.peer.id()).or_insert_with(|| {
            let memory = PairMemory::new(agreed.memory.clone(), SLOTS, side).rung_by(agreed.ringer.clone());
            self.bell.join(&memory);
            self.ends.extend(end_of(&agreed.peer).map(|end| (agreed.peer.id(), end)));
            (agreed.peer.clone(), memory)
        });
        let Some(slot) = memory.slot(agreed.slot) else { return wanted.whose.forbid(Why::Memory) };
        slot.open(wanted.cookie, self.wants_copies);
        slot.ask_down(held::are_down());
        wanted.whose.set_peer_pid(agreed.peer.pid());
        let other_cookie = agreed.other_cookie;
        let is_kept = self.wants_copies;
        wanted.whose.agree(AgreedSlot { slot, other_cookie, peer: Some(agreed.peer), is_kept });
    }

    /// Both ends are of this process.
    fn agree_here(&mut self, wanted: &Wanted, other_cookie: u64) {
        let cookies = (wanted.cookie.min(other_cookie), wanted.cookie.max(other_cookie));
        let region = self.here.remove(&cookies).unwrap_or_else(|| {
            let region = memory_here();
            self.here.insert(cookies, region.clone());
            region
        });
        let memory = PairMemory::new(region, 1, usize::from(wanted.cookie > other_cookie));
        self.bell.join(&memory);
        let Some(slot) = memory.slot(0) else { return };
        self.ends_here.insert(wanted.cookie, memory);
        slot.open(wanted.cookie, self.wants_copies);
        wanted.whose.agree(AgreedSlot { slot, other_cookie, peer: None, is_kept: self.wants_copies });
    }

    fn release(&mut self, cookie: u64) {
        self.hosts.remove(cookie);
        self.pairs.release(cookie);
        self.wanted.retain(|wanted| wanted.cookie != cookie);
        self.here.retain(|(one, other), _| *one != cookie && *other != cookie);
        if let Some(memory) = self.ends_here.remove(&cookie) {
            self.bell.leave(&memory);
        }
    }
}

#[cfg(test)]
mod tests;
