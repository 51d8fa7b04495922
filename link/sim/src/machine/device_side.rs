//! Events at the device's end: what its logic sees, gets and wants.

use beeline_nic_contract::{Accept, Device, DmaError, DmaTag, Enables, ReadTag, SimTime, Want, Write};

use super::host_side::{INTERRUPT_ADDRESS, NO_BLOCK};
use super::state::{Around, Read};
use super::{Event, Machine};
use crate::cpu::FenceAck;
use crate::des::Picoseconds;
use crate::pcie::{Cut, Kind, Link, Piece, Side, Tlp, requests};

/// The device as a requester: bus 1, function 0.
const DEVICE_ID: u16 = 0x0100;
/// Words of the widest load.
const LOAD_WORDS: u16 = 8;

impl<D: Device> Machine<D> {
    /// The logic sees the write or load that came first.
    pub(super) fn device_sees(&mut self) {
        if self.is_stalled {
            return;
        }
        let now = self.around.calendar.now();
        self.device.time_passed(SimTime(now.0));
        if let Some(tlp) = self.around.ports.incoming.front().copied() {
            if self.deliver(&tlp) {
                self.around.seen(&tlp);
            } else {
                self.is_stalled = true;
            }
        }
        // What it refused just now is not offered again before it wanted something.
        self.serve(false);
    }

    /// Whether the logic took it.
    #[inline]
    fn deliver(&mut self, tlp: &Tlp) -> bool {
        let offset_bytes = tlp.address - self.around.base;
        if tlp.kind == Kind::MemoryWrite {
            let data = self.around.lines.of(tlp.body, &mut self.joined);
            let write = Write { offset_bytes, data, enables: Enables::All };
            if self.device.write_arrived(write) == Accept::Refused {
                return false;
            }
            self.around.lines.remove(tlp.body);
            self.around.totals.writes_taken += 1;
            return true;
        }
        let words = tlp.length_bytes.div_ceil(8);
        let seat = &mut self.around.seats[usize::from(tlp.tag)];
        seat.missing_words = words;
        seat.load_bytes = tlp.length_bytes;
        seat.load_number = tlp.body as u16;
        for word in 0..words {
            let tag = ReadTag(tlp.tag * LOAD_WORDS + word as u16);
            self.device.read_arrived(offset_bytes + u64::from(word) * 8, tag);
        }
        true
    }

    pub(super) fn device_gets(&mut self) {
        let around = &mut self.around;
        let now = around.calendar.now();
        let Some((number, next)) = around.ports.data.pop() else { return };
        if let Some(at) = next {
            around.calendar.schedule(at, Event::DeviceGets);
        }
        let Read { tag, block, is_bad, .. } = around.reads[number as usize];
        self.device.time_passed(SimTime(now.0));
        let data = around.blocks.of(block);
        self.device.dma_completed(tag, if is_bad { Err(DmaError::BadAddress) } else { Ok(data) });
        around.blocks.remove(block);
        around.free_reads.push(number);
        self.serve(true);
    }

    pub(super) fn device_wakes(&mut self) {
        let now = self.around.calendar.now();
        if self.around.wakes_at == now {
            self.around.wakes_at = Picoseconds::NEVER;
        }
        self.device.time_passed(SimTime(now.0));
        self.serve(true);
    }

    pub(super) fn wire_takes(&mut self) {
        self.device.time_passed(SimTime(self.around.calendar.now().0));
        self.serve(true);
    }

    /// The logic is offered the frame that came first; one that it refuses is offered again when it has done something.
    pub(super) fn frame_comes(&mut self) {
        let now = self.around.calendar.now();
        self.device.time_passed(SimTime(now.0));
        self.offer_frame();
        // Also if it refused: it may want something because of it, or want to be woken.
        self.serve(false);
    }

    fn offer_frame(&mut self) -> bool {
        let Some(frame) = self.around.coming.front() else { return false };
        self.frame_is_refused = self.device.frame_arrived(frame) == Accept::Refused;
        if self.frame_is_refused {
            return false;
        }
        let now = self.around.calendar.now();
        if let Some((_, Some(at))) = self.around.coming.pop() {
            self.around.calendar.schedule(at.max(now), Event::FrameComes);
        }
        true
    }

