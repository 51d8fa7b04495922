//! A bridge that is not transparent, as a device between two hosts: windows that it translates, scratchpads, doorbells, and a table of the
//! requesters that it lets through.
//!
//! Each side is a function of its host, at addresses of that host: first the registers, then the windows, each as long as the settings say. What
//! it answers, refuses and counts is here; which packets that makes is in `bridged.rs`. Not here: errors of the link, which the bridge
//! would report, and the ID that it gives a requester on the other side, which nobody in virtual time looks at.

mod registers;
mod settings;

pub use registers::Register;
pub use settings::NtbSettings;

use rand::RngExt;

use super::HostId;
use crate::des::{Stream, stream};
use crate::pcie::{Kind, Tlp};

/// What a side of a bridge has refused, and what it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NtbCounts {
    /// Requests outside what the other side has made its windows show.
    pub outside: u64,
    /// Requests of requesters that are not in the table of this side.
    pub strangers: u64,
    /// Accesses to registers that there are not, or not of one word.
    pub no_register: u64,
    /// Requests through windows while the link was down.
    pub link_down: u64,
    /// Writes that went through windows.
    pub written: u64,
    /// Reads that went through windows.
    pub read: u64,
    /// Doorbells of this side that came while they were set.
    pub coalesced: u64,
    /// Interrupts that this side was sent.
    pub interrupts: u64,
}

/// What becomes of a request.
pub(super) enum Met {
    /// It goes on to the other side, with another address.
    Crosses(Tlp),
    /// It was a write, and was for the bridge, or is refused.
    Taken,
    /// It was a write that rings the other side.
    Rings,
    /// It was a read, and shows this; nothing, if it is refused.
    Shows(Option<u64>),
}

struct Port {
    begins_at: u64,
    scratchpads: Vec<u32>,
    set: u64,
    mask: u64,
    is_enabled: bool,
    /// By window of the other side.
    translations: Vec<u64>,
    limits: Vec<u64>,
    requesters: Vec<u64>,
    counts: NtbCounts,
    /// Whether it is to be sent an interrupt that no write of the other side becomes.
    is_owed: bool,
}

/// A bridge.
pub(super) struct Ntb {
    pub settings: NtbSettings,
    ports: [Port; 2],
    /// Whether the links of both sides are up.
    is_trained: bool,
    was_up: bool,
    random: Stream,
}

impl Ntb {
    pub(super) fn new(settings: NtbSettings, begin_at: [u64; 2], seed: u64) -> Ntb {
        let port = |begins_at| Port {
            begins_at,
            scratchpads: vec![0; settings.scratchpads.into()],
            set: 0,
            mask: u64::MAX,
            is_enabled: false,
            translations: vec![0; settings.windows.into()],
            limits: vec![0; settings.windows.into()],
            requesters: vec![0; settings.requesters.into()],
            counts: NtbCounts::default(),
            is_owed: false,
        };
        let random = stream(seed, "bridge");
        Ntb { ports: begin_at.map(port), settings, is_trained: true, was_up: false, random }
    }

    pub(super) fn counts(&self, host: HostId) -> NtbCounts {
        self.ports[usize::from(host.0)].counts
    }

    pub(super) fn register_address(&self, host: HostId, register: Register) -> u64 {
        self.ports[usize::from(host.0)].begins_at + register.offset()
    }

    /// Where a window of a host begins.
    pub(super) fn window_address(&self, host: HostId, window: u16) -> Option<u64> {
        let begins_at = self.ports[usize::from(host.0)].begins_at;
        let bytes = self.settings.window_bytes;
        (window < self.settings.windows).then(|| begins_at + (u64::from(window) + 1) * bytes)
    }

    /// Whether both sides have enabled the link, and it is up.
    pub(super) fn is_up(&self) -> bool {
        self.is_trained && self.ports.iter().all(|port| port.is_enabled)
    }

    /// The links of the hosts are up from now on, or one is not.
    pub(super) fn train(&mut self, is_trained: bool) {
        self.is_trained = is_trained;
        self.tell_of_link();
    }

    /// Both sides have an event when the link is up, and when it is not any more.
    fn tell_of_link(&mut self) {
        let is_up = self.is_up();
        if self.was_up != is_up {
            self.was_up = is_up;
            let event = 1 << self.settings.doorbells;
            for port in &mut self.ports {
                port.is_owed |= port.ring(event);
            }
        }
    }

    /// Whether a side is to be sent an interrupt of the bridge's own, once.
    pub(super) fn take_owed(&mut self, host: HostId) -> bool {
        std::mem::take(&mut self.ports[usize::from(host.0)].is_owed)
    }

    /// How many writes the next relaxed one passes, if the ordering table lets it.
    pub(super) fn passes(&mut self) -> usize {
        self.random.random_range(0..=self.settings.passes)
    }

