//! Frames that come back: a wire whose end is the NIC that it leaves, or a NIC like it.

use beeline_driver::{Choice, OnHalf, QueueHalf, Receive, RxNiqConfig, RxRingConfig, Stopped, Transmit};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, CoreLink, DeviceId, Next, Pause};
use beeline_link_sim::pcie::{Kind, Packet, Side, Tlp};
use beeline_nic_model::Nic;
use beeline_spec::Interface;
use beeline_window::Sent;

use super::Bench;
use crate::{LabError, Station};

/// Frames that go round.
const ROUNDS: u64 = 8;
/// The only device.
const DEVICE: DeviceId = DeviceId(0);
/// A pause before each, so that nothing of the one before is under way.
const PAUSE: Picoseconds = Picoseconds::from_ns(20_000);

/// A queue whose frames go out and come in.
pub(crate) struct Pair {
    tx: Box<dyn Transmit>,
    rx: Box<dyn Receive>,
    /// Whether looking for a frame is a read of the device, which is made at once; memory is looked at when it has changed.
    reads_device: bool,
}

/// Opens both halves of a queue.
struct OpenPair<R> {
    rx: Stopped<R>,
    reads_device: bool,
}

impl<'a, R: Receive + QueueHalf + 'static> OnHalf<&'a mut Station<Nic>> for OpenPair<R> {
    type Output = Result<Pair, LabError>;

    fn run<T: Transmit + QueueHalf + 'static>(
        self,
        station: &'a mut Station<Nic>,
        half: Stopped<T>,
    ) -> Self::Output {
        let pending = station.port(DEVICE).open(half.with(self.rx)?);
        let (tx, rx) = station.finish(DEVICE, pending)?;
        Ok(Pair { tx: Box::new(tx), rx: Box::new(rx), reads_device: self.reads_device })
    }
}

