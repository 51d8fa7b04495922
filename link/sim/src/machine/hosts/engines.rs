//! What engines do: packets of theirs that leave, answers that come, and what lands in memory of their hosts.

use super::engine::{Landing, Step, Transfer, Way};
use super::{HostId, Hosts, HostsEvent, Place};
use crate::des::Picoseconds;
use crate::pcie::{Cut, Kind, LinkEnd, Tlp, requests};

const LINE_BYTES: u64 = 64;
const WORD_BYTES: usize = 8;

impl Hosts {
    /// Whether ports have DMA engines.
    pub fn has_engines(&self) -> bool {
        self.settings.engine.is_some()
    }

    /// Tells the engine of a port of a transfer, by a store to a register of it. It is to be told when what the core has stored has left it, if
    /// the transfer reads that. `false` if the port has no engine, or one that has as many as it keeps (`EngineSettings::TRANSFERS`).
    ///
    /// # Panics
    /// If the transfer's memory is of another host, or ends before.
    pub fn start_transfer(&mut self, place: Place, transfer: Transfer) -> bool {
        let home = place.host.home(&self.settings);
        let ((local, at), (status, status_at)) = (transfer.local, transfer.status);
        assert!(local.host == home && status.host == home, "memory of another host");
        let is_inside = at as u64 + transfer.bytes <= local.bytes as u64;
        assert!(is_inside && status_at + 2 * WORD_BYTES <= status.bytes, "a transfer outside its memory");
        let Some(start) = self.settings.engine.as_ref().map(|engine| engine.start) else { return false };
        let begins = self.tell(place) + start;
        let engine = self.host_mut(place.host).engine.as_mut();
        let is_taken = engine.is_some_and(|engine| engine.take(transfer));
        if is_taken {
            self.calendar.schedule(begins, HostsEvent::EngineStarts(place.host));
        }
        is_taken
    }

    /// Tells the engine of a port to begin nothing more of a transfer. Its status comes as of any other.
    pub fn abort_transfer(&mut self, place: Place, number: u32) {
        let at = self.tell(place);
        self.calendar.schedule(at, HostsEvent::EngineAborts { host: place.host, number });
    }

    /// A core stores to a register of its engine; returns when that is there.
    fn tell(&mut self, place: Place) -> Picoseconds {
        self.work(place, self.settings.core.uncached_store);
        self.clock(place).max(self.now())
    }

    pub(super) fn engine_starts(&mut self, host: HostId) {
        if let Some(engine) = &mut self.host_mut(host).engine {
            engine.begin();
        }
        self.engine_goes_on(host);
    }

    pub(super) fn engine_aborts(&mut self, host: HostId, number: u32) {
        if let Some(engine) = &mut self.host_mut(host).engine {
            engine.abort(number);
        }
        self.engine_goes_on(host);
    }

    /// Makes packets as far as there is room for them, and ends what is over.
    pub(super) fn engine_goes_on(&mut self, host: HostId) {
        while let Some(step) = self.host_mut(host).engine.as_mut().and_then(|engine| engine.next_step()) {
            match step {
                Step::Move(transfer, done) if transfer.way == Way::Out => {
                    self.write_next(host, &transfer, done)
                }
                Step::Move(transfer, done) => self.request_next(host, &transfer, done),
                Step::Ask(transfer, address) => self.ask(host, &transfer, address),
                Step::End(transfer, outcome, shown) => {
                    let words = [outcome.word(transfer.number), shown];
                    let (region, at) = transfer.status;
                    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    self.land(host, Landing { address: region.address + at as u64, bytes });
                }
            }
        }
        self.schedule_engine(host);
    }

    /// Reads what the next packet carries.
    fn write_next(&mut self, host: HostId, transfer: &Transfer, done: u64) {
        let LinkEnd { link, .. } = self.host(host).root;
        let most = self.links[link].settings().max_payload_bytes;
        let left = transfer.bytes - done;
        let Some(piece) = requests(transfer.remote + done, left, most, Cut::WhenFull).next() else { return };
        let (region, first) = transfer.local;
        let from = region.address + first as u64 + done;
        let bytes = u64::from(piece.length_bytes);
        let ready = self.memory_gives(host, from, bytes);
        let home = host.home(&self.settings);
        let mut data = vec![0; piece.length_bytes as usize];
        let is_memory = self.host_mut(home).memory.read(from, &mut data);
        let it = self.host_mut(host);
        let Some(engine) = &mut it.engine else { return };
        if !is_memory {
            engine.fails(transfer.number);
            return;
        }
        let body = it.blocks.add();
        *it.blocks.of(body) = data;
        let requester = Place::engine_of(host).requester();
        let tlp = Tlp::new(Kind::MemoryWrite, piece.address, piece.length_bytes);
        engine.moves(transfer.number, bytes);
        engine.push(ready, Tlp { requester, body, ..tlp }, bytes);
    }

