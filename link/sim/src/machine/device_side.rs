//! Events at the device's end: what its logic sees, gets and wants.

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, Enables, ReadTag, SimTime, Want, Write};

use super::device_end::Read;
use super::host_side::{INTERRUPT_ADDRESS, NO_BLOCK};
use super::state::Around;
use super::{DeviceId, Event, Machine};
use crate::cpu::FenceAck;
use crate::des::Picoseconds;
use crate::pcie::{Cut, Kind, Piece, Side, Tlp, requests};

/// Words of the widest load.
const LOAD_WORDS: u16 = 8;

impl<D: Device> Machine<D> {
    /// The logic is told the time.
    #[inline]
    fn tell_time(&mut self, device: DeviceId) {
        let now = self.around.calendar.now();
        self.devices[usize::from(device.0)].time_passed(SimTime(now.0));
    }

    /// The logic sees the write or load that came first.
    pub(super) fn device_sees(&mut self, device: DeviceId) {
        let index = usize::from(device.0);
        if self.around.ends[index].is_stalled {
            return;
        }
        self.tell_time(device);
        if let Some(tlp) = self.around.ends[index].ports.incoming.front().copied() {
            if self.deliver(device, &tlp) {
                self.around.seen(device, &tlp);
            } else {
                self.around.ends[index].is_stalled = true;
            }
        }
        // What it refused just now is not offered again before it wanted something.
        self.serve(device, false);
    }

    /// Whether the logic took it.
    #[inline]
    fn deliver(&mut self, device: DeviceId, tlp: &Tlp) -> bool {
        let around = &mut self.around;
        let end = &mut around.ends[usize::from(device.0)];
        let logic = &mut self.devices[usize::from(device.0)];
        let offset_bytes = tlp.address - end.base;
        let is_of_peer = DeviceId::is_requester(tlp.requester);
        if tlp.kind == Kind::MemoryWrite {
            let data = if is_of_peer {
                &around.blocks.of(tlp.body)[..]
            } else {
                around.root_paths.lines.of(tlp.body, &mut self.joined)
            };
            let write = Write { offset_bytes, data, enables: Enables::All };
            if logic.write_arrived(write) == Accept::Refused {
                return false;
            }
            if is_of_peer {
                around.blocks.remove(tlp.body);
            } else {
                around.root_paths.lines.remove(tlp.body);
            }
            end.totals.writes_taken += 1;
            return true;
        }
        if is_of_peer {
            return self.peer_reads(device, tlp);
        }
        let words = tlp.length_bytes.div_ceil(8);
        let state = &mut around.core_states[usize::from(tlp.tag)];
        state.missing_words = words;
        state.load_bytes = tlp.length_bytes;
        state.load_number = tlp.body as u16;
        for word in 0..words {
            let tag = ReadTag(tlp.tag * LOAD_WORDS + word as u16);
            logic.read_arrived(offset_bytes + u64::from(word) * 8, tag);
        }
        true
    }

    pub(super) fn device_gets(&mut self, device: DeviceId) {
        let index = usize::from(device.0);
        let around = &mut self.around;
        let now = around.calendar.now();
        let end = &mut around.ends[index];
        let Some((number, next)) = end.ports.data.pop() else { return };
        if let Some(at) = next {
            around.calendar.schedule(at, Event::DeviceGets(device));
        }
        let Read { tag, block, is_bad, .. } = end.reads[number as usize];
        let logic = &mut self.devices[index];
        logic.time_passed(SimTime(now.0));
        let data = around.blocks.of(block);
        logic.dma_completed(tag, if is_bad { Err(DmaError::BadAddress) } else { Ok(data) });
        around.blocks.remove(block);
        end.free_reads.push(number);
        self.serve(device, true);
    }

    pub(super) fn device_wakes(&mut self, device: DeviceId) {
        let now = self.around.calendar.now();
        let end = &mut self.around.ends[usize::from(device.0)];
        if end.wakes_at == now {
            end.wakes_at = Picoseconds::NEVER;
        }
        self.tell_time(device);
        self.serve(device, true);
    }