    /// Asks the logic what it wants until it wants nothing. What it had refused is offered again if it wanted something, or
    /// if time has passed.
    #[inline]
    pub(super) fn serve(&mut self, time_passed: bool) {
        let mut may_offer = time_passed;
        loop {
            self.device.wire_ready(self.around.wire.is_ready(self.around.calendar.now()));
            while let Some(want) = self.device.next() {
                may_offer = true;
                self.around.serve(want);
                self.device.wire_ready(self.around.wire.is_ready(self.around.calendar.now()));
            }
            if self.frame_is_refused && may_offer && self.offer_frame() {
                continue;
            }
            if !(self.is_stalled && may_offer) {
                break;
            }
            let Some(tlp) = self.around.ports.incoming.front().copied() else { break };
            if !self.deliver(&tlp) {
                break;
            }
            self.is_stalled = false;
            self.around.seen(&tlp);
        }
        if let Some(SimTime(at)) = self.device.wake_at() {
            let around = &mut self.around;
            let at = Picoseconds(at).max(around.calendar.now());
            if at < around.wakes_at {
                around.wakes_at = at;
                around.calendar.schedule(at, Event::DeviceWakes);
            }
        }
    }
}

impl Around {
    /// The logic has seen the packet that came first; the next one waits for its own time.
    #[inline]
    fn seen(&mut self, tlp: &Tlp) {
        let next = self.ports.incoming.pop().and_then(|(_, next)| next);
        if let Some(at) = next {
            self.calendar.schedule(at.max(self.calendar.now()), Event::DeviceSees);
        }
        self.free_at_device(tlp);
    }

    /// The room of a packet at the device is free.
    pub(super) fn free_at_device(&mut self, tlp: &Tlp) {
        let last = self.links.last_mut().expect("there is a first link");
        last.free(Side::Downstream, tlp, &mut self.calendar);
    }

    fn last_link(&self) -> &Link {
        self.links.last().expect("there is a first link")
    }

    /// A packet leaves the device.
    fn send_from_device(&mut self, tlp: Tlp) {
        let last = self.links.last_mut().expect("there is a first link");
        last.send(Side::Downstream, tlp, &mut self.calendar).expect("what leaves the device is cut to fit");
        if self.links.len() == 1 {
            self.settle_root();
        }
    }

    /// A packet came to the device.
    pub(super) fn arrives_at_device(&mut self, tlp: Tlp) {
        let now = self.calendar.now();
        match tlp.kind {
            Kind::CompletionWithData | Kind::Completion => {
                self.free_at_device(&tlp);
                self.completion_came(&tlp);
            }
            _ => {
                if self.fence_ack == FenceAck::Device && tlp.kind == Kind::MemoryWrite {
                    self.acknowledge(&tlp, self.way_back);
                }
                if let Some(at) = self.ports.came(now, tlp, &self.settings.device) {
                    self.calendar.schedule(at, Event::DeviceSees);
                }
            }
        }
    }

    fn completion_came(&mut self, tlp: &Tlp) {
        let now = self.calendar.now();
        let of_tag = &mut self.tag_bytes[usize::from(tlp.tag)];
        let read = &mut self.reads[tlp.body as usize];
        // One without data ends its request, whatever of it had been answered.
        let is_refused = tlp.kind == Kind::Completion;
        let bytes = if is_refused { *of_tag } else { tlp.length_bytes };
        read.is_bad |= is_refused;
        *of_tag -= bytes;
        read.missing_bytes -= bytes;
        if *of_tag == 0 {
            self.ports.free_tag(tlp.tag);
            if std::mem::take(&mut self.ports.awaits_tag) {
                self.calendar.schedule(now, Event::DeviceReads);
            }
        }
        if read.missing_bytes == 0 {
            let bytes = u64::from(read.bytes);
            let at = self.ports.completed(now, tlp.body, bytes, &self.settings.device);
            if let Some(at) = at {
                self.calendar.schedule(at, Event::DeviceGets);
            }
        }
    }

    /// Does what the logic wants.
    fn serve(&mut self, want: Want<'_>) {
        let now = self.calendar.now();
        let device = &self.settings.device;
        match want {
            Want::DmaRead { address, bytes, tag } => self.read(address, bytes, tag),
            Want::DmaWrite { address, data } => self.write(address, data),
            Want::Transmit { queue, frame } => {
                if let Some(at) = self.wire.transmit(now, queue, frame, device) {
                    self.calendar.schedule(at, Event::WireTakes);
                }
            }
            Want::Aborted { .. } => self.totals.aborted += 1,
            watch @ (Want::WatchLine { .. } | Want::ForgetLine { .. }) => {
                self.watch(&watch);
            }
            Want::ReadCompletion { tag, value } => self.answer_word(tag, value),
            Want::Interrupt { .. } => {
                let tlp = Tlp::new(Kind::MemoryWrite, INTERRUPT_ADDRESS, 4);
                let tlp = Tlp { requester: DEVICE_ID, body: NO_BLOCK, ..tlp };
                if let Some(at) = self.ports.write(now, tlp, device) {
                    self.calendar.schedule(at, Event::DeviceSends);
                }
            }
        }
    }

