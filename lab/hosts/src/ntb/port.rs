//! What a driver asks of a bridge: registers by uncached stores and loads, windows as addresses. The names are those of Linux's `ntb_*`.

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{NtbCounts, NtbSettings, Region, Register};

use crate::programs::Core;

/// A side of a bridge, for the program of its host.
///
/// A store is posted, and in order behind every store of the core; a load waits for the bridge's answer, and is all ones if there is none.
#[derive(Clone)]
pub struct NtbPort {
    core: Core,
    settings: NtbSettings,
}

impl NtbPort {
    /// The side of a core's host.
    ///
    /// # Panics
    /// If the hosts have no bridge.
    pub fn new(core: &Core) -> NtbPort {
        let settings = core.hosts(|hosts, _| hosts.ntb_settings().clone());
        NtbPort { core: core.clone(), settings }
    }

    /// The core whose stores go by this side.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// What the bridge has of each thing.
    pub fn settings(&self) -> &NtbSettings {
        &self.settings
    }

    fn address(&self, register: Register) -> u64 {
        self.core.hosts(|hosts, place| hosts.ntb_register(place.host, register))
    }

    /// Stores to a register.
    pub fn write(&self, register: Register, value: u64) {
        self.core.store_in_order(self.address(register), value);
    }

    /// Loads a register: all ones if nobody answers.
    pub fn read(&self, register: Register) -> u64 {
        self.core.load_across(self.address(register))
    }

    /// `ntb_link_enable`, and the entry of this core in the table of requesters.
    pub fn link_enable(&self) {
        let id = self.core.hosts(|_, place| place.host.0 << 8 | place.core);
        self.write(Register::Requester(0), Register::VALID | u64::from(id));
        self.write(Register::Link, Register::ENABLED);
    }

    /// `ntb_link_disable`: nothing goes through from here on, either way, and both hosts are told.
    pub fn link_disable(&self) {
        self.write(Register::Link, 0);
    }

    /// `ntb_link_is_up`; not, where the bridge does not answer.
    pub fn link_is_up(&self) -> bool {
        let shown = self.read(Register::Link);
        shown != u64::MAX && shown & Register::UP != 0
    }

    /// `ntb_spad_read`: what the other side, or this one, has stored there last. All ones if nobody answers.
    pub fn spad_read(&self, nth: u16) -> u32 {
        self.read(Register::Scratchpad(nth)) as u32
    }

    /// `ntb_peer_spad_write`: posted, behind every store of the core.
    pub fn peer_spad_write(&self, nth: u16, value: u32) {
        self.write(Register::PeerScratchpad(nth), value.into());
    }

    /// `ntb_mw_set_trans`: the other side's window is this memory from here on, as far as the bridge can have it so.
    ///
    /// # Errors
    /// The bridge's register shows something else: the memory is not aligned to what the bridge can translate, or longer than a window.
    pub fn mw_set_trans(&self, window: u16, memory: Region) -> Result<(), u64> {
        let bytes = memory.bytes as u64;
        self.write(Register::Translation(window), memory.address);
        self.write(Register::Limit(window), bytes);
        for (register, wanted) in
            [(Register::Translation(window), memory.address), (Register::Limit(window), bytes)]
        {
            let found = self.read(register);
            if found != wanted {
                self.mw_clear_trans(window);
                return Err(found);
            }
        }
        Ok(())
    }

    /// `ntb_mw_clear_trans`. What had gone through before is in memory when this returns: the answer to the load comes behind it.
    pub fn mw_clear_trans(&self, window: u16) {
        self.write(Register::Limit(window), 0);
        self.read(Register::Limit(window));
    }

    /// `ntb_peer_mw_get_addr`: where stores to a window go.
    pub fn peer_mw_get_addr(&self, window: u16) -> Option<u64> {
        self.core.hosts(|hosts, place| hosts.ntb_window(place.host, window))
    }

    /// `ntb_peer_db_set`: interrupts the other host behind everything that this core has stored, unless it masks these bits or has them set.
    pub fn peer_db_set(&self, bits: u64) {
        self.write(Register::PeerDoorbells, bits);
    }

    /// `ntb_db_read`: bits that are set and not cleared yet. It is a round trip to the bridge.
    pub fn db_read(&self) -> u64 {
        self.read(Register::Doorbells)
    }

    /// `ntb_db_clear`: these bits can interrupt again. It is done when a load behind it is answered.
    pub fn db_clear(&self, bits: u64) {
        self.write(Register::Doorbells, bits);
    }

    /// `ntb_db_set_mask` and `ntb_db_clear_mask` in one: these doorbells interrupt, the others do not.
    pub fn db_unmask_only(&self, bits: u64) {
        self.write(Register::DoorbellMask, !bits);
    }

    /// The doorbell that tells of the link (`ntb_link_event`).
    pub fn link_event(&self) -> u64 {
        1 << self.settings.doorbells
    }

    /// What this side of the bridge has refused and done, as its error counters say.
    pub fn counts(&self) -> NtbCounts {
        self.core.hosts(|hosts, place| hosts.ntb_counts(place.host))
    }

    /// How often this host was interrupted by the bridge: a count of its own memory, which costs nothing to look at.
    pub fn interrupts(&self) -> u64 {
        self.core.hosts(|hosts, place| hosts.interrupts(place.host))
    }

    /// Waits for an interrupt behind those that were counted; `false` if none comes until then.
    pub fn await_interrupt(&self, counted: u64, until: Picoseconds) -> bool {
        while self.interrupts() == counted {
            if self.core.now() >= until {
                return false;
            }
            self.core.wait(Next::Poll, until);
        }
        true
    }
}
