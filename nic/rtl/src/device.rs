//! The device: TLPs become lines at the write port, cycle by cycle; what comes out becomes wants.
//!
//! The link calls; cycles are made until the RTL has nothing more to say. A TLP is cut into lines here, as a PCIe core's
//! adapter would (`pcie/cq_adapter.sv`).

use std::collections::VecDeque;
use std::path::Path;

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, QueueId, ReadTag, SimTime, Want, Write};
use beeline_nic_rtl_sys::{Inputs, Outputs, PARAMETERS, Simulation, Straps};
use beeline_spec::LINE_BYTES;

use crate::beats::{self, Beat, Line, bytes_of, lines_of};
use crate::{RtlConfig, RtlError};

/// Cycles without any sign of life after which nothing more is expected while the wire is busy: more than the longest
/// silence inside the RTL (clearing, a register read behind the counters, giving a context's lines back).
const SILENCE_CYCLES: u32 = 700;

/// The same while the wire is ready, and the RTL does not say that it is idle: malformed batches of all queues, looked
/// at one after the other, are the longest silence.
const LONG_SILENCE_CYCLES: u32 = 200_000;

/// Cycles for which the RTL must say that it is idle: credits are still on their way to their push for some of them, and
/// frames on their way through the arbiter.
const IDLE_CYCLES: u32 = 32;

/// The same after something that the engines of descriptors and of receive may work on: they do not say that they are
/// idle, but show a sign of life more often than this (the hash of a flow takes 76 cycles, a scan over the queues 64).
const IDLE_CYCLES_DMA: u32 = 112;

/// Bytes of the BAR in which nothing but registers lies.
const REGISTER_BYTES: u64 = 2 << 20;

/// Cycles for which a write may be kept waiting before it is refused. Every wait inside the RTL that is not for the wire
/// is shorter.
const TIMEOUT_CYCLES: u32 = 400;

/// Something the RTL wants.
#[derive(Debug)]
enum Owned {
    Write { address: u64, data: [u8; LINE_BYTES], bytes: usize },
    Read { address: u64, bytes: u32, tag: DmaTag },
    Frame { queue: QueueId, frame: Vec<u8> },
    Aborted { queue: QueueId, frame: Vec<u8> },
    Answer { tag: ReadTag, value: u64 },
    Interrupt { vector: u16 },
}

/// The Verilated NIC: one port with its queues.
#[derive(Debug)]
pub struct RtlNic {
    simulation: Simulation,
    inputs: Inputs,
    outputs: Outputs,
    cycles: u64,
    beats: u64,
    /// Lines of the write that was taken last and that the RTL has not all taken.
    lines: VecDeque<Line>,
    reads: VecDeque<(u32, ReadTag)>,
    /// Reads of registers that the RTL has and has not answered.
    reads_inside: u32,
    /// The same of entries, which may be held until a frame comes: no work under way.
    window_reads: Vec<ReadTag>,
    /// Resets by the pin, modulo 256: the upper byte of the tags of DMA reads.
    life: u16,
    /// DMA reads that the link has not answered.
    answers_owed: u32,
    /// Answers to DMA reads, and the frame from the wire that was taken last.
    answers: VecDeque<Beat>,
    incoming: VecDeque<Beat>,
    frame: Vec<u8>,
    wants: VecDeque<Owned>,
    /// The want that the link was given last.
    lent: Option<Owned>,
    wire_ready: bool,
    /// Beats after which the wire is not ready any more.
    wire_beats: Option<u32>,
    /// One cycle a question: see [`RtlNic::set_stepped`].
    is_stepped: bool,
    /// Idle cycles after which nothing more is expected.
    idle_cycles: u32,
    /// Nothing will come without a new input: [`Device::next`] need not make cycles.
    is_quiet: bool,
    has_failed: bool,
}

