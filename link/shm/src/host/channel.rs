//! The host's end of the register channel.

use beeline_contract_memory::StorePort;
use beeline_mmio::{Region, StoreKernel, StoreWindow, Word};
use beeline_spec::formats::{port_device_memory as device_memory, port_host_memory as host};

use crate::device::{Access, encode};
use crate::layout::{ANSWERS, AnswerWords, REGISTER_LINES, answers, stamp};

/// Posts register accesses and finds the answers to reads. Nothing here waits.
#[derive(Debug)]
pub(crate) struct RegisterChannel {
    port: StoreWindow,
    /// Accesses posted.
    posted: u64,
    taken: Word,
    answers: Box<[AnswerWords]>,
    /// The read that each answer entry is waited for.
    waiting: Vec<Option<u16>>,
    next_tag: u16,
}

impl RegisterChannel {
    pub(crate) fn new(device_region: &Region, host_region: &Region) -> Self {
        let at = device_memory::REGISTER_CHANNEL_OFFSET;
        RegisterChannel {
            // Cached stores: an access is one line, rare, and waited for.
            port: device_region.store_window(at, REGISTER_LINES, StoreKernel::Cached),
            posted: 0,
            taken: host_region.word(host::REGISTERS_TAKEN_OFFSET),
            answers: answers(host_region),
            waiting: vec![None; usize::from(ANSWERS)],
            next_tag: 0,
        }
    }

    /// Posts an access after everything this thread stored before; `false` when the channel is full.
    fn post(&mut self, access: Access) -> bool {
        // Acquire: the line was blanked before it was counted. Pairs with `taken` in device/registers.rs. A NIC
        // process that counts wildly makes the channel look full, and nothing worse.
        let under_way = self.posted.wrapping_sub(self.taken.load_acquire());
        if under_way >= u64::from(REGISTER_LINES) {
            return false;
        }
        // A register write behind PCIe flushes the write-combining buffers before it; this is the same order.
        self.port.fence();
        self.port.store_line((self.posted & u64::from(REGISTER_LINES - 1)) as u32, &encode(access));
        // A register access is waited for, so it must not stay in a buffer of the core.
        self.port.fence();
        self.posted += 1;
        true
    }

    /// Posts a write; `false` when the channel is full.
    pub(crate) fn write(&mut self, offset_bytes: u32, value: u64) -> bool {
        self.post(Access::Write { offset_bytes, value })
    }

    /// Posts a read; `None` when the channel is full or as many reads as there are entries are under way.
    pub(crate) fn read(&mut self, offset_bytes: u32) -> Option<u16> {
        let tag = self.free_tag()?;
        let entry = usize::from(tag % ANSWERS);
        // Nobody waits for it any more, whether the read can be posted now or not: an entry that is waited for without a
        // stamp to come would never be used again.
        self.waiting[entry] = None;
        self.answers[entry].stamp.store(0);
        if !self.post(Access::Read { offset_bytes, tag }) {
            return None;
        }
        self.waiting[entry] = Some(tag);
        self.next_tag = tag.wrapping_add(1);
        Some(tag)
    }

    /// The next tag whose entry nobody waits for; if there is none, one whose answer came and was never fetched,
    /// because the caller gave up waiting for it.
    fn free_tag(&self) -> Option<u16> {
        let tags = || (0..ANSWERS).map(|step| self.next_tag.wrapping_add(step));
        let is_free = |tag: &u16| self.waiting[usize::from(tag % ANSWERS)].is_none();
        let is_forgotten = |tag: &u16| {
            let entry = usize::from(tag % ANSWERS);
            self.waiting[entry].is_some_and(|tag| self.answers[entry].stamp.load() == stamp(tag))
        };
        tags().find(is_free).or_else(|| tags().find(is_forgotten))
    }

    /// The value of a read once it is there, once.
    pub(crate) fn poll_read(&mut self, tag: u16) -> Option<u64> {
        let entry = usize::from(tag % ANSWERS);
        if self.waiting[entry] != Some(tag) {
            return None;
        }
        // Acquire: the value is there when the stamp is. Pairs with `answer` in device/registers.rs.
        if self.answers[entry].stamp.load_acquire() != stamp(tag) {
            return None;
        }
        self.waiting[entry] = None;
        Some(self.answers[entry].value.load())
    }
}
