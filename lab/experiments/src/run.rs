//! A run: senders take turns until all frames have left.

use std::rc::Rc;

use beeline_contract_device::Device;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, DeviceId, Next, Pause, Sim};

use crate::counter::Counter;
use crate::sender::Sender;
use crate::{Arrivals, Cost, Frames, LabError, Outcome, Run, Share, Station};

/// A frame that was sent so long ago, with none that left since, is lost: longer than devices wait for what is missing.
const TIMEOUT: Picoseconds = Picoseconds::from_ns(2_000_000);

impl Run {
    /// Sends the traffic by one queue for each of `cores` cores, which take the devices in turn: of N devices core i
    /// has queue i / N of device i mod N.
    ///
    /// # Errors
    /// A queue does not open, a frame cannot be sent, or nothing moves any more.
    pub fn on<D: Device + 'static>(&self, station: &mut Station<D>, cores: u16) -> Result<Outcome, LabError> {
        let run = Rc::new(self.clone());
        let frames = Rc::new(Frames::new(&self.traffic.sizes));
        let devices = station.devices();
        let mut senders = Vec::new();
        for core in 0..cores {
            let (device, queue) = (DeviceId(core % devices), u32::from(core / devices));
            station.port(device).link().turn_to(CoreId(core));
            let half = station.open(&self.choice, device, queue)?;
            station.port(device).link().turn_to(CoreId(0));
            senders.push(Sender::new(half, CoreId(core), &run, &frames));
        }
        let start = station.sim.with(|machine| machine.now());
        for sender in &mut senders {
            sender.clock_from(start);
            station.sim.end_turn(sender.core, Next::Again);
        }
        let of_devices = vec![Share::default(); usize::from(devices)];
        let mut outcome = Outcome { of_devices, ..Outcome::default() };
        let before = station.sim.with(|machine| Cost::of(machine, cores));
        self.serve(&station.sim, &mut senders, &mut outcome)?;
        outcome.cost = station.sim.with(|machine| Cost::of(machine, cores)).since(&before);
        Ok(outcome)
    }

    fn serve<D: Device>(
        &self,
        sim: &Sim<D>,
        senders: &mut [Sender],
        outcome: &mut Outcome,
    ) -> Result<(), LabError> {
        let wanted = self.traffic.frames * senders.len() as u64;
        let is_one_by_one = self.traffic.arrivals == Arrivals::OneByOne;
        let warm_up = self.warm_up * senders.len() as u64;
        let mut counter = Counter::new(is_one_by_one, warm_up, outcome.of_devices.len());
        while counter.left < wanted {
            match sim.advance(Picoseconds::NEVER) {
                Some(Pause::Frame) => counter.take(sim, senders, outcome),
                Some(Pause::Turn(core)) => {
                    let sender = &mut senders[usize::from(core.0)];
                    let at = sim.with(|machine| machine.now());
                    let last = sender.begun.back().map(|begun| begun.at.max(counter.last));
                    if last.is_some_and(|last| at > last + TIMEOUT) {
                        return Err(LabError::Stuck { at, done: counter.left, wanted });
                    }
                    let next = sender.turn(sim)?;
                    sim.end_turn(core, next);
                }
                None => {
                    let at = sim.with(|machine| machine.now());
                    return Err(LabError::Stuck { at, done: counter.left, wanted });
                }
            }
        }
        Ok(())
    }
}