impl RtlNic {
    /// A NIC after its reset.
    ///
    /// # Errors
    /// A size is larger than what was built, or makes no sense.
    pub fn new(config: &RtlConfig) -> Result<Self, RtlError> {
        let built = PARAMETERS;
        config.validate([built.window_lines, built.span_lines, built.contexts, built.pool_lines])?;
        let mut mac = [0; 8];
        mac[..6].copy_from_slice(&config.mac);
        let straps = Straps {
            mac: u64::from_le_bytes(mac),
            window_lines: config.window_lines,
            span_lines: config.span_lines,
            contexts: config.contexts,
            pool_lines: config.pool_lines,
            max_frame_bytes: config.max_frame_bytes,
            rx_lossless: u32::from(config.rx_lossless),
        };
        let mut nic = RtlNic {
            simulation: Simulation::new(&straps),
            inputs: Inputs { dmawr_ready: 1, rdreq_ready: 1, irq_ready: 1, rc_ready: 1, ..Inputs::default() },
            outputs: Outputs::default(),
            cycles: 0,
            beats: 0,
            lines: VecDeque::new(),
            reads: VecDeque::new(),
            reads_inside: 0,
            window_reads: Vec::new(),
            life: 0,
            answers_owed: 0,
            answers: VecDeque::new(),
            incoming: VecDeque::new(),
            frame: Vec::new(),
            wants: VecDeque::new(),
            lent: None,
            wire_ready: true,
            wire_beats: None,
            is_stepped: false,
            idle_cycles: IDLE_CYCLES,
            is_quiet: false,
            has_failed: false,
        };
        nic.reset();
        Ok(nic)
    }

    /// Puts the reset pin down for a few cycles, whatever is under way: a device in its reset state.
    pub fn reset(&mut self) {
        self.inputs.rst_n = 0;
        self.lines.clear();
        self.reads.clear();
        self.answers.clear();
        self.incoming.clear();
        for _ in 0..4 {
            self.cycle();
        }
        self.frame.clear();
        self.wants.clear();
        self.lent = None;
        self.reads_inside = 0;
        self.window_reads.clear();
        self.answers_owed = 0;
        self.life = (self.life + 1) & 0xff;
        self.inputs.rst_n = 1;
        // The reset has a register at its pin; what is offered before it has passed would be lost.
        for _ in 0..2 {
            self.cycle();
        }
        self.is_quiet = false;
    }

    /// Clock cycles since it was made.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Beats that the wire has taken since it was made.
    pub fn beats(&self) -> u64 {
        self.beats
    }

    /// Pool lines that nobody has, by their names: what the accounts say can be right while a name is lost.
    pub fn free_lines(&self) -> u32 {
        self.outputs.free_lines
    }

    /// Reorder contexts that nobody has, but for the two that stand ready in front of the reorder unit.
    pub fn free_contexts(&self) -> u32 {
        self.outputs.free_contexts
    }

    /// From here on [`Device::next`] makes one cycle when nothing is wanted yet, and time makes none: for who counts
    /// cycles. Otherwise as many are made as it takes until nothing more will be wanted.
    pub fn set_stepped(&mut self, is_stepped: bool) {
        self.is_stepped = is_stepped;
        self.is_quiet = false;
    }

    /// Whether an assertion of the RTL has failed (it was printed); what comes after that means nothing.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Writes a wave dump (VCD) from here on: every change of every signal, so keep the run short.
    ///
    /// # Errors
    /// [`RtlError::NoWaves`] in a build without the feature `waves`; [`RtlError::Waves`] when the file cannot be made.
    pub fn trace(&mut self, path: &Path) -> Result<(), RtlError> {
        #[cfg(feature = "waves")]
        let opened = self.simulation.trace(path).then_some(()).ok_or(RtlError::Waves);
        #[cfg(not(feature = "waves"))]
        let opened = {
            let _nowhere = path;
            Err(RtlError::NoWaves)
        };
        opened
    }