impl Bench<'_> {
    fn pair(&self, station: &mut Station<Nic>, interface: Interface) -> Result<Pair, LabError> {
        let port: &mut beeline_driver::Port<CoreLink<Nic>> = station.port(DEVICE);
        let rx = port.rx_ring(0, RxRingConfig::default())?;
        let choice = Choice::of(interface, self.seed);
        choice.half(station, |station| station.port(DEVICE), 0, OpenPair { rx, reads_device: false })?
    }

    /// Sends by `niq` and receives by reads that the NIC holds.
    fn pair_by_reads(&self, station: &mut Station<Nic>) -> Result<Pair, LabError> {
        let choice = Choice::of(Interface::Niq, self.seed);
        let entry_lines_log2 = choice.niq.entry_lines_log2;
        // The core stands still while a read is held: it must not read ahead of the frame that it is going to answer.
        let config = RxNiqConfig { entry_lines_log2, reads_ahead: false, ..RxNiqConfig::default() };
        let rx = station.port(DEVICE).rx_niq(0, config)?;
        choice.half(station, |station| station.port(DEVICE), 0, OpenPair { rx, reads_device: true })?
    }

    /// ns there and back between two programs on hosts alike, a wire between their NICs: software, transmit path, wire,
    /// receive path and polls, twice.
    ///
    /// # Errors
    /// The platform makes no machine, or a frame does not come back.
    pub fn ping_pong_ns(&self, interface: Interface, bytes: u64) -> Result<f64, LabError> {
        let mut station = self.station(interface, 1)?;
        let pair = self.pair(&mut station, interface)?;
        self.both_ways(&mut station, pair, bytes)
    }

    /// As [`Bench::ping_pong_ns`] by `niq`, but frames are received as NIQ does it: the core reads the next entry of the
    /// device, which holds the read until a frame comes (Flajslik & Rosenblum, ATC'13, custom polling).
    ///
    /// # Errors
    /// As [`Bench::ping_pong_ns`].
    pub fn ping_pong_by_reads_ns(&self, bytes: u64) -> Result<f64, LabError> {
        let mut station = self.station(Interface::Niq, 1)?;
        let pair = self.pair_by_reads(&mut station)?;
        self.both_ways(&mut station, pair, bytes)
    }

    fn both_ways(&self, station: &mut Station<Nic>, pair: Pair, bytes: u64) -> Result<f64, LabError> {
        // One way is from the call that sends to the poll that finds; two hosts alike have two such ways.
        let total: u64 = self.loop_back(station, pair, bytes)?.iter().map(|time| time.0).sum();
        Ok(2.0 * total as f64 / 1000.0 / ROUNDS as f64)
    }

    /// ns at which an analyser sees the NIC write the n-th packet of a frame that came back, from 0, counted from the first
    /// line of the frame on its way out: the loop of NAS'15, section IV-A, by kPIO+WC and 104 bytes.
    ///
    /// # Errors
    /// The platform makes no machine, or the packet does not come.
    pub fn loop_back_stamp_ns(&self, nth: usize) -> Result<f64, LabError> {
        let mut station = self.station(Interface::Kpio, 1)?;
        let pair = self.pair(&mut station, Interface::Kpio)?;
        let sim = station.sim.clone();
        sim.with(|machine| machine.links_mut().iter_mut().for_each(|link| link.start_record()));
        self.loop_back(&mut station, pair, 104)?;
        let record = sim.with(|machine| {
            machine.links_mut().last_mut().map(|link| link.take_record()).unwrap_or_default()
        });
        let writes = |side| {
            record.iter().filter_map(move |passed| match passed.packet {
                Packet::Tlp(tlp) if passed.from == side && tlp.kind == Kind::MemoryWrite => {
                    Some((passed.at, tlp))
                }
                _ => None,
            })
        };
        // Of the last round: its two lines out, and what is written beside the frame that came back (the frame, then the
        // word that tells of it), not the counts of the transmit path.
        let lines: Vec<_> = writes(Side::Upstream).filter(|(_, tlp)| tlp.length_bytes == 64).collect();
        let stuck = LabError::Stuck { at: Picoseconds::ZERO, done: 0, wanted: 1 };
        let Some((begun, _)) = lines.len().checked_sub(2).map(|at| lines[at]) else { return Err(stuck) };
        let frame = writes(Side::Downstream).find(|(at, tlp)| *at >= begun && tlp.length_bytes > 32);
        let Some((_, frame)) = frame else { return Err(stuck) };
        let is_near = |tlp: &Tlp| tlp.address.abs_diff(frame.address) < 256;
        let mut written = writes(Side::Downstream).filter(|(at, tlp)| *at >= begun && is_near(tlp));
        written.nth(nth).map(|(at, _)| at.since(begun).0 as f64 / 1000.0).ok_or(stuck)
    }

    fn loop_back(
        &self,
        station: &mut Station<Nic>,
        mut pair: Pair,
        bytes: u64,
    ) -> Result<Vec<Picoseconds>, LabError> {
        let (sim, core) = (station.sim.clone(), CoreId(0));
        sim.with(|machine| machine.keep_frames());
        let frame = vec![0x5a; bytes as usize];
        let message = Picoseconds(self.platform.core.message_ns.value.picoseconds());
        let (mut round_trips, mut called) = (Vec::new(), None);
        sim.end_turn(core, Next::At(sim.with(|machine| machine.now()) + PAUSE));
        while (round_trips.len() as u64) < ROUNDS {
            match sim.advance(Picoseconds::NEVER) {
                Some(Pause::Turn(_)) => {}
                Some(Pause::Frame) => {
                    while let Some(gone) = sim.with(|machine| machine.next_transmitted()) {
                        sim.with(|machine| machine.frame_will_come(DEVICE, gone.ends_at, gone.frame));
                    }
                    continue;
                }
                None => {
                    let at = sim.with(|machine| machine.now());
                    return Err(LabError::Stuck { at, done: round_trips.len() as u64, wanted: ROUNDS });
                }
            }
            let now = sim.with(|machine| machine.core_clock(core));
            let next = match called {
                None => {
                    sim.work(core, message);
                    if pair.tx.try_send(&frame)? == Sent::Sent {
                        called = Some(now);
                    }
                    if pair.reads_device { Next::Again } else { Next::Poll }
                }
                Some(begun) => {
                    let came = pair.rx.poll().map_err(LabError::Receive)?.is_some();
                    pair.tx.progress()?;
                    if came {
                        let clock = sim.with(|machine| machine.core_clock(core));
                        round_trips.push(clock.since(begun));
                        called = None;
                        Next::At(clock + PAUSE)
                    } else {
                        Next::Poll
                    }
                }
            };
            sim.end_turn(core, next);
        }
        Ok(round_trips)
    }
}
