//! Reads of a window: uncached loads of a core, each of which stands still until its answer is there.

use beeline_contract_device::Device;
use beeline_contract_link::{ReadPort, WindowRead};
use beeline_contract_memory::Line;

use super::{CoreId, DeviceId, Sim};
use crate::cpu::{Load, Operation};

/// Reads of one window that may be outstanding; their loads happen one after the other.
const OUTSTANDING: usize = 2;
/// Loads of a read at most: a line by words.
const LOADS: usize = 8;

/// Reads of the window of a queue. A read is as many loads as the widest of the core takes.
pub struct SimReads<D> {
    pub(super) sim: Sim<D>,
    pub(super) core: CoreId,
    pub(super) device: DeviceId,
    pub(super) queue: u32,
    pub(super) lines: u32,
    pub(super) offset_bytes: u64,
    pub(super) reads: [Option<Read>; OUTSTANDING],
}

/// The numbers of the loads of a read, and how many words each brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    numbers: [u16; LOADS],
    loads: usize,
    words_each: usize,
    words: usize,
}

impl<D: Device> ReadPort for SimReads<D> {
    fn lines(&self) -> u32 {
        self.lines
    }

    fn start_read(&mut self, line: u32, first_word: u32, words: u32) -> Option<WindowRead> {
        assert!(line < self.lines && first_word + words <= 8 && words > 0, "a read outside the window");
        let slot = self.reads.iter().position(Option::is_none)?;
        let first = self.offset_bytes + u64::from(line) * 64 + u64::from(first_word) * 8;
        let core = self.core;
        let read = self.sim.around(|around| {
            let widest = around.settings.core.uncached_load_bytes / 8;
            let mut read =
                Read { numbers: [0; LOADS], loads: 0, words_each: widest as usize, words: words as usize };
            for word in (0..words).step_by(widest as usize) {
                let state = &mut around.core_states[usize::from(core.0)];
                let number = state.next_load;
                state.next_load = number.wrapping_add(1);
                let length_bytes = 8 * widest.min(words - word);
                let offset_bytes = first + u64::from(word) * 8;
                around.execute(core, Operation::Load(Load { offset_bytes, length_bytes, number }));
                read.numbers[read.loads] = number;
                read.loads += 1;
            }
            read
        });
        self.reads[slot] = Some(read);
        Some(WindowRead(slot as u16))
    }

    fn poll_read(&mut self, read: WindowRead, into: &mut Line) -> bool {
        let Some(Read { numbers, loads, words_each, words }) = self.reads[usize::from(read.0)] else {
            return false;
        };
        let core = self.core;
        let is_there = self.sim.around(|around| {
            let answers = &mut around.core_states[usize::from(core.0)].answers;
            let numbers = &numbers[..loads];
            if !numbers.iter().all(|number| answers.iter().any(|(answered, _)| answered == number)) {
                return false;
            }
            for (index, number) in numbers.iter().enumerate() {
                let Some(at) = answers.iter().position(|(answered, _)| answered == number) else { continue };
                let (_, line) = answers.swap_remove(at);
                let first = index * words_each;
                let count = words_each.min(words - first);
                into[first..first + count].copy_from_slice(&line[..count]);
            }
            true
        });
        if is_there {
            self.reads[usize::from(read.0)] = None;
        }
        is_there
    }

    fn abandon(&mut self) {
        let core = self.core;
        for read in self.reads.iter_mut().filter_map(Option::take) {
            self.sim.around(|around| {
                around.core_states[usize::from(core.0)].abandon(&read.numbers[..read.loads])
            });
        }
    }
}

impl<D> Drop for SimReads<D> {
    fn drop(&mut self) {
        let core = self.core;
        for read in self.reads.iter_mut().filter_map(Option::take) {
            self.sim.around(|around| {
                around.core_states[usize::from(core.0)].abandon(&read.numbers[..read.loads])
            });
        }
        let (device, queue) = (usize::from(self.device.0), self.queue as usize);
        self.sim.around(|around| around.ends[device].readers_taken[queue] = false);
    }
}