    /// Makes one cycle; whether anything happened in it.
    pub fn cycle(&mut self) -> bool {
        let offered = self.lines.front().copied();
        self.inputs.wr_valid = u8::from(offered.is_some());
        if let Some(line) = offered {
            self.inputs.wr_address = line.address;
            self.inputs.wr_be = line.enables;
            self.inputs.wr_data = line.data;
            self.inputs.wr_first = u8::from(line.first);
            self.inputs.wr_last = u8::from(line.last);
        }
        // A read comes behind the writes that arrived before it.
        let read = self.reads.front().copied().filter(|_| offered.is_none());
        self.inputs.rd_valid = u8::from(read.is_some());
        if let Some((address, tag)) = read {
            (self.inputs.rd_address, self.inputs.rd_tag) = (address, tag.0);
        }
        self.inputs.frame_ready = u8::from(self.wire_ready);
        self.inputs.frame_pause = u8::from(!self.wire_ready);
        let arriving = self.offer_beats();
        if !self.simulation.cycle(&self.inputs, &mut self.outputs) {
            self.has_failed = true;
        }
        self.cycles += 1;
        if self.inputs.rst_n == 0 {
            return true;
        }
        self.take_dma_and_frames(arriving) | self.take_outputs(offered.is_some(), read.is_some())
    }

    /// Puts the next beats of an answer and of a frame from the wire at the pins; whether there is one of a frame.
    fn offer_beats(&mut self) -> bool {
        let answer = self.answers.pop_front();
        self.inputs.rdcpl_valid = u8::from(answer.is_some());
        if let Some(beat) = answer {
            self.inputs.rdcpl_data = beat.data;
            self.inputs.rdcpl_tag = beat.tag;
            self.inputs.rdcpl_last = u8::from(beat.last);
            self.inputs.rdcpl_error = u8::from(beat.error);
        }
        let incoming = self.incoming.front();
        self.inputs.rx_valid = u8::from(incoming.is_some());
        if let Some(beat) = incoming {
            self.inputs.rx_data = beat.data;
            self.inputs.rx_bytes = beat.bytes;
            self.inputs.rx_last = u8::from(beat.last);
        }
        incoming.is_some()
    }

    fn take_dma_and_frames(&mut self, arriving: bool) -> bool {
        let out = self.outputs;
        let mut happened = self.inputs.rdcpl_valid == 1;
        if arriving && out.rx_ready == 1 {
            self.incoming.pop_front();
            happened = true;
        }
        if out.rdreq_valid == 1 {
            self.wants.push_back(Owned::Read {
                address: out.rdreq_address,
                bytes: out.rdreq_bytes.into(),
                tag: DmaTag(u16::from(out.rdreq_tag) | self.life << 8),
            });
            self.answers_owed += 1;
            happened = true;
        }
        happened
    }

    fn take_outputs(&mut self, offered: bool, reading: bool) -> bool {
        let out = self.outputs;
        let mut happened = false;
        if offered && out.wr_ready == 1 {
            self.lines.pop_front();
            happened = true;
        }
        if reading && out.rd_ready == 1 {
            if let Some((address, tag)) = self.reads.pop_front() {
                if u64::from(address) < REGISTER_BYTES {
                    self.reads_inside += 1;
                } else {
                    self.window_reads.push(tag);
                }
            }
            happened = true;
        }
        if out.rc_valid == 1 {
            match self.window_reads.iter().position(|tag| tag.0 == out.rc_tag) {
                Some(at) => drop(self.window_reads.swap_remove(at)),
                None => self.reads_inside = self.reads_inside.saturating_sub(1),
            }
            self.wants.push_back(Owned::Answer { tag: ReadTag(out.rc_tag), value: out.rc_value });
            happened = true;
        }
        if out.dmawr_valid == 1 {
            let (data, bytes) = (bytes_of(&out.dmawr_data), usize::from(out.dmawr_bytes));
            self.wants.push_back(Owned::Write { address: out.dmawr_address, data, bytes });
            happened = true;
        }
        if out.irq_valid == 1 {
            self.wants.push_back(Owned::Interrupt { vector: out.irq_vector });
            happened = true;
        }
        if out.frame_valid == 1 && self.wire_ready {
            self.take_beat();
            happened = true;
        }
        happened
    }