    pub(super) fn wire_takes(&mut self, device: DeviceId) {
        self.tell_time(device);
        self.serve(device, true);
    }

    /// The logic is offered the frame that came first; one that it refuses is offered again when it has done something.
    pub(super) fn frame_comes(&mut self, device: DeviceId) {
        self.tell_time(device);
        self.offer_frame(device);
        // Also if it refused: it may want something because of it, or want to be woken.
        self.serve(device, false);
    }

    fn offer_frame(&mut self, device: DeviceId) -> bool {
        let end = &mut self.around.ends[usize::from(device.0)];
        let Some(frame) = end.coming.front() else { return false };
        let accepted = self.devices[usize::from(device.0)].frame_arrived(frame);
        end.frame_is_refused = accepted == Accept::Refused;
        if end.frame_is_refused {
            return false;
        }
        let now = self.around.calendar.now();
        if let Some((_, Some(at))) = end.coming.pop() {
            self.around.calendar.schedule(at.max(now), Event::FrameComes(device));
        }
        true
    }

    /// Asks the logic what it wants until it wants nothing. What it had refused is offered again if it wanted something, or
    /// if time has passed.
    #[inline]
    pub(super) fn serve(&mut self, device: DeviceId, time_passed: bool) {
        let index = usize::from(device.0);
        let mut may_offer = time_passed;
        loop {
            let (logic, around) = (&mut self.devices[index], &mut self.around);
            let now = around.calendar.now();
            logic.wire_ready(around.ends[index].wire.is_ready(now));
            while let Some(want) = logic.next() {
                may_offer = true;
                around.serve(device, want);
                logic.wire_ready(around.ends[index].wire.is_ready(now));
            }
            if around.ends[index].frame_is_refused && may_offer && self.offer_frame(device) {
                continue;
            }
            let end = &mut self.around.ends[index];
            if !(end.is_stalled && may_offer) {
                break;
            }
            let Some(tlp) = end.ports.incoming.front().copied() else { break };
            if !self.deliver(device, &tlp) {
                break;
            }
            self.around.ends[index].is_stalled = false;
            self.around.seen(device, &tlp);
        }
        if let Some(SimTime(at)) = self.devices[index].wake_at() {
            let around = &mut self.around;
            let at = Picoseconds(at).max(around.calendar.now());
            let end = &mut around.ends[index];
            if at < end.wakes_at {
                end.wakes_at = at;
                around.calendar.schedule(at, Event::DeviceWakes(device));
            }
        }
    }
}

impl Around {
    /// The logic has seen the packet that came first; the next one waits for its own time.
    #[inline]
    fn seen(&mut self, device: DeviceId, tlp: &Tlp) {
        let end = &mut self.ends[usize::from(device.0)];
        if let Some(at) = end.ports.incoming.drop_front() {
            self.calendar.schedule(at.max(self.calendar.now()), Event::DeviceSees(device));
        }
        // The room of the packet at the device is free.
        self.links[end.link].free(Side::Downstream, tlp, &mut self.calendar);
    }

    /// A packet leaves the device.
    fn send_from_device(&mut self, device: DeviceId, tlp: Tlp) {
        let link = &mut self.links[self.ends[usize::from(device.0)].link];
        link.send(Side::Downstream, tlp, &mut self.calendar).expect("what leaves the device is cut to fit");
        if self.links.len() == 1 {
            self.settle_root();
        }
    }

    /// A packet came to the device.
    pub(super) fn arrives_at_device(&mut self, device: DeviceId, tlp: Tlp) {
        let now = self.calendar.now();
        let end = &mut self.ends[usize::from(device.0)];
        match tlp.kind {
            Kind::CompletionWithData | Kind::Completion => {
                self.links[end.link].free(Side::Downstream, &tlp, &mut self.calendar);
                self.completion_came(device, &tlp);
            }
            _ => {
                let is_of_core = !DeviceId::is_requester(tlp.requester);
                if self.fence_ack == FenceAck::Device && tlp.kind == Kind::MemoryWrite && is_of_core {
                    let return_time = end.return_time;
                    self.acknowledge(&tlp, return_time);
                }
                let end = &mut self.ends[usize::from(device.0)];
                if let Some(at) = end.ports.came(now, tlp, &self.settings.device) {
                    self.calendar.schedule(at, Event::DeviceSees(device));
                }
            }
        }
    }

