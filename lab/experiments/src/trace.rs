//! What passes on a link while a few frames are sent, as a protocol analyser shows it, and what the ends do meanwhile.

use beeline_contract_device::Device;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Pause;
use beeline_link_sim::pcie::{Dllp, Kind, Packet, Passed, Side};

#[cfg(feature = "rtl")]
use crate::rtl::check;
use crate::{Experiment, FrameTimes, LabError, NicKind, Noted, Station, Watched};

/// A packet with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// Its number in the order in which packets began, from 1.
    pub number: u64,
    /// The packet.
    pub passed: Passed,
    /// Of an acknowledgement: the number of the last packet that it answers for.
    pub acknowledges: Option<u64>,
}

/// Packets and frames of one run, in order of time.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Where time begins: the first packet of the first frame, which an analyser can see.
    pub t0: Picoseconds,
    /// Packets of the link, in order.
    pub packets: Vec<Numbered>,
    /// From the last symbol on that link to the packet at its end.
    pub flight: Picoseconds,
    pub frames: Vec<FrameTimes>,
    /// What the logic of the device saw and did.
    pub notes: Vec<Noted>,
}

impl Experiment<'_> {
    /// Sends the frames and writes down what passes on link number `link`, counted from the root complex, until `tail`
    /// after the last frame has left.
    ///
    /// # Errors
    /// As [`Experiment::measure`]; or there is no such link.
    pub fn trace(&self, link: usize, tail: Picoseconds) -> Result<Trace, LabError> {
        match self.nic {
            NicKind::Model => self.trace_on(&mut self.model_station()?, link, tail),
            #[cfg(feature = "rtl")]
            NicKind::Rtl { clock } => {
                let mut station = self.rtl_station(clock)?;
                let trace = self.trace_on(&mut station, link, tail);
                check(&station)?;
                trace
            }
        }
    }

    fn trace_on<D: Device + 'static>(
        &self,
        station: &mut Station<Watched<D>>,
        link: usize,
        tail: Picoseconds,
    ) -> Result<Trace, LabError> {
        let (links, flight) = station.sim.with(|machine| {
            let links = machine.links_mut();
            if let Some(link) = links.get_mut(link) {
                link.start_record();
            }
            (links.len(), links.get(link).map(|link| link.settings().flight))
        });
        let flight = flight.ok_or_else(|| LabError::Traffic {
            what: format!("there is no link {link}: the platform has {links}"),
            advice: "count from 0, the link at the root complex",
        })?;
        station.sim.with(|machine| machine.device().start_notes());
        let outcome = self.run().on(station, self.cores)?;
        let last = outcome.times.iter().map(|times| times.ends_at).max().unwrap_or_default();
        let until = station.sim.with(|machine| machine.now()).max(last) + tail;
        // Programs are done: only what is under way still happens.
        while let Some(pause) = station.sim.advance(until) {
            if pause == Pause::Frame {
                station.sim.with(|machine| machine.next_transmitted());
            }
        }
        let begun = outcome.times.iter().map(|times| times.begun_at).min().unwrap_or_default();
        let (passed, notes) = station.sim.with(|machine| {
            let passed = machine.links_mut()[link].take_record();
            (passed, machine.device().take_notes())
        });
        let is_first = |passed: &&Passed| {
            passed.at >= begun && passed.from == Side::Upstream && matches!(passed.packet, Packet::Tlp(_))
        };
        let t0 = passed.iter().find(is_first).map_or(begun, |passed| passed.at);
        let packets = number(&passed, t0, flight);
        let notes = notes.into_iter().filter(|noted| noted.at >= begun).collect();
        Ok(Trace { t0, packets, flight, frames: outcome.times, notes })
    }
}

/// Numbers packets from `t0` on, and finds what acknowledgements answer for: what had arrived when they left.
fn number(passed: &[Passed], t0: Picoseconds, flight: Picoseconds) -> Vec<Numbered> {
    let mut packets: Vec<Numbered> = Vec::new();
    for passed in passed.iter().filter(|passed| passed.at >= t0) {
        let acknowledges = match passed.packet {
            Packet::Dllp(Dllp::Acknowledge) => {
                let answered = packets.iter().rev().find(|packet| {
                    packet.passed.from == passed.from.other()
                        && matches!(packet.passed.packet, Packet::Tlp(_))
                        && packet.passed.ends_at + flight <= passed.at
                });
                answered.map(|packet| packet.number)
            }
            Packet::Dllp(_) | Packet::Tlp(_) => None,
        };
        packets.push(Numbered { number: packets.len() as u64 + 1, passed: *passed, acknowledges });
    }
    packets
}

impl Trace {
    /// Reads of the device: from a request at the root complex to its last completion on the wire, with its address and
    /// bytes.
    pub fn answered_reads(&self) -> Vec<(Picoseconds, Picoseconds, u64, u32)> {
        let mut reads = Vec::new();
        for (index, request) in self.packets.iter().enumerate() {
            let Packet::Tlp(asked) = request.passed.packet else { continue };
            if asked.kind != Kind::MemoryRead || request.passed.from != Side::Downstream {
                continue;
            }
            let mut missing = asked.length_bytes;
            for answer in &self.packets[index..] {
                let Packet::Tlp(tlp) = answer.passed.packet else { continue };
                let is_answer = tlp.kind == Kind::CompletionWithData && answer.passed.from == Side::Upstream;
                if is_answer && tlp.tag == asked.tag && tlp.requester == asked.requester {
                    missing = missing.saturating_sub(tlp.length_bytes);
                    if missing == 0 {
                        let arrived = request.passed.ends_at + self.flight;
                        reads.push((arrived, answer.passed.ends_at, asked.address, asked.length_bytes));
                        break;
                    }
                }
            }
        }
        reads
    }
}