    /// The wire takes a beat. One with an abort mark is no part of its frame.
    fn take_beat(&mut self) {
        let out = self.outputs;
        self.beats += 1;
        if out.frame_abort == 0 {
            let bytes = usize::from(out.frame_bytes).min(LINE_BYTES);
            self.frame.extend_from_slice(&bytes_of(&out.frame_data)[..bytes]);
        }
        if out.frame_last == 1 {
            let (queue, frame) = (QueueId(out.frame_queue), std::mem::take(&mut self.frame));
            self.wants.push_back(match out.frame_abort {
                0 => Owned::Frame { queue, frame },
                _ => Owned::Aborted { queue, frame },
            });
        }
        if let Some(beats) = &mut self.wire_beats {
            *beats -= 1;
            self.wire_ready = *beats > 0;
        }
    }

    /// Gives the frame from the wire that was taken last its time to come in.
    fn flush_incoming(&mut self) {
        for _ in 0..TIMEOUT_CYCLES {
            if self.incoming.is_empty() {
                return;
            }
            self.cycle();
        }
    }

    fn can_give(&self, want: &Owned) -> bool {
        // What left while the wire took so many beats has left.
        self.wire_ready || self.wire_beats.is_some() || !matches!(want, Owned::Frame { .. })
    }

    /// The first want that may be given now: frames wait for the wire, others do not.
    fn take_want(&mut self) -> Option<Owned> {
        let at = self.wants.iter().position(|want| self.can_give(want))?;
        self.wants.remove(at)
    }

    /// Takes a write to be shown to the RTL from the next cycle on, unless one before it has not gone in: what a clocked
    /// port has room for, with no cycle made here.
    pub(crate) fn offer_write(&mut self, write: &Write<'_>) -> Accept {
        if !self.lines.is_empty() {
            return Accept::Refused;
        }
        self.lines = lines_of(write);
        Accept::Taken
    }

    /// Offers a frame from the wire; the device may refuse it for now, as it may a write.
    pub(crate) fn offer_frame(&mut self, frame: &[u8]) -> Accept {
        if !self.incoming.is_empty() {
            return Accept::Refused;
        }
        self.incoming = beats::frame(frame);
        Accept::Taken
    }

    /// Sets the pins of time for the cycles to come.
    pub(crate) fn set_now_ns(&mut self, now_ns: u64) {
        self.inputs.now_ns = now_ns;
    }

    /// Whether reads were asked of it that it has not answered: a held one ends by a time-out, without any input.
    pub(crate) fn owes_answers(&self) -> bool {
        !(self.reads.is_empty() && self.window_reads.is_empty()) || self.reads_inside > 0
    }

    /// Whether the wire takes what the RTL sends.
    pub(crate) fn is_wire_ready(&self) -> bool {
        self.wire_ready
    }

    /// The next want that came out of the cycles that were made, without making another.
    pub fn lend(&mut self) -> Option<Want<'_>> {
        self.lent = self.take_want();
        Some(match self.lent.as_ref()? {
            Owned::Write { address, data, bytes } => {
                Want::DmaWrite { address: *address, data: &data[..*bytes] }
            }
            Owned::Read { address, bytes, tag } => {
                Want::DmaRead { address: *address, bytes: *bytes, tag: *tag }
            }
            Owned::Frame { queue, frame } => Want::Transmit { queue: *queue, frame },
            Owned::Aborted { queue, frame } => Want::Aborted { queue: *queue, frame },
            Owned::Answer { tag, value } => Want::ReadCompletion { tag: *tag, value: *value },
            Owned::Interrupt { vector } => Want::Interrupt { vector: *vector },
        })
    }

    /// Silent cycles after which nothing more is expected, idle or not: a queue that stops waits for the answers to its
    /// reads, frames wait for the wire, and one from the wire for the room that the host lends.
    fn silence_limit_cycles(&self) -> u32 {
        let waits_for_others = !self.wire_ready || self.answers_owed > 0 || !self.incoming.is_empty();
        if waits_for_others { SILENCE_CYCLES } else { LONG_SILENCE_CYCLES }
    }

    /// Makes cycles until there is a want that can be given, or none will come.
    fn run(&mut self) {
        let (mut silent, mut idle) = (0, 0);
        while silent < self.silence_limit_cycles() && !self.has_failed {
            if self.wants.iter().any(|want| self.can_give(want)) {
                return;
            }
            silent = if self.cycle() { 0 } else { silent + 1 };
            let nothing_inside = self.lines.is_empty() && self.reads.is_empty() && self.reads_inside == 0;
            idle = if silent > 0 && nothing_inside && self.outputs.is_idle == 1 { idle + 1 } else { 0 };
            if idle > self.idle_cycles && self.wants.is_empty() {
                self.idle_cycles = IDLE_CYCLES;
                break;
            }
        }
        self.is_quiet = self.wants.is_empty();
    }
}

