//! The link as the programs of a core see it: the same traits as every other link.

use beeline_contract_device::Device;
use beeline_contract_link::{DmaMemory, Doorbell, Evidence, Link, LinkError, LinkKind, RegisterRead};
use beeline_contract_memory::{Line, StorePort};

use super::state::Around;
use super::{Aperture, CoreId, DeviceId, Sim, SimReads};
use crate::cpu::{Load, Operation, Piece};
use crate::des::Picoseconds;

/// Bytes of a word and of a line.
const WORD_BYTES: usize = 8;
const LINE_BYTES: usize = 64;

/// The path of a core's accesses to the device.
pub struct CoreLink<D> {
    sim: Sim<D>,
    core: CoreId,
    device: DeviceId,
    /// Where the device begins, from the first device on.
    begins_at: u64,
}

/// The transmit window of a queue, in write-combining memory.
pub struct SimWindow<D> {
    sim: Sim<D>,
    core: CoreId,
    /// The device and its queue that have this window; none if it is one of a group.
    taken: Option<(DeviceId, u32)>,
    lines: u32,
    offset_bytes: u64,
}

/// Memory of the host that the device reads and writes.
pub struct SimMemory<D> {
    sim: Sim<D>,
    core: CoreId,
    region: usize,
    address: u64,
    bytes: usize,
}

/// A register that is stored to uncached.
pub struct SimDoorbell<D> {
    sim: Sim<D>,
    core: CoreId,
    offset_bytes: u64,
}

impl<D: Device> CoreLink<D> {
    pub(super) fn new(sim: Sim<D>, core: CoreId, device: DeviceId) -> Self {
        let begins_at = sim.around(|around| around.begins_at(device));
        CoreLink { sim, core, device, begins_at }
    }

    /// The machine.
    pub fn sim(&self) -> &Sim<D> {
        &self.sim
    }

    /// Returns the core whose accesses go through this window.
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// Returns the device that the window leads to.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// The window of a queue of every device of a multicast group; what is stored goes to all of them. The window of that
    /// queue of each device may be somebody else's all the same.
    ///
    /// # Errors
    /// There is no such group, or no such queue.
    pub fn multicast_window(&mut self, group: u16, queue: u32) -> Result<SimWindow<D>, LinkError> {
        let core = self.core;
        let (begins_at, aperture) =
            self.sim.around(|around| (around.group_begins_at(group), around.settings.aperture));
        let begins_at = begins_at.ok_or(LinkError::NoSuchQueue(queue, 0))?;
        let (offset_bytes, lines) = window_of(&aperture, queue)?;
        let offset_bytes = begins_at + offset_bytes;
        Ok(SimWindow { sim: self.sim.clone(), core, taken: None, lines, offset_bytes })
    }

    /// Loads `length_bytes` (a multiple of 8, at most 64) at an offset of the device, as one uncached load; its answer is
    /// there when the core has its next turn.
    pub fn load(&mut self, offset_bytes: u64, length_bytes: u32) -> RegisterRead {
        self.sim.around(|around| {
            let offset_bytes = self.begins_at + offset_bytes;
            let state = &mut around.core_states[usize::from(self.core.0)];
            let number = state.next_load;
            state.next_load = number.wrapping_add(1);
            around.execute(self.core, Operation::Load(Load { offset_bytes, length_bytes, number }));
            RegisterRead(number)
        })
    }

    /// Windows, memory and doorbells that are made from now on belong to the programs of another core.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn turn_to(&mut self, core: CoreId) {
        *self = self.sim.link_to(core, self.device);
    }
}

impl<D: Device> Sim<D> {
    /// The link of the programs on a core.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn link(&self, core: CoreId) -> CoreLink<D> {
        self.link_to(core, DeviceId(0))
    }

    /// The link of the programs on a core to one of several devices.
    ///
    /// # Panics
    /// If there is no such core or device.
    pub fn link_to(&self, core: CoreId, device: DeviceId) -> CoreLink<D> {
        let (cores, devices) = self.with(|machine| (machine.around.core_states.len(), machine.devices.len()));
        assert!(usize::from(core.0) < cores, "core {} of a machine that has {cores}", core.0);
        assert!(usize::from(device.0) < devices, "device {} of a machine that has {devices}", device.0);
        CoreLink::new(self.clone(), core, device)
    }
}

impl<D> Sim<D> {
    #[inline]
    pub(super) fn around<T>(&self, f: impl FnOnce(&mut Around) -> T) -> T {
        f(&mut self.machine.borrow_mut().around)
    }

    #[inline]
    fn execute(&self, core: CoreId, operation: Operation) {
        self.around(|around| around.execute(core, operation));
    }
}

impl Around {
    #[inline]
    pub(super) fn execute(&mut self, core: CoreId, operation: Operation) {
        let (state, mut path) = self.state(usize::from(core.0));
        state.core.execute(operation, &mut path);
    }

