//! Ours: a frame is a message of plain stores into the device's window, in any order, never fenced.
//!
//! A thin skin over [`beeline_window::Writer`]: credits come by DMA into host memory, so no send reads across the link.
//! What is added is packing: in a burst, short frames that follow each other share a batch message when that takes
//! fewer lines than one message each. A frame of 60 bytes with its header takes two lines alone and one and an eighth
//! in company.
//!
//! From: the caller's frame. To: the device's reorder unit (HotOS'25 §3). Not here: order, which the device recovers.

use alloc::boxed::Box;
use alloc::vec;

use beeline_contract_link::DmaMemory;
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::batch::{PREFIX_BYTES, record_bytes};
use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_spec::header::lines_of;
use beeline_spec::regs::{field, queue as r};
use beeline_spec::{Interface, LINE_BYTES, WORD_BYTES};
use beeline_window::{Sent, Taken, WindowConfig, Writer};

use crate::error::TxError;
use crate::mmio::settings::MmioConfig;
use crate::port::half::{Epoch, QueueHalf, TxIdentity, window_registers};
use crate::transmit::credits::DmaCredits;
use crate::transmit::{Declared, Transmit, burst_of_singles, check_length};

/// A transmit queue fed by plain stores: window `P`, credits in memory `M`.
#[derive(Debug)]
pub struct TxMmio<P, M> {
    writer: Writer<P, DmaCredits<M>>,
    credit_address: u64,
    identity: TxIdentity,
    config: MmioConfig,
    span_lines: u32,
    max_frame_bytes: usize,
    /// Longest frame that is packed.
    max_packed_bytes: usize,
    /// Lines of the longest batch.
    max_batch_lines: u32,
    /// Memory in which the records of a batch are packed.
    staging: Box<[u8]>,
    /// Whether all lines were free at the last look.
    idle: bool,
}

/// Frames at the head of a burst, and how they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// So many frames, one at least, as messages of their own.
    Singles(usize),
    Batch {
        frames: usize,
        payload_bytes: usize,
    },
}

impl<P: StorePort, M: DmaMemory> TxMmio<P, M> {
    /// A queue whose window is empty and starts at line 0.
    pub(crate) fn new(
        port: P,
        credits: DmaCredits<M>,
        identity: TxIdentity,
        window: WindowConfig,
        config: MmioConfig,
        span_lines: u32,
        max_frame_bytes: usize,
    ) -> Self {
        let credit_address = credits.address();
        let writer = Writer::new(port, credits, window);
        // Half a window, so that a batch can be written while another is on its way.
        let max_batch_lines = config.batching.max_lines.min(writer.lines() / 2);
        let max_frame_bytes = max_frame_bytes.min(writer.max_payload_bytes());
        TxMmio {
            writer,
            credit_address,
            identity,
            config,
            span_lines,
            max_frame_bytes,
            max_packed_bytes: config.batching.max_frame_bytes.min(max_frame_bytes),
            max_batch_lines,
            staging: vec![0; max_batch_lines as usize * LINE_BYTES].into_boxed_slice(),
            idle: true,
        }
    }

    /// The window's writer: its position, what its port counts.
    pub fn writer(&self) -> &Writer<P, DmaCredits<M>> {
        &self.writer
    }

    /// Takes the queue apart and puts it together again around the same port and memory.
    fn rebuilt(self, change: impl FnOnce(&mut P, &mut DmaCredits<M>, &mut WindowConfig)) -> Self {
        let mut window = self.writer.config();
        let (mut port, mut credits) = self.writer.into_parts();
        change(&mut port, &mut credits, &mut window);
        let mut identity = self.identity;
        identity.config.epoch = window.epoch;
        TxMmio::new(port, credits, identity, window, self.config, self.span_lines, self.max_frame_bytes)
    }

    /// How the frames at the head of a burst leave: the longest run of short ones that a batch holds, if that saves
    /// a line.
    #[inline]
    fn group(&self, frames: &[&[u8]], max_lines: u32) -> Group {
        let limit_bytes = (max_lines as usize * LINE_BYTES).saturating_sub(WORD_BYTES);
        let (mut payload_bytes, mut lines_alone, mut count) = (0, 0, 0);
        for frame in frames {
            let with_this = payload_bytes + record_bytes(frame.len());
            // A frame that cannot be sent at all ends the group, and is refused when it comes first.
            let is_packed = (MIN_FRAME_BYTES..=self.max_packed_bytes).contains(&frame.len());
            if !is_packed || with_this > limit_bytes {
                break;
            }
            payload_bytes = with_this;
            lines_alone += lines_of(frame.len() as u32);
            count += 1;
        }
        if count < 2 || lines_of(payload_bytes as u32) >= lines_alone {
            return Group::Singles(count.max(1));
        }
        Group::Batch { frames: count, payload_bytes }
    }