impl Device for RtlNic {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        self.is_quiet = false;
        // An earlier write goes first, and nothing of this one is shown before.
        for _ in 0..TIMEOUT_CYCLES {
            if self.lines.is_empty() {
                break;
            }
            self.cycle();
        }
        if !self.lines.is_empty() {
            return Accept::Refused;
        }
        let lines = lines_of(&write);
        if write.offset_bytes < REGISTER_BYTES {
            // The write may be to a doorbell, which starts DMA.
            self.idle_cycles = IDLE_CYCLES_DMA;
        }
        let count = lines.len();
        self.lines = lines;
        for _ in 0..TIMEOUT_CYCLES {
            self.cycle();
            if self.lines.len() < count {
                return Accept::Taken;
            }
        }
        if count == 0 {
            return Accept::Taken;
        }
        self.lines.clear();
        Accept::Refused
    }

    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag) {
        self.is_quiet = false;
        if offset_bytes >= REGISTER_BYTES {
            self.idle_cycles = IDLE_CYCLES_DMA;
        }
        self.reads.push_back((offset_bytes as u32, tag));
    }

    fn dma_completed(&mut self, tag: DmaTag, data: Result<&[u8], DmaError>) {
        self.is_quiet = false;
        self.idle_cycles = IDLE_CYCLES_DMA;
        // What was asked before the reset pin went down is nobody's: the read port has forgotten its tags.
        if tag.0 >> 8 == self.life && self.answers_owed > 0 {
            self.answers_owed -= 1;
            beats::answer(&mut self.answers, data, tag.0 as u8);
        }
    }

    fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        self.is_quiet = false;
        self.idle_cycles = IDLE_CYCLES_DMA;
        self.flush_incoming();
        if !self.incoming.is_empty() {
            return Accept::Refused;
        }
        self.incoming = beats::frame(frame);
        let count = self.incoming.len();
        for _ in 0..TIMEOUT_CYCLES {
            if self.incoming.len() < count || count == 0 {
                return Accept::Taken;
            }
            self.cycle();
        }
        self.incoming.clear();
        Accept::Refused
    }

    fn time_passed(&mut self, now: SimTime) {
        self.inputs.now_ns = self.inputs.now_ns.max(now.as_ns());
        self.is_quiet = false;
        self.idle_cycles = IDLE_CYCLES_DMA;
        if self.is_stepped {
            return;
        }
        // Every time-out is looked at in turn; this is long enough for each to have had its turn.
        for _ in 0..2 * (PARAMETERS.queues + PARAMETERS.contexts) {
            self.cycle();
        }
    }

    fn wire_ready(&mut self, ready: bool) {
        self.is_quiet &= ready == self.wire_ready;
        self.wire_ready = ready;
        self.wire_beats = None;
    }

    fn wire_takes(&mut self, beats: u32) {
        self.wire_ready(beats > 0);
        self.wire_beats = Some(beats);
    }

    fn next(&mut self) -> Option<Want<'_>> {
        if self.is_stepped {
            if !self.wants.iter().any(|want| self.can_give(want)) {
                self.cycle();
            }
        } else if !self.is_quiet {
            self.run();
        }
        self.lend()
    }

    fn wake_at(&self) -> Option<SimTime> {
        // The RTL keeps its deadlines to itself; a look every microsecond is what a hole of the shortest useful
        // time-out needs.
        Some(SimTime::from_ns(self.inputs.now_ns + 1000))
    }
}
