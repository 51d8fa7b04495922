//! Frames through a NIC by an interface: the host half of `host/driver`, the NIC of `nic/model`.

use beeline_driver::{Choice, Transmit};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::Transmitted;
use beeline_link_sim::machine::{CoreId, DeviceId, Next, Pause, Sim};
use beeline_link_sim::pcie::{Cut, Dllp, Kind, Packet, Passed, Side, completions, requests};
use beeline_nic_model::Nic;
use beeline_spec::{Interface, Writes};
use beeline_window::Sent;

use super::Bench;
use crate::{Arrivals, LabError, NicShape, Run, Station, Traffic, machine_for, model_nic};

/// A transmit queue of some interface.
pub type FrameHalf = Box<dyn Transmit>;

/// A packet that an analyser between host and device sees, its time counted from the first packet of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The n-th acknowledgement of the device, from 0.
    Acknowledgement(usize),
    /// The n-th completion that reaches the device is acknowledged, from 0.
    CompletionAcknowledged(usize),
    /// The last completion of all that reach the device is acknowledged.
    LastCompletionAcknowledged,
    /// The last symbol of the n-th completion that leaves the host, from 0.
    CompletionSent(usize),
    /// The last symbol of the last completion of all.
    LastCompletionSent,
}

/// Between frames that are sent one by one: long enough that nothing of the one before is under way.
const PAUSE: Picoseconds = Picoseconds::from_ns(20_000);
/// Frames that are sent one by one.
const SINGLES: usize = 8;

/// One frame, sent on an idle machine.
struct Single {
    /// When the program called.
    called: Picoseconds,
    /// When it had done what it does, as far as its core goes.
    returned: Picoseconds,
    transmitted: Transmitted,
}

