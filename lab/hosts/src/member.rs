//! A member on a host: carries out what it wants, hears who lives, and gives calls their time.

use std::collections::{BTreeMap, VecDeque};

use beeline_fabric::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{HostId, Region};

use crate::attached::{Attached, address_of};
use crate::dma_job::Queues;
use crate::mapped::Mapped;
use crate::names::Names;
use crate::peer::{Change, Peer};
use crate::programs::Core;
use crate::session::Sessions;
use crate::wiring::{BANK_BYTES, Wiring, node_of};
use crate::words::{Across, Published, Readers, View};
use crate::yard::Yard;

/// A member of the fabric, the only one of its host.
pub struct HostMember {
    pub(crate) member: Member<Across>,
    pub(crate) sessions: Sessions,
    board: Published,
    pub(crate) names: Names,
    /// The groups that it holds, by their numbers at the switch.
    pub(crate) groups: BTreeMap<LocalSegment, usize>,
    pub(crate) attached: Attached,
    /// Entries of its board whose memory is of a device.
    pub(crate) devices: BTreeMap<LocalSegment, Slot>,
    pub(crate) dma: Queues,
    /// By host, what is claimed of it.
    claims: Vec<Published>,
    /// By host, windows for messages; none to itself.
    pub(crate) yards: Vec<Option<Yard>>,
    peers: Vec<Peer>,
    told: VecDeque<Told>,
    /// By adapter, whether its link was up at the last look.
    links_were_up: Vec<bool>,
}

pub(crate) fn adapter() -> AdapterNumber {
    numbered(0)
}

fn numbered(adapter: u16) -> AdapterNumber {
    AdapterNumber::new(adapter.into()).expect("a host has as many adapters as a node at most")
}

/// Where a peer's claims of this host's segments come to.
fn claimed_by(peer: HostId, sessions: &Sessions) -> Region {
    sessions.wiring.of(sessions.core.host()).claimed[usize::from(peer.0)]
}

/// Words of the segments that a peer claims. Behind the end of the session that it is in they stay as they were last.
fn claims_by(peer: &Peer, sessions: &Sessions) -> View {
    let words = claimed_by(peer.host, sessions);
    View::of_session(sessions.core.clone(), words, peer.claimed.clone())
}

/// Windows for messages to and from each other host.
fn yards(sessions: &Sessions) -> Vec<Option<Yard>> {
    let (core, wiring) = (&sessions.core, &sessions.wiring);
    let (own, here) = (core.host(), wiring.of(core.host()));
    let at = usize::from(own.0);
    let yard = |peer: HostId| {
        let there = wiring.of(peer);
        let copies = vec![(peer, there.yards_of[at])];
        let nth = usize::from(peer.0);
        let words = Published::new(sessions.clone(), Readers::One, here.yards[nth], copies);
        Yard::new(core.clone(), words, here.yards_of[nth], there.windows[at], here.windows[nth])
    };
    let peers = (0..here.claims.len() as u16).map(HostId);
    peers.map(|peer| (peer != own).then(|| yard(peer))).collect()
}

