//! What programs do: stores and loads, of their own memory and of that of others.

use beeline_contract_memory::Line;

use super::{HostId, Hosts, HostsEvent, Place, Region};
use crate::cpu::{Load, Operation, Piece};
use crate::des::Picoseconds;

const WORD_BYTES: usize = 8;
const LINE_BYTES: u64 = 64;

/// An aligned word in a line.
fn word_piece(address: u64, value: u64) -> Piece {
    assert!(address.is_multiple_of(WORD_BYTES as u64), "a store of a word at {address:#x}");
    let word = (address % LINE_BYTES) as usize / WORD_BYTES;
    let mut words = [0; 8];
    words[word] = value;
    Piece { offset_bytes: address & !(LINE_BYTES - 1), mask: 0xff << (word * WORD_BYTES), words }
}

impl Hosts {
    /// New memory of a host, all zero.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn add_memory(&mut self, host: HostId, bytes: usize) -> Region {
        let (index, address) = self.host_mut(host).memory.add(bytes);
        Region { host, index, address, bytes }
    }

    /// A core does something for so long: what software costs.
    pub fn work(&mut self, place: Place, span: Picoseconds) {
        if span > Picoseconds::ZERO {
            let (state, mut path) = self.core(place);
            state.core.work(span, &mut path);
        }
    }

    /// Stores a line across, by a buffer that combines writes.
    pub fn store_line(&mut self, place: Place, address: u64, words: &Line) {
        assert!(address.is_multiple_of(LINE_BYTES), "a store of a line at {address:#x}");
        let (state, mut path) = self.core(place);
        let piece = Piece { offset_bytes: address, mask: u64::MAX, words: *words };
        state.core.store(&piece, &mut path);
    }

    /// Stores a word across, by a buffer that combines writes: it leaves with its line, or at a fence.
    pub fn store_word(&mut self, place: Place, address: u64, value: u64) {
        let (state, mut path) = self.core(place);
        state.core.store(&word_piece(address, value), &mut path);
    }

    /// Stores a word across, behind everything that this core has stored.
    pub fn store_in_order(&mut self, place: Place, address: u64, value: u64) {
        self.execute(place, Operation::StoreUncached(word_piece(address, value)));
    }

    /// What was stored leaves the core before what is stored next.
    pub fn fence(&mut self, place: Place) {
        self.execute(place, Operation::Fence);
    }

    /// Loads a word across, behind everything that this core has stored. [`Hosts::loaded`] has it at the next turn.
    pub fn load_across(&mut self, place: Place, address: u64) {
        let load = Load { offset_bytes: address, length_bytes: WORD_BYTES as u32, number: 0 };
        self.execute(place, Operation::Load(load));
    }

    /// What the last load across of a core has shown.
    pub fn loaded(&self, place: Place) -> u64 {
        self.host(place.host).cores[usize::from(place.core)].loaded
    }

    fn execute(&mut self, place: Place, operation: Operation) {
        let (state, mut path) = self.core(place);
        state.core.execute(operation, &mut path);
    }

    /// Loads a word of memory of a core's own host, at the cost of the line if others have stored to it since.
    ///
    /// # Panics
    /// If the region is of another host, or ends before.
    pub fn load(&mut self, place: Place, region: Region, offset: usize) -> u64 {
        let mut word = [0; WORD_BYTES];
        self.copy_out(place, region, offset, &mut word);
        u64::from_le_bytes(word)
    }

    /// As [`Hosts::load`], of any bytes.
    ///
    /// # Panics
    /// If the region is of another host, or ends before.
    pub fn copy_out(&mut self, place: Place, region: Region, offset: usize, into: &mut [u8]) {
        let home = place.host.home(&self.settings);
        assert_eq!(home, region.host, "memory of another host is not loaded here");
        let span = self.settings.core.line_wake;
        let memory = &mut self.host_mut(home).memory;
        let foreign = memory.load_foreign(region.index, offset, into.len());
        into.copy_from_slice(&memory.bytes(region.index)[offset..offset + into.len()]);
        self.work(place, span * foreign);
    }

    /// Stores a word to memory of a core's own host.
    ///
    /// # Panics
    /// If the region is of another host, or ends before.
    pub fn store(&mut self, place: Place, region: Region, offset: usize, value: u64) {
        let home = place.host.home(&self.settings);
        assert_eq!(home, region.host, "memory of another host is stored to across");
        let span = self.settings.core.store;
        let memory = &mut self.host_mut(home).memory;
        memory.bytes(region.index)[offset..offset + WORD_BYTES].copy_from_slice(&value.to_le_bytes());
        self.work(place, span);
        self.host_changed(home);
    }

    /// Takes the link of a host down or up, now.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn set_link(&mut self, host: HostId, is_up: bool) {
        let it = self.host_mut(host);
        if it.is_up != is_up {
            it.is_up = is_up;
            it.downs += u64::from(!is_up);
            // Its adapter interrupts it.
            let home = host.home(&self.settings);
            self.host_changed(home);
            self.bridge_is_told_of_links();
        }
    }

    /// The link of a host goes down or comes up at a time to come.
    pub fn link_will_change(&mut self, host: HostId, at: Picoseconds, is_up: bool) {
        self.calendar.schedule(at, HostsEvent::LinkChanges { host, is_up });
    }
}