    /// Packs frames into records and sends them as one message; there is room for it.
    fn send_batch(&mut self, frames: &[&[u8]], payload_bytes: usize) -> Result<usize, TxError> {
        pack(&mut self.staging[..payload_bytes], frames);
        let sent = self.writer.try_send_packed(&self.staging[..payload_bytes])?;
        Ok(if sent == Sent::Sent { frames.len() } else { 0 })
    }

    /// Sends the frames at the head of a burst. How many were tried, how many were sent.
    fn send_group(&mut self, frames: &[&[u8]]) -> Result<(usize, usize), TxError> {
        let mut room_lines = self.writer.free_lines();
        if room_lines < self.max_batch_lines {
            room_lines = self.writer.refresh()?;
        }
        match self.group(frames, room_lines.min(self.max_batch_lines)) {
            Group::Singles(count) => {
                Ok((count, burst_of_singles(&frames[..count], |frame| self.try_send(frame))?.0))
            }
            Group::Batch { frames: count, payload_bytes } => {
                Ok((count, self.send_batch(&frames[..count], payload_bytes)?))
            }
        }
    }
}

/// Writes the records of a batch: a length, the frame, zeros up to the next word. Staged whole before any line of it
/// is stored: a line that is loaded as a vector right after it was written in pieces stalls the core.
fn pack(records: &mut [u8], frames: &[&[u8]]) {
    let mut rest = records;
    for frame in frames {
        let (record, behind) = rest.split_at_mut(record_bytes(frame.len()));
        let last_word = record.len() - WORD_BYTES;
        record[last_word..].fill(0);
        record[..PREFIX_BYTES].copy_from_slice(&(frame.len() as u16).to_le_bytes());
        record[PREFIX_BYTES..PREFIX_BYTES + frame.len()].copy_from_slice(frame);
        rest = behind;
    }
}

impl<P: StorePort, M: DmaMemory> QueueHalf for TxMmio<P, M> {
    fn queue(&self) -> u32 {
        self.identity.queue
    }

    fn window_lines(&self) -> Option<u32> {
        Some(self.writer.lines())
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let hole_timeout_ns = self.identity.config.hole_timeout_ns;
        window_registers(
            set,
            self.writer.config().blank,
            self.credit_address,
            self.config.credits,
            hole_timeout_ns,
        );
        let cut_through_lines = self.config.cut_through_lines;
        if cut_through_lines != 0 {
            set(r::CUT_THROUGH, u64::from(cut_through_lines) << field::cut_through::LINES_LSB);
        }
    }

    fn control(&self) -> u64 {
        self.identity.control()
    }

    fn epoch(&self) -> Epoch {
        self.identity.epoch()
    }

    fn flushed(self) -> Self {
        self.rebuilt(|port, _, _| port.fence())
    }

    fn restarted(self) -> Self {
        self.rebuilt(|_, credits, window| {
            credits.restart();
            window.epoch = window.epoch.wrapping_add(1);
        })
    }
}

impl<P: StorePort, M: DmaMemory> Transmit for TxMmio<P, M> {
    #[inline]
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        check_length(frame.len(), self.max_frame_bytes)?;
        Ok(self.writer.try_send(frame)?)
    }

    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        if self.max_batch_lines == 0 {
            return burst_of_singles(frames, |frame| self.try_send(frame));
        }
        let mut taken = 0;
        while taken < frames.len() {
            match self.send_group(&frames[taken..]) {
                Ok((wanted, sent)) => {
                    taken += sent;
                    if sent < wanted {
                        break;
                    }
                }
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(Taken(taken))
    }

    fn progress(&mut self) -> Result<(), TxError> {
        self.writer.progress();
        self.idle = self.writer.refresh()? == self.writer.lines();
        Ok(())
    }

    fn max_frame_bytes(&self) -> usize {
        self.max_frame_bytes
    }

    fn is_idle(&self) -> bool {
        self.idle
    }

    fn declared(&self) -> Declared {
        Declared {
            interface: Interface::Mmio,
            tolerance: Some(Tolerance { span_lines: self.span_lines, split_lines: true }),
        }
    }
}