    fn completion_came(&mut self, device: DeviceId, tlp: &Tlp) {
        let now = self.calendar.now();
        let end = &mut self.ends[usize::from(device.0)];
        let of_tag = &mut end.tag_bytes[usize::from(tlp.tag)];
        let read = &mut end.reads[tlp.body as usize];
        // One without data ends its request, whatever of it had been answered.
        let is_refused = tlp.kind == Kind::Completion;
        let bytes = if is_refused { *of_tag } else { tlp.length_bytes };
        read.is_bad |= is_refused;
        *of_tag -= bytes;
        read.missing_bytes -= bytes;
        if *of_tag == 0 {
            end.ports.free_tag(tlp.tag);
            if std::mem::take(&mut end.ports.awaits_tag) {
                self.calendar.schedule(now, Event::DeviceReads(device));
            }
        }
        if read.missing_bytes == 0 {
            let bytes = u64::from(read.bytes);
            let at = end.ports.completed(now, tlp.body, bytes, &self.settings.device);
            if let Some(at) = at {
                self.calendar.schedule(at, Event::DeviceGets(device));
            }
        }
    }

    /// Does what the logic wants.
    fn serve(&mut self, device: DeviceId, want: Want<'_>) {
        let now = self.calendar.now();
        let settings = &self.settings.device;
        let end = &mut self.ends[usize::from(device.0)];
        match want {
            Want::DmaRead { address, bytes, tag } => self.read(device, address, bytes, tag),
            Want::DmaWrite { address, data } => self.write(device, address, data),
            Want::Transmit { queue, frame } => {
                self.let_go += 1;
                if let Some(at) = end.wire.transmit(now, queue, frame, settings) {
                    self.calendar.schedule(at, Event::WireTakes(device));
                }
            }
            Want::Aborted { .. } => end.totals.aborted += 1,
            watch @ (Want::WatchLine { .. } | Want::ForgetLine { .. }) => {
                self.watch(&watch);
            }
            Want::ReadCompletion { tag, value } if Around::is_of_peer(tag) => {
                self.answer_peer(device, tag, value)
            }
            Want::ReadCompletion { tag, value } => self.answer_word(device, tag, value),
            Want::Interrupt { .. } => {
                let tlp = Tlp::new(Kind::MemoryWrite, INTERRUPT_ADDRESS, 4);
                let tlp = Tlp { requester: end.requester, body: NO_BLOCK, ..tlp };
                if let Some(at) = end.ports.write(now, tlp, settings) {
                    self.calendar.schedule(at, Event::DeviceSends(device));
                }
            }
        }
    }

    fn read(&mut self, device: DeviceId, address: u64, bytes: u32, tag: DmaTag) {
        let now = self.calendar.now();
        let block = self.blocks.add();
        self.blocks.of(block).resize(bytes as usize, 0);
        // A read of nothing is answered as one of a byte (Base Specification, section 2.2.5: a zero-length read).
        let read = Read { tag, block, address, bytes, missing_bytes: bytes.max(1), is_bad: false };
        let end = &mut self.ends[usize::from(device.0)];
        let number = end.add_read(read);
        if let Some(interconnect) = self.settings.interconnect {
            let is_bad = !self.memory.read(address, self.blocks.of(block));
            end.reads[number as usize].is_bad = is_bad;
            end.totals.faults += u64::from(is_bad);
            let at = self.moved_at(address, bytes.into(), interconnect);
            let end = &mut self.ends[usize::from(device.0)];
            if let Some(at) = end.ports.data.push(at, number) {
                self.calendar.schedule(at, Event::DeviceGets(device));
            }
            return;
        }
        let most_bytes = self.links[end.link].settings().max_read_request_bytes;
        let of_nothing = (bytes == 0).then_some(Piece { address, length_bytes: 0 });
        for piece in requests(address, bytes.into(), most_bytes, Cut::WhenFull).chain(of_nothing) {
            let request = Tlp::new(Kind::MemoryRead, piece.address, piece.length_bytes);
            let request = Tlp { requester: end.requester, body: number, ..request };
            if let Some(at) = end.ports.request(now, request, &self.settings.device) {
                self.calendar.schedule(at, Event::DeviceReads(device));
            }
        }
    }

