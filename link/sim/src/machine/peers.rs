//! Between devices: packets that a switch carries past the root complex, and reads of a device by another.

use beeline_contract_device::{Device, ReadTag};

use super::device_end::DeviceEnd;
use super::peer_loads::{FIRST_TAG, LOAD_WORDS, WORD_BYTES};
use super::state::Around;
use super::{DeviceId, Event, Machine};
use crate::pcie::{Answers, Class, Entered, Kind, SwitchEvent, Tlp, completions};

impl<D: Device> Machine<D> {
    /// The logic is asked for the words that a peer reads; whether there was a place for the read.
    pub(super) fn peer_reads(&mut self, device: DeviceId, tlp: &Tlp) -> bool {
        let index = usize::from(device.0);
        let end = &mut self.around.ends[index];
        let Some((number, words)) = end.peer_loads.begin(tlp) else { return false };
        let first = (tlp.address - end.base) / WORD_BYTES;
        for word in 0..words {
            let tag = FIRST_TAG + (u64::from(number) * LOAD_WORDS + word) as u16;
            self.devices[index].read_arrived((first + word) * WORD_BYTES, ReadTag(tag));
        }
        true
    }
}

impl Around {
    /// Whether a word of this tag is of a read of a peer.
    pub(super) fn is_of_peer(tag: ReadTag) -> bool {
        tag.0 >= FIRST_TAG
    }

    /// The logic has answered a word that a peer reads; with the last one, completions go to the peer.
    pub(super) fn answer_peer(&mut self, device: DeviceId, tag: ReadTag, value: u64) {
        let now = self.calendar.now();
        let DeviceEnd { peer_loads, .. } = &mut self.ends[usize::from(device.0)];
        let Some(number) = peer_loads.answer(tag, value) else { return };
        let request = peer_loads.loads[usize::from(number)].request;
        let bytes = std::mem::take(&mut peer_loads.loads[usize::from(number)].bytes);
        let read = self.ends[DeviceId::of_requester(request.requester)].reads[request.body as usize];
        let (from, into) =
            ((request.address % WORD_BYTES) as usize, (request.address - read.address) as usize);
        let length = request.length_bytes as usize;
        self.blocks.of(read.block)[into..into + length].copy_from_slice(&bytes[from..from + length]);
        let end = &mut self.ends[usize::from(device.0)];
        end.peer_loads.loads[usize::from(number)].bytes = bytes;
        end.peer_loads.free.push(number);
        let link = self.links[end.link].settings();
        let (boundary, most) = (link.completion_boundary_bytes, link.max_payload_bytes);
        let pieces = completions(
            request.address,
            u64::from(request.length_bytes.max(1)),
            boundary,
            most,
            Answers::Longest,
        );
        for piece in pieces {
            let completion = Tlp {
                body: request.body,
                requester: request.requester,
                completer: device.requester(),
                tag: request.tag,
                ..Tlp::new(Kind::CompletionWithData, piece.address, piece.length_bytes)
            };
            if let Some(at) = end.ports.answer(now, completion, &self.settings.device) {
                self.calendar.schedule(at, Event::DeviceAnswers(device));
            }
        }
    }

    pub(super) fn switch_happens(&mut self, event: SwitchEvent) {
        if let Some(switch) = &mut self.switch {
            switch.happen(event, &mut self.links, &mut self.calendar);
        }
    }

    /// A packet is at a port of the switch.
    pub(super) fn enters_switch(&mut self, port: u16, tlp: Tlp) {
        let Some(switch) = &mut self.switch else { return };
        let entered = switch.enter(port, tlp, &mut self.links, &mut self.calendar);
        let is_of_device = DeviceId::is_requester(tlp.requester);
        match entered {
            Entered::Copies(1) => {}
            Entered::Copies(copies) if copies > 1 => {
                if is_of_device {
                    self.blocks.copy(tlp.body, copies - 1);
                } else {
                    self.root_paths.lines.copy(tlp.body, copies - 1);
                }
            }
            Entered::Copies(_) => self.body_is_gone(&tlp),
            Entered::Refused => self.refused(&tlp),
        }
    }

    /// Nobody has the address of a packet: a write is gone, a read brings nothing.
    fn refused(&mut self, tlp: &Tlp) {
        let is_of_device = DeviceId::is_requester(tlp.requester);
        if is_of_device {
            self.ends[DeviceId::of_requester(tlp.requester)].totals.faults += 1;
        }
        match tlp.kind.class() {
            Class::Posted => self.body_is_gone(tlp),
            // What a load of a core shows that no device has answered.
            Class::NonPosted if !is_of_device => {
                self.core_states[usize::from(tlp.tag)].load_words = [u64::MAX; 8]
            }
            // The answer itself says it to a device.
            Class::NonPosted | Class::Completion => {}
        }
    }

    fn body_is_gone(&mut self, tlp: &Tlp) {
        if DeviceId::is_requester(tlp.requester) {
            self.blocks.remove(tlp.body);
        } else {
            self.root_paths.lines.remove(tlp.body);
        }
    }
}