    fn request_next(&mut self, host: HostId, transfer: &Transfer, done: u64) {
        let LinkEnd { link, .. } = self.host(host).root;
        let most = self.links[link].settings().max_read_request_bytes;
        let left = transfer.bytes - done;
        let Some(piece) = requests(transfer.remote + done, left, most, Cut::WhenFull).next() else { return };
        let (region, first) = transfer.local;
        let request = Tlp::new(Kind::MemoryRead, piece.address, piece.length_bytes);
        self.request(host, (transfer.number, false), request, region.address + first as u64 + done);
        if let Some(engine) = &mut self.host_mut(host).engine {
            engine.moves(transfer.number, piece.length_bytes.into());
        }
    }

    fn ask(&mut self, host: HostId, transfer: &Transfer, address: u64) {
        let request = Tlp::new(Kind::MemoryRead, address, WORD_BYTES as u32);
        self.request(host, (transfer.number, true), request, 0);
        if let Some(engine) = &mut self.host_mut(host).engine {
            engine.asks(transfer.number);
        }
    }

    fn request(&mut self, host: HostId, of: (u32, bool), request: Tlp, local_address: u64) {
        let now = self.calendar.now();
        let request = Tlp { requester: Place::engine_of(host).requester(), ..request };
        if let Some(engine) = &mut self.host_mut(host).engine {
            let request = engine.reads.begin(of, request, local_address);
            engine.push(now, request, 0);
        }
    }

    /// When memory of the engine's host has given bytes: as a root complex gives them to a device.
    fn memory_gives(&mut self, host: HostId, address: u64, bytes: u64) -> Picoseconds {
        let (now, home) = (self.calendar.now(), host.home(&self.settings));
        let lines = (address % LINE_BYTES + bytes).div_ceil(LINE_BYTES);
        let root = &self.settings.root;
        let turn = self.hosts[usize::from(home.0)].bandwidth.take(now, lines, root.memory_rate);
        let (latency, interval) = (root.read_latency, root.read_interval);
        let Some(engine) = &mut self.host_mut(host).engine else { return now };
        engine.memory.begin(turn, interval * lines) + latency + interval * (lines - 1)
    }

    fn schedule_engine(&mut self, host: HostId) {
        let now = self.calendar.now();
        let Some(engine) = &mut self.host_mut(host).engine else { return };
        let Some(at) = engine.sends_next().map(|at| at.max(now)) else { return };
        if engine.sends_at.is_none_or(|scheduled| scheduled > at) {
            engine.sends_at = Some(at);
            self.calendar.schedule(at, HostsEvent::EngineSends(host));
        }
    }

    pub(super) fn engine_woken(&mut self, host: HostId) {
        let now = self.calendar.now();
        if let Some(engine) = &mut self.host_mut(host).engine
            && engine.sends_at.is_some_and(|at| at <= now)
        {
            engine.sends_at = None;
        }
    }

    /// The packet of an engine that may leave now.
    pub(super) fn engine_packet(&mut self, host: HostId) -> Option<Tlp> {
        let now = self.calendar.now();
        let tlp = self.host_mut(host).engine.as_mut()?.pop(now);
        self.schedule_engine(host);
        tlp
    }

    /// A packet of an engine is on the link, or lost because that is down.
    pub(super) fn engine_departed(&mut self, host: HostId, tlp: &Tlp) {
        if let (Kind::MemoryWrite, Some(engine)) = (tlp.kind, &mut self.host_mut(host).engine) {
            engine.left();
            self.engine_goes_on(host);
        }
    }

    /// An answer to a request of an engine is there, or a part of one.
    pub(super) fn engine_answered(&mut self, host: HostId, tlp: &Tlp) {
        let landing = self.host_mut(host).engine.as_mut().and_then(|engine| engine.answered(tlp));
        if let Some(landing) = landing {
            self.land(host, landing);
        }
        self.engine_goes_on(host);
    }

    pub(super) fn engine_times_out(&mut self, host: HostId, id: u32) {
        let engine = self.host_mut(host).engine.as_mut();
        if engine.is_some_and(|engine| engine.times_out(id)) {
            self.engine_goes_on(host);
        }
    }

    /// Stores bytes to memory of an engine's host. Loads see them no sooner than the writes that came before by the same port.
    fn land(&mut self, host: HostId, landing: Landing) {
        let (now, home) = (self.calendar.now(), host.home(&self.settings));
        let lines = (landing.address % LINE_BYTES + landing.bytes.len() as u64).div_ceil(LINE_BYTES);
        let root = &self.settings.root;
        let turn = self.hosts[usize::from(home.0)].bandwidth.take(now, lines, root.memory_rate);
        let at = (turn + root.write_visible).max(self.host(host).inbound.writes_seen());
        let engine = self.host_mut(host).engine.as_mut();
        if let Some(at) = engine.and_then(|engine| engine.land(at, landing)) {
            self.calendar.schedule(at, HostsEvent::EngineLands(host));
        }
    }

    pub(super) fn engine_lands(&mut self, host: HostId) {
        let landed = self.host_mut(host).engine.as_mut().and_then(|engine| engine.landed());
        let Some((landing, next)) = landed else { return };
        if let Some(at) = next {
            self.calendar.schedule(at, HostsEvent::EngineLands(host));
        }
        let home = host.home(&self.settings);
        let is_memory = self.host_mut(home).memory.write(landing.address, &landing.bytes);
        debug_assert!(is_memory, "checked when the transfer was told");
        self.host_changed(home);
    }
}
