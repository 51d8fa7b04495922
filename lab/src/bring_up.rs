//! A port of a NIC in virtual time, brought up as on any link.

use beeline_driver::{Pending, Port, PortConfig, PortState, Progress};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, CoreLink, Next, Pause, Sim};
use beeline_nic_contract::Device;

use crate::LabError;

/// Longest that bringing up may take, in virtual time.
const PATIENCE: Picoseconds = Picoseconds::from_ns(1_000_000_000);

/// A machine whose port is ready.
pub struct Station<D: Device> {
    /// The machine.
    pub sim: Sim<D>,
    /// The port; made on core 0.
    pub port: Port<CoreLink<D>>,
}

impl<D: Device> Station<D> {
    /// Brings the port up.
    ///
    /// # Errors
    /// What the driver says of the device.
    pub fn new(sim: Sim<D>) -> Result<Self, LabError> {
        let port = Port::new(sim.link(CoreId(0)), PortConfig::default());
        let mut station = Station { sim, port };
        station.wait(|port, now_ns| Ok((port.poll(now_ns)? == PortState::Ready).then_some(())))?;
        Ok(station)
    }

    /// Waits for an operation of the port.
    ///
    /// # Errors
    /// Why it failed.
    pub fn finish<T>(&mut self, pending: Pending<T>) -> Result<T, LabError> {
        let mut pending = Some(pending);
        self.wait(|port, now_ns| {
            port.poll(now_ns)?;
            let Some(waiting) = pending.take() else { return Ok(None) };
            Ok(match port.finish(waiting)? {
                Progress::Done(value) => Some(value),
                Progress::Pending(waiting) => {
                    pending = Some(waiting);
                    None
                }
            })
        })
    }

    /// Gives core 0 turns until `step` yields something.
    fn wait<T>(
        &mut self,
        mut step: impl FnMut(&mut Port<CoreLink<D>>, u64) -> Result<Option<T>, LabError>,
    ) -> Result<T, LabError> {
        let core = CoreId(0);
        let until = self.sim.with(|machine| machine.now()) + PATIENCE;
        self.sim.end_turn(core, Next::Again);
        loop {
            match self.sim.advance(until) {
                Some(Pause::Turn(_)) => {}
                Some(Pause::Frame) => {
                    while let Some(frame) = self.sim.with(|machine| machine.next_transmitted()) {
                        self.sim.with(|machine| machine.give_back(frame));
                    }
                    continue;
                }
                None => return Err(LabError::Stuck { at: until, done: 0, wanted: 0 }),
            }
            let now_ns = self.sim.with(|machine| machine.core_clock(core)).as_ns();
            if let Some(value) = step(&mut self.port, now_ns)? {
                return Ok(value);
            }
            self.sim.work(core, self.sim.with(|machine| machine.poll_time(core)));
            self.sim.end_turn(core, Next::Again);
        }
    }
}
