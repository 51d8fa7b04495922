//! What a core is: widths, intervals, buffers, fences.

use thiserror::Error;

use crate::des::Picoseconds;

/// Which of the buffers that wait to leave goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// The one that has waited longest: lines leave in the order in which they were filled.
    #[default]
    Fifo,
    /// The oldest, or with the same chance any: mostly in order, as arbiters are that prefer age.
    OldestRandom,
    Random,
}

/// Who must have a write before a fence lets the core go on; besides it every buffer must be empty.
///
/// No manual says it. One acknowledgement for each of these gives three very different times, and machines show three
/// very different times for a fence behind a line: some 90 ns, 230 ns and 510 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FenceAck {
    /// Nobody: buffers have let go of their lines.
    None,
    /// The uncore: it has taken the lines, and buffers are free.
    #[default]
    Uncore,
    /// The root complex: the lines are on the wire, and word of it is back.
    RootComplex,
    /// The device: the lines are there, and word of it is back. PCI Express has no such word for a posted write; a root
    /// complex that wanted to know would have to ask with a read.
    Device,
}

/// The parameters of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSettings {
    /// Bytes of one store to write-combining memory: 8, 16, 32 or 64.
    pub store_bytes: u32,
    /// From one such store to the next.
    pub store: Picoseconds,
    /// Write-combining buffers, 1 to 64.
    pub buffers: usize,
    /// Which of them leaves first.
    pub release: Release,
    /// From one line that leaves to the next.
    pub drain_interval: Picoseconds,
    /// From a line that leaves to its buffer being free.
    pub busy: Picoseconds,
    /// A line that is not full leaves this long after its last store; zero: only when it must.
    pub timeout: Picoseconds,
    /// How many full lines of 1000 leave in two pieces.
    pub split_per_mille: u32,
    /// From one uncached store to the next. Each is a packet of its own, of at most 8 bytes.
    pub uncached_store: Picoseconds,
    /// Bytes of the widest uncached load: 8, 16, 32 or 64.
    pub uncached_load_bytes: u32,
    /// What an uncached load costs besides the way to the device and back.
    pub uncached_load: Picoseconds,
    /// To store or copy a line of cached memory.
    pub cached_line: Picoseconds,
    /// A poll that finds nothing, in its own cache.
    pub poll: Picoseconds,
    /// To load a line that the device has written.
    pub line_wake: Picoseconds,
    /// Time that a fence takes when no buffer is filled and nothing waits.
    pub fence: Picoseconds,
    /// Whom it waits for.
    pub fence_ack: FenceAck,
    /// From one interrupt of the core to the next in the mean, at random; zero: none comes.
    pub interrupt_interval: Picoseconds,
    /// How long the core stands still for one.
    pub interrupt: Picoseconds,
}

/// A core that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a core with {name} = {found} cannot be; use {wanted}")]
pub struct CoreSettingsError {
    name: &'static str,
    found: u64,
    wanted: &'static str,
}

impl CoreSettings {
    /// Whether there can be such a core.
    ///
    /// # Errors
    /// Names the parameter that is out of bounds.
    pub fn check(&self) -> Result<(), CoreSettingsError> {
        let widths = |name, found: u32| {
            let is_width = [8, 16, 32, 64].contains(&found);
            let wanted = "8, 16, 32 or 64";
            if is_width { Ok(()) } else { Err(CoreSettingsError { name, found: found.into(), wanted }) }
        };
        widths("store_bytes", self.store_bytes)?;
        widths("uncached_load_bytes", self.uncached_load_bytes)?;
        if !(1..=64).contains(&self.buffers) {
            let found = self.buffers as u64;
            return Err(CoreSettingsError { name: "buffers", found, wanted: "1 to 64" });
        }
        if self.split_per_mille > 1000 {
            let found = self.split_per_mille.into();
            return Err(CoreSettingsError { name: "split_per_mille", found, wanted: "0 to 1000" });
        }
        if self.interrupt_interval > Picoseconds::ZERO && self.interrupt >= self.interrupt_interval {
            let (name, found) = ("interrupt", self.interrupt.0);
            let wanted = "less than interrupt_interval: the core would do nothing else";
            return Err(CoreSettingsError { name, found, wanted });
        }
        if self.store == Picoseconds::ZERO || self.poll == Picoseconds::ZERO {
            let name = if self.store == Picoseconds::ZERO { "store" } else { "poll" };
            return Err(CoreSettingsError { name, found: 0, wanted: "a time: nothing is free of cost" });
        }
        Ok(())
    }

    /// The time of so many words stored to one line.
    #[inline]
    pub(super) fn store_time(&self, words: u32) -> Picoseconds {
        let stores = (words * 8).div_ceil(self.store_bytes);
        self.store * u64::from(stores)
    }
}