    fn write(&mut self, device: DeviceId, address: u64, data: &[u8]) {
        if let Some(interconnect) = self.settings.interconnect {
            return self.store_lines(address, data, interconnect);
        }
        let now = self.calendar.now();
        let end = &mut self.ends[usize::from(device.0)];
        let stored = end.ports.store(now, data.len() as u64, &self.settings.device);
        let most_bytes = self.links[end.link].settings().max_payload_bytes;
        for piece in requests(address, data.len() as u64, most_bytes, Cut::WhenFull) {
            let first = (piece.address - address) as usize;
            let block = self.blocks.add();
            let bytes = &data[first..first + piece.length_bytes as usize];
            self.blocks.of(block).extend_from_slice(bytes);
            let tlp = Tlp::new(Kind::MemoryWrite, piece.address, piece.length_bytes);
            let tlp = Tlp { requester: end.requester, body: block, ..tlp };
            if let Some(at) = end.ports.write(stored, tlp, &self.settings.device) {
                self.calendar.schedule(at, Event::DeviceSends(device));
            }
        }
    }

    fn answer_word(&mut self, device: DeviceId, tag: ReadTag, value: u64) {
        let now = self.calendar.now();
        let core = tag.0 / LOAD_WORDS;
        let state = &mut self.core_states[usize::from(core)];
        state.load_words[usize::from(tag.0 % LOAD_WORDS)] = value;
        state.missing_words -= 1;
        if state.missing_words > 0 {
            return;
        }
        let end = &mut self.ends[usize::from(device.0)];
        let completion = Tlp::new(Kind::CompletionWithData, 0, state.load_bytes);
        let body = u32::from(state.load_number);
        let completion = Tlp { requester: core, completer: end.requester, tag: core, body, ..completion };
        if let Some(at) = end.ports.answer(now, completion, &self.settings.device) {
            self.calendar.schedule(at, Event::DeviceAnswers(device));
        }
    }

    /// Read requests leave that may.
    pub(super) fn device_reads(&mut self, device: DeviceId) {
        let end = &mut self.ends[usize::from(device.0)];
        let Some(&request) = end.ports.requests.front() else { return };
        let Some(tag) = end.ports.take_tag() else {
            end.ports.awaits_tag = true;
            return;
        };
        end.tag_bytes[usize::from(tag)] = request.length_bytes.max(1);
        let next = end.ports.requests.pop().and_then(|(_, next)| next);
        if let Some(at) = next {
            self.calendar.schedule(at.max(self.calendar.now()), Event::DeviceReads(device));
        }
        self.send_from_device(device, Tlp { tag, ..request });
    }

    pub(super) fn device_sends(&mut self, device: DeviceId) {
        let end = &mut self.ends[usize::from(device.0)];
        let Some((tlp, next)) = end.ports.outgoing.pop() else { return };
        if let Some(at) = next {
            self.calendar.schedule(at, Event::DeviceSends(device));
        }
        self.send_from_device(device, tlp);
    }

    /// The answer to a load leaves, unless a write in front of it leaves at the same time: then that goes first.
    pub(super) fn device_answers(&mut self, device: DeviceId) {
        let now = self.calendar.now();
        let end = &mut self.ends[usize::from(device.0)];
        if end.ports.outgoing.is_due(now) {
            self.calendar.schedule(now, Event::DeviceAnswers(device));
            return;
        }
        let Some((tlp, next)) = end.ports.answers.pop() else { return };
        if let Some(at) = next {
            self.calendar.schedule(at, Event::DeviceAnswers(device));
        }
        self.send_from_device(device, tlp);
    }
}