    /// A request comes from a host. `data` is what a write carries.
    pub(super) fn meets(&mut self, from: HostId, tlp: &Tlp, data: &[u8]) -> Met {
        let port = &self.ports[usize::from(from.0)];
        let offset = tlp.address.wrapping_sub(port.begins_at);
        let (block, at) = (offset / self.settings.window_bytes, offset % self.settings.window_bytes);
        if block != 0 {
            return self.goes_through(from, tlp, block - 1, at);
        }
        let register = Register::at(at, &self.settings).filter(|_| tlp.length_bytes == 8);
        let Some(register) = register else {
            self.ports[usize::from(from.0)].counts.no_register += 1;
            return refused(tlp);
        };
        match (tlp.kind, data.try_into().map(u64::from_le_bytes)) {
            (Kind::MemoryWrite, Ok(value)) => self.store(from, register, value),
            (Kind::MemoryRead, _) => Met::Shows(Some(self.load(from, register))),
            _ => refused(tlp),
        }
    }

    fn goes_through(&mut self, from: HostId, tlp: &Tlp, window: u64, at: u64) -> Met {
        let is_up = self.is_up();
        let (from, to) = (usize::from(from.0), usize::from(1 - from.0));
        let to = &self.ports[to];
        let window = usize::try_from(window).ok().filter(|window| *window < to.limits.len());
        let length = u64::from(tlp.length_bytes);
        let base =
            window.filter(|window| at + length <= to.limits[*window]).map(|window| to.translations[window]);
        let port = &mut self.ports[from];
        let is_known = port.requesters.contains(&(Register::VALID | u64::from(tlp.requester)));
        match base {
            Some(base) if is_known && is_up => {
                let is_write = tlp.kind == Kind::MemoryWrite;
                *if is_write { &mut port.counts.written } else { &mut port.counts.read } += 1;
                let relaxed = is_write && self.settings.passes > 0;
                return Met::Crosses(Tlp { address: base + at, relaxed, ..*tlp });
            }
            _ if !is_known => port.counts.strangers += 1,
            Some(_) => port.counts.link_down += 1,
            None => port.counts.outside += 1,
        }
        refused(tlp)
    }

    fn store(&mut self, from: HostId, register: Register, value: u64) -> Met {
        let aligned = value & !(self.settings.align_bytes - 1);
        let doorbells = (1 << self.settings.doorbells) - 1;
        let (own, other) = (usize::from(from.0), usize::from(1 - from.0));
        match register {
            Register::PeerDoorbells => {
                // Without a link nobody hears it.
                let rings = self.is_up() && self.ports[other].ring(value & doorbells);
                return if rings { Met::Rings } else { Met::Taken };
            }
            Register::PeerScratchpad(nth) => self.ports[other].scratchpads[usize::from(nth)] = value as u32,
            Register::Scratchpad(nth) => self.ports[own].scratchpads[usize::from(nth)] = value as u32,
            Register::Translation(nth) => self.ports[own].translations[usize::from(nth)] = aligned,
            Register::Limit(nth) => {
                let limit = aligned.min(self.settings.window_bytes);
                self.ports[own].limits[usize::from(nth)] = limit;
            }
            Register::Requester(nth) => self.ports[own].requesters[usize::from(nth)] = value,
            Register::Doorbells => self.ports[own].set &= !value,
            Register::DoorbellMask => {
                let port = &mut self.ports[own];
                let waits = port.set & port.mask & !value != 0;
                port.mask = value;
                port.is_owed |= waits;
                port.counts.interrupts += u64::from(waits);
            }
            Register::Link => {
                self.ports[own].is_enabled = value & Register::ENABLED != 0;
                self.tell_of_link();
            }
        }
        Met::Taken
    }

    fn load(&self, from: HostId, register: Register) -> u64 {
        let (own, other) = (&self.ports[usize::from(from.0)], &self.ports[usize::from(1 - from.0)]);
        match register {
            Register::Doorbells => own.set,
            Register::DoorbellMask => own.mask,
            Register::PeerDoorbells => 0,
            Register::Link => {
                let (enabled, up) = (u64::from(own.is_enabled), u64::from(self.is_up()));
                (enabled * Register::ENABLED) | (up * Register::UP)
            }
            Register::Scratchpad(nth) => own.scratchpads[usize::from(nth)].into(),
            Register::PeerScratchpad(nth) => other.scratchpads[usize::from(nth)].into(),
            Register::Translation(nth) => own.translations[usize::from(nth)],
            Register::Limit(nth) => own.limits[usize::from(nth)],
            Register::Requester(nth) => own.requesters[usize::from(nth)],
        }
    }
}

impl Port {
    /// Sets bits; whether that interrupts the host.
    fn ring(&mut self, bits: u64) -> bool {
        let new = bits & !self.set;
        self.counts.coalesced += u64::from(bits != new);
        self.set |= bits;
        let interrupts = new & !self.mask != 0;
        self.counts.interrupts += u64::from(interrupts);
        interrupts
    }
}

fn refused(tlp: &Tlp) -> Met {
    if tlp.kind == Kind::MemoryWrite { Met::Taken } else { Met::Shows(None) }
}