    /// What a core takes for so many lines of memory: one after the other, and no sooner than memory gives them.
    fn fill_time(&mut self, core: CoreId, lines: u64) -> Picoseconds {
        let span = self.settings.core.line_wake * lines;
        let rate = self.settings.root.memory_rate;
        if lines == 0 || rate.is_unlimited() {
            return span;
        }
        let now = self.calendar.now();
        self.bandwidth.take(now, lines, rate);
        // The clock of a core that had nothing to do is behind the time it is.
        let begins = self.core_states[usize::from(core.0)].core.clock().max(now);
        span.max(self.bandwidth.moved_at().since(begins))
    }

    #[inline]
    pub(super) fn work(&mut self, core: CoreId, span: Picoseconds) {
        if span > Picoseconds::ZERO {
            let (state, mut path) = self.state(usize::from(core.0));
            state.core.work(span, &mut path);
        }
    }
}

/// Takes the window of a queue, which only one at a time may have: its offset and its lines.
fn take_window(
    aperture: &Aperture,
    taken: &mut [bool],
    queue: u32,
    is_taken: fn(u32) -> LinkError,
) -> Result<(u64, u32), LinkError> {
    let found = window_of(aperture, queue)?;
    if taken.get_mut(queue as usize).is_some_and(|taken| std::mem::replace(taken, true)) {
        return Err(is_taken(queue));
    }
    Ok(found)
}

/// Where the window of a queue is in its device, and its lines.
fn window_of(aperture: &Aperture, queue: u32) -> Result<(u64, u32), LinkError> {
    if queue >= aperture.queues {
        return Err(LinkError::NoSuchQueue(queue, aperture.queues));
    }
    Ok((aperture.offset_bytes + u64::from(queue) * aperture.stride_bytes, aperture.window_lines))
}

/// An aligned word in a line of its own device.
fn word_piece(offset_bytes: u64, value: u64) -> Piece {
    let word = offset_bytes as usize % LINE_BYTES / WORD_BYTES;
    let mut words = [0; 8];
    words[word] = value;
    Piece { offset_bytes: offset_bytes & !(LINE_BYTES as u64 - 1), mask: 0xff << (word * WORD_BYTES), words }
}

impl<D: Device> LinkKind for CoreLink<D> {
    const EVIDENCE: Evidence = Evidence::OneProcess;
}

impl<D: Device> Link for CoreLink<D> {
    type Window = SimWindow<D>;
    type Memory = SimMemory<D>;
    type Doorbell = SimDoorbell<D>;
    type Reads = SimReads<D>;

    fn window_reads(&mut self, queue: u32) -> Result<SimReads<D>, LinkError> {
        let (offset_bytes, lines) = self.sim.around(|around| {
            let taken = &mut around.ends[usize::from(self.device.0)].readers_taken;
            take_window(&around.settings.aperture, taken, queue, LinkError::ReadsTaken)
        })?;
        let (sim, core, device) = (self.sim.clone(), self.core, self.device);
        let offset_bytes = self.begins_at + offset_bytes;
        Ok(SimReads { sim, core, device, queue, lines, offset_bytes, reads: [None; 2] })
    }

    fn window(&mut self, queue: u32) -> Result<SimWindow<D>, LinkError> {
        let (offset_bytes, lines) = self.sim.around(|around| {
            let taken = &mut around.ends[usize::from(self.device.0)].windows_taken;
            take_window(&around.settings.aperture, taken, queue, LinkError::WindowTaken)
        })?;
        let taken = Some((self.device, queue));
        let offset_bytes = self.begins_at + offset_bytes;
        Ok(SimWindow { sim: self.sim.clone(), core: self.core, taken, lines, offset_bytes })
    }

    fn memory(&mut self, bytes: usize) -> Result<SimMemory<D>, LinkError> {
        let (region, address) = self.sim.around(|around| around.memory.add(bytes));
        Ok(SimMemory { sim: self.sim.clone(), core: self.core, region, address, bytes })
    }

    fn doorbell(&mut self, offset_bytes: u32) -> Result<SimDoorbell<D>, LinkError> {
        let offset_bytes = self.begins_at + u64::from(offset_bytes);
        Ok(SimDoorbell { sim: self.sim.clone(), core: self.core, offset_bytes })
    }

    fn write_register(&mut self, offset_bytes: u32, value: u64) -> Result<bool, LinkError> {
        self.sim.execute(
            self.core,
            Operation::StoreUncached(word_piece(self.begins_at + u64::from(offset_bytes), value)),
        );
        Ok(true)
    }

    fn start_read(&mut self, offset_bytes: u32) -> Result<Option<RegisterRead>, LinkError> {
        Ok(Some(self.load(offset_bytes.into(), WORD_BYTES as u32)))
    }