    fn read(&mut self, address: u64, bytes: u32, tag: DmaTag) {
        let now = self.calendar.now();
        let block = self.blocks.add();
        self.blocks.of(block).resize(bytes as usize, 0);
        // A read of nothing is answered as one of a byte (Base Specification, section 2.2.5: a zero-length read).
        let read = Read { tag, block, address, bytes, missing_bytes: bytes.max(1), is_bad: false };
        let number = match self.free_reads.pop() {
            Some(number) => {
                self.reads[number as usize] = read;
                number
            }
            None => {
                self.reads.push(read);
                self.reads.len() as u32 - 1
            }
        };
        if let Some(interconnect) = self.settings.interconnect {
            let is_bad = !self.memory.read(address, self.blocks.of(block));
            self.reads[number as usize].is_bad = is_bad;
            self.totals.faults += u64::from(is_bad);
            let at = self.moved_at(address, bytes.into(), interconnect);
            if let Some(at) = self.ports.data.push(at, number) {
                self.calendar.schedule(at, Event::DeviceGets);
            }
            return;
        }
        let most_bytes = self.last_link().settings().max_read_request_bytes;
        let of_nothing = (bytes == 0).then_some(Piece { address, length_bytes: 0 });
        for piece in requests(address, bytes.into(), most_bytes, Cut::WhenFull).chain(of_nothing) {
            let request = Tlp::new(Kind::MemoryRead, piece.address, piece.length_bytes);
            let request = Tlp { requester: DEVICE_ID, body: number, ..request };
            if let Some(at) = self.ports.request(now, request, &self.settings.device) {
                self.calendar.schedule(at, Event::DeviceReads);
            }
        }
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        if let Some(interconnect) = self.settings.interconnect {
            return self.store_lines(address, data, interconnect);
        }
        let now = self.calendar.now();
        let stored = self.ports.store(now, data.len() as u64, &self.settings.device);
        let most_bytes = self.last_link().settings().max_payload_bytes;
        for piece in requests(address, data.len() as u64, most_bytes, Cut::WhenFull) {
            let first = (piece.address - address) as usize;
            let block = self.blocks.add();
            let bytes = &data[first..first + piece.length_bytes as usize];
            self.blocks.of(block).extend_from_slice(bytes);
            let tlp = Tlp::new(Kind::MemoryWrite, piece.address, piece.length_bytes);
            let tlp = Tlp { requester: DEVICE_ID, body: block, ..tlp };
            if let Some(at) = self.ports.write(stored, tlp, &self.settings.device) {
                self.calendar.schedule(at, Event::DeviceSends);
            }
        }
    }

    fn answer_word(&mut self, tag: ReadTag, value: u64) {
        let now = self.calendar.now();
        let core = tag.0 / LOAD_WORDS;
        let seat = &mut self.seats[usize::from(core)];
        seat.load_words[usize::from(tag.0 % LOAD_WORDS)] = value;
        seat.missing_words -= 1;
        if seat.missing_words > 0 {
            return;
        }
        let completion = Tlp::new(Kind::CompletionWithData, 0, seat.load_bytes);
        let body = u32::from(seat.load_number);
        let completion = Tlp { requester: core, completer: DEVICE_ID, tag: core, body, ..completion };
        if let Some(at) = self.ports.answer(now, completion, &self.settings.device) {
            self.calendar.schedule(at, Event::DeviceAnswers);
        }
    }

    /// Read requests leave that may.
    pub(super) fn device_reads(&mut self) {
        let Some(&request) = self.ports.requests.front() else { return };
        let Some(tag) = self.ports.take_tag() else {
            self.ports.awaits_tag = true;
            return;
        };
        self.tag_bytes[usize::from(tag)] = request.length_bytes.max(1);
        let next = self.ports.requests.pop().and_then(|(_, next)| next);
        if let Some(at) = next {
            self.calendar.schedule(at.max(self.calendar.now()), Event::DeviceReads);
        }
        self.send_from_device(Tlp { tag, ..request });
    }

    pub(super) fn device_sends(&mut self) {
        let Some((tlp, next)) = self.ports.outgoing.pop() else { return };
        if let Some(at) = next {
            self.calendar.schedule(at, Event::DeviceSends);
        }
        self.send_from_device(tlp);
    }
    /// The answer to a load leaves, unless a write in front of it leaves at the same time: then that goes first.
    pub(super) fn device_answers(&mut self) {
        let now = self.calendar.now();
        if self.ports.outgoing.is_due(now) {
            self.calendar.schedule(now, Event::DeviceAnswers);
            return;
        }
        let Some((tlp, next)) = self.ports.answers.pop() else { return };
        if let Some(at) = next {
            self.calendar.schedule(at, Event::DeviceAnswers);
        }
        self.send_from_device(tlp);
    }
}
