//! Windows in sealed memory between two threads, as two processes would share them.

use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_mmio::{
    LoadWindow, MemoryOptions, ReadOnlyMemory, ReadWindow, Region, SharedMemory, StoreKernel, StoreWindow,
    Word,
};
use beeline_window::lap::{LapReceiver, LapWriter};
use beeline_window::{Receiver, WindowConfig, Writer};

use crate::FloorError;

/// What reports call the memory of every window and ring here.
pub const MEMORY: &str = "memfd, write-back";

/// The blank of every window of a bench. Fixed, so that runs are alike; no payload of a bench has such words.
const BLANK: u64 = 0xb1a7_c0de_5eed_0b1a;

/// Memory of one window, and of the credits that flow back.
#[derive(Debug)]
pub struct WindowMemory {
    region: Region,
    credits: Region,
    lines: u32,
}

impl WindowMemory {
    /// A fresh window of `lines` lines, all free.
    ///
    /// # Errors
    /// [`FloorError::Map`].
    pub fn new(lines: u32) -> Result<Self, FloorError> {
        let memory = |name, bytes| SharedMemory::create(name, bytes, MemoryOptions::default())?.map();
        let region = memory("bench-window", lines as usize * beeline_mmio::LINE_BYTES)?;
        region.fill(0, region.bytes(), BLANK);
        Ok(WindowMemory { region, credits: memory("bench-credits", 4096)?, lines })
    }

    /// Returns the configuration that both ends use.
    pub fn config(&self) -> WindowConfig {
        WindowConfig::blank(BLANK, 0)
    }

    /// A bare port to store through.
    pub fn store_window(&self, kernel: StoreKernel) -> StoreWindow {
        self.region.store_window(0, self.lines, kernel)
    }

    /// A bare port to load through.
    pub fn load_window(&self) -> LoadWindow {
        self.region.load_window(0, self.lines)
    }

    /// The credits that flow back.
    pub fn credits(&self) -> LocalCredits {
        LocalCredits(self.credits.word(0))
    }

    /// The sender's end.
    pub fn writer(&self, kernel: StoreKernel) -> Writer<StoreWindow, LocalCredits> {
        Writer::new(self.store_window(kernel), self.credits(), self.config())
    }

    /// The receiver's end, for a sender that stores with `kernel`.
    pub fn receiver(&self, kernel: StoreKernel) -> Receiver<LoadWindow, LocalCredits> {
        Receiver::new(self.load_window().for_sender(kernel), self.credits(), self.config())
    }
}

/// The sender's end of a lap window, and the ends of its receivers.
pub type LapEnds = (LapWriter<StoreWindow, LocalCredits>, Vec<LapReceiver<ReadWindow, LocalCredits>>);

/// Both ends of a fresh lap window of `lines` lines that is stored into with `kernel`. Each of the `receivers` has a mapping of
/// its own, which is read-only, and credits of its own.
///
/// # Errors
/// [`FloorError::Map`].
pub fn lap_window(lines: u32, kernel: StoreKernel, receivers: usize) -> Result<LapEnds, FloorError> {
    let bytes = lines as usize * beeline_mmio::LINE_BYTES;
    let (region, memory) = ReadOnlyMemory::create("bench-lap-window", bytes)?;
    let mut writer = LapWriter::new(region.store_window(0, lines, kernel), 0);
    let mut ends = Vec::new();
    for _ in 0..receivers {
        let credits = SharedMemory::create("bench-credits", 4096, MemoryOptions::default())?.map()?;
        let (_, start) = writer.join(LocalCredits(credits.word(0)));
        let port = memory.map()?.read_window(0, lines);
        ends.push(LapReceiver::new(port, LocalCredits(credits.word(0)), 0, start));
    }
    Ok((writer, ends))
}

/// A credit word between two threads that never sleep.
#[derive(Debug)]
pub struct LocalCredits(Word);

impl CreditSource for LocalCredits {
    #[inline]
    fn freed_lines(&mut self) -> u64 {
        // Acquire: pairs with `publish`.
        self.0.load_acquire()
    }
}

impl CreditSink for LocalCredits {
    #[inline]
    fn publish(&mut self, freed_lines: u64) {
        // Release: pairs with `freed_lines`.
        self.0.store_release(freed_lines);
    }
}

/// Credits of a window that nobody receives from, for stores alone to be measured: whenever the sender is out of them,
/// half a window is free again. That is never more than it has sent, if its messages take half a window at most.
#[derive(Debug)]
pub struct Unreceived {
    freed_lines: u64,
    half_window: u64,
}

impl Unreceived {
    /// For a window of `lines` lines, at least 2.
    pub fn new(lines: u32) -> Self {
        Unreceived { freed_lines: 0, half_window: u64::from(lines / 2) }
    }
}

impl CreditSource for Unreceived {
    fn freed_lines(&mut self) -> u64 {
        self.freed_lines += self.half_window;
        self.freed_lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_window::Sent;

    #[test]
    fn a_message_crosses() -> Result<(), FloorError> {
        let memory = WindowMemory::new(8)?;
        let mut writer = memory.writer(StoreKernel::Cached);
        let mut receiver = memory.receiver(StoreKernel::Cached);
        for lap in 0..100u8 {
            assert_eq!(writer.try_send(&[lap; 60])?, Sent::Sent);
            let mut out = Vec::new();
            receiver.poll()?.expect("a message was stored").copy_to(&mut out);
            assert_eq!(out, [lap; 60]);
            assert!(receiver.poll()?.is_none());
        }
        Ok(())
    }

    #[test]
    fn a_message_of_a_lap_window_crosses_to_each_receiver() -> Result<(), FloorError> {
        let (mut writer, mut receivers) = lap_window(8, StoreKernel::Cached, 3)?;
        for lap in 0..100u8 {
            assert_eq!(writer.try_send(&[!lap; 60]).ok(), Some(Sent::Sent));
            for receiver in &mut receivers {
                let mut out = Vec::new();
                receiver.poll()?.expect("a message was stored").copy_to(&mut out);
                assert_eq!(out, [!lap; 60]);
                assert!(receiver.poll()?.is_none());
            }
        }
        Ok(())
    }

    #[test]
    fn an_unreceived_window_is_never_full() -> Result<(), FloorError> {
        let memory = WindowMemory::new(4)?;
        let port = memory.store_window(StoreKernel::Cached);
        let mut writer = Writer::new(port, Unreceived::new(4), memory.config());
        for _ in 0..100 {
            assert_eq!(writer.try_send(&[0; 56])?, Sent::Sent);
        }
        Ok(())
    }
}