    fn poll_read(&mut self, read: RegisterRead) -> Result<Option<u64>, LinkError> {
        Ok(self.sim.around(|around| {
            let answers = &mut around.core_states[usize::from(self.core.0)].answers;
            let found = answers.iter().position(|(number, _)| *number == read.0)?;
            Some(answers.swap_remove(found).1[0])
        }))
    }

    fn is_device_gone(&self) -> bool {
        false
    }
}

impl<D> SimWindow<D> {
    #[inline]
    fn store(&self, piece: &Piece) {
        self.sim.around(|around| {
            let (state, mut path) = around.state(usize::from(self.core.0));
            state.core.store(piece, &mut path);
        });
    }
}

impl<D: Device> StorePort for SimWindow<D> {
    #[inline]
    fn lines(&self) -> u32 {
        self.lines
    }

    #[inline]
    fn store_line(&mut self, line: u32, words: &Line) {
        assert!(line < self.lines, "a store outside the window");
        let offset_bytes = self.offset_bytes + u64::from(line) * LINE_BYTES as u64;
        self.store(&Piece { offset_bytes, mask: u64::MAX, words: *words });
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        assert!(line < self.lines && word < 8, "a store outside the window");
        let offset_bytes = self.offset_bytes + u64::from(line) * LINE_BYTES as u64 + u64::from(word) * 8;
        self.store(&word_piece(offset_bytes, value));
    }

    fn fence(&mut self) {
        self.sim.execute(self.core, Operation::Fence);
    }

    // A device of this link does not sleep.
    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}

impl<D> Drop for SimWindow<D> {
    fn drop(&mut self) {
        let Some((device, queue)) = self.taken else { return };
        self.sim.around(|around| around.ends[usize::from(device.0)].windows_taken[queue as usize] = false);
    }
}

impl<D: Device> Doorbell for SimDoorbell<D> {
    fn ring(&mut self, value: u64) {
        self.sim.execute(self.core, Operation::StoreUncached(word_piece(self.offset_bytes, value)));
    }
}

impl<D> SimMemory<D> {
    /// Loads a range, at the cost of the lines that the device wrote since.
    fn loaded<T>(&self, offset: usize, bytes: usize, f: impl FnOnce(&[u8]) -> T) -> T {
        self.sim.around(|around| {
            let foreign = around.memory.load_foreign(self.region, offset, bytes);
            let span = match around.settings.interconnect {
                Some(between) => between.line * foreign,
                None => around.fill_time(self.core, foreign),
            };
            around.work(self.core, span);
            f(&around.memory.bytes(self.region)[offset..offset + bytes])
        })
    }

    /// Stores a range, at the cost of its lines.
    fn stored(&self, offset: usize, bytes: usize, span: Picoseconds, f: impl FnOnce(&mut [u8])) {
        self.sim.around(|around| {
            around.work(self.core, span);
            f(&mut around.memory.bytes(self.region)[offset..offset + bytes]);
            around.host_stored(self.core, self.region, offset, bytes);
        });
    }
}

impl<D: Device> DmaMemory for SimMemory<D> {
    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn load(&mut self, offset_bytes: usize) -> u64 {
        assert!(offset_bytes.is_multiple_of(WORD_BYTES), "a load of a word at byte {offset_bytes}");
        self.loaded(offset_bytes, WORD_BYTES, |bytes| {
            u64::from_le_bytes(bytes.try_into().expect("a word has 8 bytes"))
        })
    }

    fn load_acquire(&mut self, offset_bytes: usize) -> u64 {
        self.load(offset_bytes)
    }

    fn store(&mut self, offset_bytes: usize, value: u64) {
        assert!(offset_bytes.is_multiple_of(WORD_BYTES), "a store of a word at byte {offset_bytes}");
        let span = self.sim.around(|around| around.settings.core.store);
        self.stored(offset_bytes, WORD_BYTES, span, |bytes| bytes.copy_from_slice(&value.to_le_bytes()));
    }

    fn store_release(&mut self, offset_bytes: usize, value: u64) {
        self.store(offset_bytes, value);
    }

    fn copy_in(&mut self, offset_bytes: usize, bytes: &[u8]) {
        let lines = (offset_bytes % LINE_BYTES + bytes.len()).div_ceil(LINE_BYTES) as u64;
        let span = self.sim.around(|around| around.settings.core.cached_line * lines);
        self.stored(offset_bytes, bytes.len(), span, |memory| memory.copy_from_slice(bytes));
    }

    fn copy_out(&mut self, offset_bytes: usize, bytes: &mut [u8]) {
        let count = bytes.len();
        let lines = (offset_bytes % LINE_BYTES + count).div_ceil(LINE_BYTES) as u64;
        self.sim.around(|around| {
            let span = around.settings.core.cached_line * lines;
            around.work(self.core, span);
        });
        self.loaded(offset_bytes, count, |memory| bytes.copy_from_slice(memory));
    }
}
