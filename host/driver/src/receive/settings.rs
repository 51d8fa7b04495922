//! What a contiguous receive ring is told, and when receive queues interrupt.

/// When frames raise an interrupt; the default raises one for every frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptModeration {
    /// Number of frames after which an interrupt is raised; 0 reads as 1.
    pub frames: u32,
    /// Longest time in ns that an interrupt is held back.
    pub time_ns: u32,
}

/// A contiguous receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxRingConfig {
    /// Epoch the queue starts with where it has no transmit half, whose epoch is otherwise the queue's; recovery raises it
    /// by one. Behind a queue that receives by reads it says nothing.
    pub epoch: u8,
    /// Lines of the ring, a power of two, enough for the longest frame twice.
    pub lines: u32,
    /// Freed lines are told to the device after this many, and whenever the ring is found empty; 0 takes a quarter
    /// of the ring.
    pub freed_coalesce: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxRingConfig {
    fn default() -> Self {
        RxRingConfig { epoch: 1, lines: 4096, freed_coalesce: 0, interrupts: InterruptModeration::default() }
    }
}
