//! The Verilated NIC on a clock: each of its cycles happens at a time of the machine around it.
//!
//! Edge `n` of the clock is at `n` periods. What arrives is held as a port's register holds it and is shown to the RTL
//! at the next edge after its arrival, one line or beat a cycle; what the RTL puts out in a cycle is wanted at that
//! cycle's edge. A write that comes while the one before is still going in is refused, which is the back-pressure of
//! the RTL's own write port, and so is a frame from the wire. DMA answers are never refused, as the RTL never refuses
//! them.
//!
//! While it is awake no cycle is left out: the scans of the engines, time-outs included, stand where they stand in
//! hardware. It falls asleep, as if its clock were gated, when nothing went in, nothing came out and no read waited for
//! its answer for 2.5 ms and 200,000 cycles, whichever is longer: by then every scan has come round many times and
//! every time-out that a host half sets by itself is over, so that what is left is a walk through states that only an
//! input ends. The next input wakes it with its state as it was, at an edge of the same clock.
//!
//! From: `link/sim`'s calls. To: [`crate::RtlNic`]. Not here: what a PCIe block and a MAC around it take.

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, Write};

use crate::{ClockPeriod, RtlConfig, RtlError, RtlNic};

/// Silence after which it may sleep: longer than the time-outs that host halves set (a hole in a window, a push whose
/// pieces are missing, a report that waits for more).
const SLEEP_AFTER: SimTime = SimTime::from_ns(2_500_000);

/// Silence in cycles after which it may sleep: the longest inside the RTL is that of malformed batches of all queues,
/// looked at one after the other (as in `device.rs`).
const SLEEP_CYCLES: u64 = 200_000;

/// The Verilated NIC whose cycles take time. One cycle costs a microsecond or two of real time, awake or busy alike.
#[derive(Debug)]
pub struct ClockedNic {
    nic: RtlNic,
    clock: ClockPeriod,
    /// Edges that are over, slept through or not.
    edges: u64,
    /// The last edge at which something went in or came out.
    lively_edge: u64,
    is_asleep: bool,
    /// Silent edges after which it sleeps.
    sleep_after_edges: u64,
}

impl ClockedNic {
    /// A NIC after its reset, whose first edge is one period from now.
    ///
    /// # Errors
    /// Those of [`RtlNic::new`].
    pub fn new(config: &RtlConfig, clock: ClockPeriod) -> Result<Self, RtlError> {
        let nic = RtlNic::new(config)?;
        let sleep_after_edges = SLEEP_CYCLES.max(clock.edges_until(SLEEP_AFTER));
        Ok(ClockedNic { nic, clock, edges: 0, lively_edge: 0, is_asleep: false, sleep_after_edges })
    }

    /// From here on it sleeps after so many silent cycles; `u64::MAX` is never. With fewer than the default, who calls
    /// says that no time-out is longer.
    pub fn sleep_after_cycles(&mut self, cycles: u64) {
        self.sleep_after_edges = cycles;
        self.wake();
    }

    /// Cycles that were made, those of the reset included and those that it slept through not.
    pub fn cycles(&self) -> u64 {
        self.nic.cycles()
    }

    /// Whether an assertion of the RTL has failed (it was printed); what comes after that means nothing.
    pub fn has_failed(&self) -> bool {
        self.nic.has_failed()
    }

    /// Something came: it is awake, and at its next edge it sees it.
    fn wake(&mut self) {
        self.is_asleep = false;
        self.lively_edge = self.edges;
    }

    fn make_edge(&mut self) {
        self.edges += 1;
        self.nic.set_now_ns(self.clock.edge(self.edges).as_ns());
        if self.nic.cycle() || self.nic.owes_answers() {
            self.lively_edge = self.edges;
        }
        self.is_asleep = self.edges - self.lively_edge >= self.sleep_after_edges;
    }
}

impl Device for ClockedNic {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        self.wake();
        self.nic.offer_write(&write)
    }

    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag) {
        self.wake();
        self.nic.read_arrived(offset_bytes, tag);
    }

    fn dma_completed(&mut self, tag: DmaTag, data: Result<&[u8], DmaError>) {
        self.wake();
        self.nic.dma_completed(tag, data);
    }

    fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        self.wake();
        self.nic.offer_frame(frame)
    }

    fn time_passed(&mut self, now: SimTime) {
        let until = self.clock.edges_until(now);
        while self.edges < until && !self.is_asleep && !self.nic.has_failed() {
            self.make_edge();
        }
        // What was slept through is over too: the next edge is one that is still to come.
        self.edges = self.edges.max(until);
    }

    fn wire_ready(&mut self, ready: bool) {
        if ready != self.nic.is_wire_ready() {
            self.wake();
        }
        self.nic.wire_ready(ready);
    }

    fn wire_takes(&mut self, beats: u32) {
        self.wake();
        self.nic.wire_takes(beats);
    }

    fn next(&mut self) -> Option<Want<'_>> {
        self.nic.lend()
    }

    fn wake_at(&self) -> Option<SimTime> {
        let is_over = self.is_asleep || self.nic.has_failed();
        (!is_over).then(|| self.clock.edge(self.edges + 1))
    }
}