impl HostMember {
    /// A member on a core's host. `seed` makes the incarnations of its heartbeats.
    pub fn new(core: &Core, wiring: &Wiring, seed: u64) -> Self {
        let own = core.host();
        let here = wiring.of(own);
        let sessions = Sessions::new(core.clone(), wiring.clone());
        let table = |words: Region, copy: &dyn Fn(HostId) -> Region| {
            let copies = wiring.others(own).map(|peer| (peer, copy(peer))).collect();
            Published::new(sessions.clone(), Readers::All, words, copies)
        };
        let at = usize::from(own.0);
        let board = table(here.board, &|peer| wiring.of(peer).boards[at]);
        let names = table(here.names, &|peer| wiring.of(peer).names_of[at]);
        let attached = table(here.attached, &|peer| wiring.of(peer).attached_of[at]);
        let claims = (0..).zip(&here.claims).map(|(peer, words)| {
            let peer = HostId(peer);
            let copies = vec![(peer, wiring.of(peer).claimed[at])];
            Published::new(sessions.clone(), Readers::One, *words, copies)
        });
        let nodes = (0..here.claims.len() as u16).map(|host| node_of(HostId(host))).collect();
        let adapters: Vec<_> = (0..core.adapters()).map(numbered).collect();
        let config = Config { node: node_of(own), adapters: adapters.clone(), nodes };
        let mut member = Member::new(config, board.clone());
        member.limit_bank(BANK_BYTES as u64);
        let random = |peer: HostId| {
            seed ^ ((u64::from(own.0) << 32) | (u64::from(peer.0) + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let yards = yards(&sessions);
        HostMember {
            member,
            yards,
            claims: claims.collect(),
            board,
            names: Names::new(sessions.clone(), names),
            groups: BTreeMap::new(),
            attached: Attached::new(attached, View::new(core.clone(), here.attached)),
            devices: BTreeMap::new(),
            dma: Queues::default(),
            peers: wiring.others(own).map(|peer| Peer::new(peer, random(peer))).collect(),
            sessions,
            told: VecDeque::new(),
            links_were_up: adapters.iter().map(|_| true).collect(),
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.sessions.core
    }

    /// The time of its core.
    pub fn now(&self) -> Picoseconds {
        self.core().now()
    }

    fn nanos(&self) -> Nanos {
        Nanos(self.core().now().as_ns())
    }

    /// Makes a call, and waits for what comes of it.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn call(&mut self, call: Call) -> Result<Value, Refusal> {
        let done = self.member.call(call, self.nanos())?;
        self.carry_out();
        if let Call::RemoveSegment { local, .. } = call {
            if let Some(group) = self.groups.remove(&local) {
                self.core().set_receives(group, false);
            }
            self.detach(local);
        }
        let ticket = match done {
            Done::Now(value) => return Ok(value),
            Done::Wait(ticket) => ticket,
        };
        loop {
            let is_it = |told: &Told| matches!(told, Told::Outcome(of, _) if *of == ticket);
            if let Some(at) = self.told.iter().position(is_it)
                && let Some(Told::Outcome(_, outcome)) = self.told.remove(at)
            {
                return outcome;
            }
            self.step(Picoseconds::NEVER);
        }
    }

    /// Looks at everything, as this host's service does, and waits for a change, `until` at the latest.
    pub fn step(&mut self, until: Picoseconds) {
        self.tend();
        let wake = self.member.wake_at().map_or(Picoseconds::NEVER, |at| Picoseconds::from_ns(at.0));
        let beats = self.peers.iter().map(Peer::next_beat).min().unwrap_or(Picoseconds::NEVER);
        let until = until.min(wake).min(beats).max(self.core().now());
        self.core().wait(Next::Poll, until);
    }

    /// Serves other members until the time is over, or `is_done`.
    pub fn serve(&mut self, until: Picoseconds, mut is_done: impl FnMut(&mut Self) -> bool) {
        while !is_done(self) && self.core().now() < until {
            self.step(until);
        }
    }

    /// Events of segments that have a callback, oldest first.
    pub fn next_told(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Whether the host of a node lives and both sides have all that the other has published.
    pub fn is_joined(&self, node: NodeId) -> bool {
        let there = |peer: &&Peer| node_of(peer.host) == node;
        self.peers
            .iter()
            .find(there)
            .is_some_and(|peer| peer.consumer.is_some() && self.sessions.is_whole(peer.host))
    }

    /// Maps a part of a connected segment.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn map(&mut self, remote: RemoteSegment, part: Part) -> Result<Mapped, Refusal> {
        let Value::MapRemote(pair, memory, part) = self.call(Call::MapRemote(remote, part))? else {
            return Err(Refusal::IllegalOperation);
        };
        let mapped = self.mapped_of(remote, (pair, memory), part);
        self.or_undone(Call::UnmapRemote(remote), mapped)
    }

    fn mapped_of(
        &mut self,
        remote: RemoteSegment,
        (pair, memory): (PairId, Memory),
        part: Part,
    ) -> Result<Mapped, Refusal> {
        let peer = self.provider(pair).ok_or(Refusal::NotConnected)?;
        match memory {
            Memory::Bank { offset } => {
                let address = self.sessions.wiring.of(peer).bank.address + offset + part.offset;
                self.mapped(remote, address, part.bytes)
            }
            Memory::Own { slot } => {
                let begins = address_of(&self.sessions, peer, slot).ok_or(Refusal::IllegalOperation)?;
                let address = begins.checked_add(part.offset).ok_or(Refusal::ConnectionRefused)?;
                let device = self.device_of(address, part.bytes).ok_or(Refusal::ConnectionRefused)?;
                let mapped = self.mapped(remote, address, part.bytes)?;
                Ok(Mapped { device: Some(device), ..mapped })
            }
        }
    }

    /// A map that the member counts, or none: `unmap` ends the count of one that is refused.
    pub(crate) fn or_undone<T>(&mut self, unmap: Call, mapped: Result<T, Refusal>) -> Result<T, Refusal> {
        if mapped.is_err() {
            self.call(unmap)?;
        }
        mapped
    }

    /// What stores at an address of a connection's memory come to.
    pub(crate) fn mapped(
        &mut self,
        remote: RemoteSegment,
        address: u64,
        bytes: u64,
    ) -> Result<Mapped, Refusal> {
        let own = self.own_board();
        let first = self.member.view(remote, &own)?.ok_or(Refusal::NotConnected)?;
        let views = std::iter::once(first).chain(self.member.views_of_others(remote, &own));
        let holders = views.filter_map(|(pair, view)| Some((self.provider(pair)?, view))).collect();
        Ok(Mapped { sessions: self.sessions.clone(), address, bytes: bytes as usize, holders, device: None })
    }

    pub(crate) fn provider(&self, pair: PairId) -> Option<HostId> {
        let of_pair = |peer: &&Peer| peer.provider == Some(pair);
        self.peers.iter().find(of_pair).map(|peer| peer.host)
    }

    /// Members that use this one, with what they say that they use.
    pub(crate) fn consumers(&self) -> impl Iterator<Item = (PairId, View)> {
        self.peers.iter().filter_map(|peer| Some((peer.consumer?, claims_by(peer, &self.sessions))))
    }

    /// The host of a node, if it lives.
    pub(crate) fn host_of(&self, node: NodeId) -> Option<HostId> {
        self.peers.iter().find(|peer| peer.is_there() && node_of(peer.host) == node).map(|peer| peer.host)
    }

    pub(crate) fn own_board(&self) -> View {
        View::new(self.core().clone(), self.sessions.wiring.of(self.core().host()).board)
    }

    /// Memory of a segment of this host: the bank or a group's, and where in it the segment begins.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn map_local(&mut self, local: LocalSegment, part: Part) -> Result<(Region, usize), Refusal> {
        match self.call(Call::MapLocal(local, part))? {
            Value::MapLocal(Memory::Bank { offset }, part) => {
                let bank = self.sessions.wiring.of(self.core().host()).bank;
                Ok((bank, (offset + part.offset) as usize))
            }
            Value::MapLocal(Memory::Own { .. }, part) => {
                let memory = self.groups.get(&local).and_then(|group| self.core().group_memory(*group));
                let memory = self.or_undone(Call::UnmapLocal(local), memory.ok_or(Refusal::IllegalOperation));
                Ok((memory?, part.offset as usize))
            }
            _ => Err(Refusal::IllegalOperation),
        }
    }

    /// Looks at links, peers and rings, and at what others publish.
    pub fn tend(&mut self) {
        for adapter in 0..self.core().adapters() {
            let is_up = self.core().is_adapter_up(adapter);
            if std::mem::replace(&mut self.links_were_up[usize::from(adapter)], is_up) != is_up {
                let set = self.member.call(Call::SetLink(numbered(adapter), is_up), self.nanos());
                debug_assert!(set.is_ok(), "the adapter is there");
            }
        }
        for at in 0..self.peers.len() {
            let change = self.peers[at].look(&self.sessions.core, &self.sessions.wiring);
            if matches!(change, Some(Change::Went | Change::CameAnew)) {
                self.forget(at);
            }
            let peer = &mut self.peers[at];
            if peer.is_there() && peer.consumer.is_none() {
                self.sessions.begin(peer.host);
            }
            // Until its words have come anew, those of its last session are here.
            if peer.is_there() && peer.consumer.is_none() && self.sessions.is_whole(peer.host) {
                let claims = claims_by(peer, &self.sessions);
                peer.consumer = Some(self.member.admit(node_of(peer.host), claims));
                // Its claims count from here on, and so what it confirms.
                self.sessions.count(peer.host);
            }
            let (host, rung) = (peer.host, self.sessions.rung(peer.host));
            peer.rung = rung;
            let nth = usize::from(host.0);
            let tables = [&self.board, self.names.words(), self.attached.words(), &self.claims[nth]];
            let yard = &mut self.yards[nth];
            yard.iter_mut().for_each(Yard::tend);
            let tables = tables.into_iter().chain(yard.as_ref().map(Yard::words));
            self.sessions.renew(host, || tables.for_each(|table| table.push_to(host)));
        }
        self.member.look(self.nanos());
        self.carry_out();
        self.tend_dma();
    }

    /// A peer is gone: nothing is confirmed to it, and then nothing of it counts.
    fn forget(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        self.sessions.leave(peer.host);
        // What it said last still counts; what it says from here on is of the next session.
        let claimed = claimed_by(peer.host, &self.sessions);
        let mut words = vec![0; claimed.bytes];
        self.sessions.core.copy_out(claimed, 0, &mut words);
        std::mem::take(&mut peer.claimed).end_with(words);
        let board = std::mem::take(&mut peer.board);
        let pairs = [peer.provider.take(), peer.consumer.take()];
        for pair in pairs.into_iter().flatten() {
            self.member.gone(pair, Nanos(self.sessions.core.now().as_ns()));
        }
        board.end_with(Vec::new());
        let host = usize::from(self.peers[at].host.0);
        self.claims[host].clear();
        self.yards[host].iter_mut().for_each(Yard::end_all);
    }

    fn carry_out(&mut self) {
        while let Some(want) = self.member.next_want() {
            match want {
                Want::Name(ask, op) => {
                    let (member, own) = (&self.member, &self.own_board());
                    let has_open = |of| member.watch_holder(of, own).is_some_and(|view| view.is_there());
                    let answer = self.names.answer(op, has_open);
                    self.member.answered(ask, answer, self.nanos());
                }
                Want::Reach { pair, node, .. } => self.reach(pair, node),
                Want::Ring(pair) => {
                    let of_pair =
                        |peer: &&mut Peer| peer.provider == Some(pair) || peer.consumer == Some(pair);
                    if let Some(peer) = self.peers.iter_mut().find(of_pair) {
                        peer.rings += 1;
                        self.sessions.ring(peer.host, peer.rings);
                    }
                }
                Want::Close(pair) => {
                    for peer in self.peers.iter_mut().filter(|peer| peer.provider == Some(pair)) {
                        peer.provider = None;
                    }
                }
                // Offsets of a bank are not used twice.
                Want::Punch { .. } => {}
            }
        }
        while let Some(told) = self.member.next_event().or_else(|| self.member.next_callback()) {
            self.told.push_back(told);
        }
    }

    fn reach(&mut self, pair: PairId, node: NodeId) {
        let core = self.core().clone();
        let there = |peer: &&mut Peer| peer.is_there() && node_of(peer.host) == node;
        let reached = match self.peers.iter_mut().find(there) {
            Some(peer) => {
                peer.provider = Some(pair);
                let at = usize::from(peer.host.0);
                let board = self.sessions.wiring.of(core.host()).boards[at];
                let board = View::of_session(core, board, peer.board.clone());
                Reached::Provider { board, claims: self.claims[at].clone() }
            }
            None => Reached::NotResponding,
        };
        self.member.reached(pair, reached, self.nanos());
    }
}