impl Bench<'_> {
    /// A NIC behind the platform's link, its port up.
    ///
    /// # Errors
    /// The platform makes no machine, or the port does not come up.
    pub fn station(&self, interface: Interface, cores: u16) -> Result<Station<Nic>, LabError> {
        let shape = NicShape::for_cores(cores);
        let settings = machine_for(interface, self.platform, cores, shape.aperture(), self.data)?;
        Station::new(Sim::new(model_nic(&shape)?, settings, self.seed)?)
    }

    fn half(&self, station: &mut Station<Nic>, interface: Interface) -> Result<FrameHalf, LabError> {
        station.open(&Choice::of(interface, self.seed), DeviceId(0), 0)
    }

    /// ns from the first store of one frame, or from its doorbell, until the NIC has the whole frame and lets it go.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn transmit_latency_ns(&self, interface: Interface, bytes: u64) -> Result<f64, LabError> {
        let mut station = self.station(interface, 1)?;
        let mut half = self.half(&mut station, interface)?;
        // The doorbell is the last thing that the program does, and what it costs the core comes behind the store itself.
        let doorbell = Picoseconds(self.platform.core.uncached_store_ns.value.picoseconds());
        let mut total = 0;
        for _ in 0..SINGLES {
            let single = self.send_single(&station.sim, &mut half, bytes)?;
            let begun = match interface.writes() {
                Writes::Doorbell => single.returned.since(doorbell),
                Writes::Lines | Writes::Entries | Writes::Nothing => single.called,
            };
            total += single.transmitted.decided_at.since(begun).0;
        }
        Ok(total as f64 / 1000.0 / SINGLES as f64)
    }

    fn send_single(&self, sim: &Sim<Nic>, half: &mut FrameHalf, bytes: u64) -> Result<Single, LabError> {
        let core = CoreId(0);
        let frame = vec![0x5a; bytes as usize];
        turn_at(sim, sim.with(|machine| machine.now()) + PAUSE)?;
        half.progress()?;
        sim.end_turn(core, Next::Again);
        wait_for_turn(sim)?;
        let called = sim.with(|machine| machine.core_clock(core));
        if half.try_send(&frame)? == Sent::Full {
            return Err(LabError::Stuck { at: called, done: 0, wanted: 1 });
        }
        let returned = sim.with(|machine| machine.core_clock(core));
        sim.end_turn(core, Next::Never);
        match sim.advance(Picoseconds::NEVER) {
            Some(Pause::Frame) => {}
            _ => return Err(LabError::Stuck { at: returned, done: 0, wanted: 1 }),
        }
        let transmitted = sim.with(|machine| machine.next_transmitted());
        let transmitted = transmitted.ok_or(LabError::Stuck { at: returned, done: 0, wanted: 1 })?;
        Ok(Single { called, returned, transmitted })
    }

    /// ns a frame from the first doorbell until the NIC has reported that so many frames, posted in a row, are done.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn transmit_done_ns(&self, interface: Interface, bytes: u64, frames: u32) -> Result<f64, LabError> {
        let mut station = self.station(interface, 1)?;
        let mut half = self.half(&mut station, interface)?;
        let (sim, core) = (station.sim.clone(), CoreId(0));
        let frame = vec![0x5a; bytes as usize];
        turn_at(&sim, sim.with(|machine| machine.now()) + PAUSE)?;
        let begun = sim.with(|machine| machine.core_clock(core));
        let mut posted = 0;
        loop {
            if posted < frames {
                posted += u32::from(half.try_send(&frame)? == Sent::Sent);
                sim.end_turn(core, Next::Again);
            } else {
                half.progress()?;
                if half.is_idle() {
                    let done = sim.with(|machine| machine.core_clock(core));
                    return Ok(done.since(begun).0 as f64 / 1000.0 / f64::from(frames));
                }
                sim.end_turn(core, Next::Poll);
            }
            wait_for_turn(&sim)?;
        }
    }

    /// Gbit/s of frames that leave, without end, so many a call.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn frame_rate_gbps(
        &self,
        interface: Interface,
        bytes: u64,
        cores: u16,
        burst: usize,
    ) -> Result<f64, LabError> {
        let mut station = self.station(interface, cores)?;
        let frames = (2_000_000 / bytes).clamp(200, 4000);
        let run = Run {
            choice: Choice::of(interface, self.seed),
            traffic: Traffic { sizes: vec![bytes as usize], frames, arrivals: Arrivals::Always { burst } },
            message: Picoseconds(self.platform.core.message_ns.value.picoseconds()),
            warm_up: frames / 5,
            seed: self.seed,
        };
        Ok(run.on(&mut station, cores)?.goodput_gbps())
    }

    /// % of the bytes on the link, both directions, that are doorbells, descriptors and completions, and their headers,
    /// while frames leave by descriptors without end, `burst` of them a doorbell: all but what brings payload.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn descriptor_share_percent(&self, bytes: u64, burst: usize) -> Result<f64, LabError> {
        let mut station = self.station(Interface::Descriptor, 1)?;
        station.sim.with(|machine| machine.links_mut()[0].start_record());
        let frames = 512;
        let run = Run {
            choice: Choice::of(Interface::Descriptor, self.seed),
            traffic: Traffic { sizes: vec![bytes as usize], frames, arrivals: Arrivals::Always { burst } },
            message: Picoseconds(self.platform.core.message_ns.value.picoseconds()),
            warm_up: 0,
            seed: self.seed,
        };
        run.on(&mut station, 1)?;
        let record = station.sim.with(|machine| machine.links_mut()[0].take_record());
        let link = station.sim.with(|machine| machine.links()[0].settings().clone());
        let encoding = link.generation.encoding();
        let total: u64 = record
            .iter()
            .map(|passed| match passed.packet {
                Packet::Tlp(tlp) => u64::from(tlp.wire_bytes(encoding)),
                Packet::Dllp(_) => 0,
            })
            .sum();
        let mut payload = 0;
        let bytes_of = |kind, address, length| {
            u64::from(beeline_link_sim::pcie::Tlp::new(kind, address, length).wire_bytes(encoding))
        };
        let aperture = NicShape::for_cores(1).aperture();
        let answers = machine_for(Interface::Descriptor, self.platform, 1, aperture, self.data)?.root.answers;
        let base = 1 << 33;
        for piece in requests(base, bytes, link.max_read_request_bytes, Cut::WhenFull) {
            payload += bytes_of(Kind::MemoryRead, piece.address, piece.length_bytes);
            let (boundary, most) = (link.completion_boundary_bytes, link.max_payload_bytes);
            let length = piece.length_bytes.into();
            for answer in completions(piece.address, length, boundary, most, answers) {
                payload += bytes_of(Kind::CompletionWithData, answer.address, answer.length_bytes);
            }
        }
        Ok(100.0 * (1.0 - (payload * frames) as f64 / total as f64))
    }

    /// ns at which an analyser at the link of the device sees a packet, counted from the first packet of a frame of `bytes`
    /// by an interface. The way from the transmitter to the analyser is the same for all and drops out.
    ///
    /// # Errors
    /// The platform makes no machine, or the packet does not come.
    pub fn trace_stamp_ns(&self, interface: Interface, bytes: u64, stamp: Stamp) -> Result<f64, LabError> {
        let record = self.trace(interface, bytes)?;
        let begun = record.iter().find(|passed| {
            passed.from == Side::Upstream
                && matches!(passed.packet, Packet::Tlp(tlp) if tlp.kind == Kind::MemoryWrite)
        });
        let stuck = LabError::Stuck { at: Picoseconds::ZERO, done: 0, wanted: 1 };
        let Some(begun) = begun.map(|passed| passed.at) else { return Err(stuck) };
        let acknowledges = |passed: &&Passed| {
            passed.from == Side::Downstream
                && passed.at >= begun
                && passed.packet == Packet::Dllp(Dllp::Acknowledge)
        };
        let mut acknowledged = record.iter().filter(acknowledges).map(|passed| passed.at);
        let is_answer = |packet| matches!(packet, Packet::Tlp(tlp) if tlp.kind == Kind::CompletionWithData);
        let sent: Vec<_> = record
            .iter()
            .filter(|passed| passed.from == Side::Upstream && is_answer(passed.packet))
            .map(|passed| passed.ends_at)
            .collect();
        // What acknowledges a packet leaves when it is there.
        let hops = &self.platform.hops;
        let last = hops.last().map_or(&self.platform.link, |hop| &hop.link);
        let flight = Picoseconds(last.flight_ns.value.picoseconds());
        let mut after = |sent: Picoseconds| acknowledged.find(|acknowledged| *acknowledged >= sent + flight);
        let found = match stamp {
            Stamp::Acknowledgement(nth) => acknowledged.nth(nth),
            Stamp::CompletionAcknowledged(nth) => sent.get(nth).and_then(|came| after(*came)),
            Stamp::LastCompletionAcknowledged => sent.last().and_then(|came| after(*came)),
            Stamp::CompletionSent(nth) => sent.get(nth).copied(),
            Stamp::LastCompletionSent => sent.last().copied(),
        };
        let at = found.ok_or_else(|| LabError::Traffic {
            what: format!("no packet passes that is {stamp:?}"),
            advice: "ask for one of those that `Bench::trace` gives",
        })?;
        Ok(at.since(begun).0 as f64 / 1000.0)
    }

    /// What passes on the last link from the call that sends one frame until nothing moves any more.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn trace(&self, interface: Interface, bytes: u64) -> Result<Vec<Passed>, LabError> {
        let mut station = self.station(interface, 1)?;
        let mut half = self.half(&mut station, interface)?;
        let sim = station.sim.clone();
        sim.with(|machine| machine.links_mut().last_mut().map(|link| link.start_record()));
        let take = |sim: &Sim<Nic>| {
            sim.with(|machine| {
                machine.links_mut().last_mut().map(|link| link.take_record()).unwrap_or_default()
            })
        };
        take(&sim);
        let single = self.send_single(&sim, &mut half, bytes)?;
        // What follows the frame: completions, credits, acknowledgements.
        let until = single.transmitted.ends_at + PAUSE;
        while sim.advance(until).is_some() {}
        let record = take(&sim);
        Ok(record.into_iter().filter(|passed| passed.at >= single.called).collect())
    }
}

/// Waits until core 0 has its turn.
fn wait_for_turn(sim: &Sim<Nic>) -> Result<(), LabError> {
    loop {
        match sim.advance(Picoseconds::NEVER) {
            Some(Pause::Turn(_)) => return Ok(()),
            Some(Pause::Frame) => while sim.with(|machine| machine.next_transmitted()).is_some() {},
            None => {
                let at = sim.with(|machine| machine.now());
                return Err(LabError::Stuck { at, done: 0, wanted: 1 });
            }
        }
    }
}

/// Core 0 has its turn at `at`.
fn turn_at(sim: &Sim<Nic>, at: Picoseconds) -> Result<(), LabError> {
    sim.end_turn(CoreId(0), Next::At(at));
    wait_for_turn(sim)
}
