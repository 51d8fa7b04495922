//! The ports of NICs in virtual time, one of each, brought up as on any link.

use beeline_contract_device::Device;
use beeline_driver::{Pending, Port, PortConfig, PortState, Progress};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, CoreLink, DeviceId, Next, Pause, Sim};

use crate::LabError;

/// Longest that bringing up may take, in virtual time.
const TIMEOUT: Picoseconds = Picoseconds::from_ns(1_000_000_000);

/// A machine whose ports are ready, one for each device.
pub struct Station<D: Device> {
    /// The machine.
    pub sim: Sim<D>,
    /// The port of each device; made on core 0.
    ports: Vec<Port<CoreLink<D>>>,
}

impl<D: Device> Station<D> {
    /// Brings the port of each device up, one after the other.
    ///
    /// # Errors
    /// What the driver says of a device.
    pub fn new(sim: Sim<D>) -> Result<Self, LabError> {
        let devices = sim.with(|machine| machine.devices().len()) as u16;
        let mut station = Station { sim, ports: Vec::new() };
        for device in (0..devices).map(DeviceId) {
            station.ports.push(Port::new(station.sim.link_to(CoreId(0), device), PortConfig::default()));
            station
                .wait(device, |port, now_ns| Ok((port.poll(now_ns)? == PortState::Ready).then_some(())))?;
        }
        Ok(station)
    }

    /// Returns how many NICs the machine has.
    pub fn devices(&self) -> u16 {
        self.ports.len() as u16
    }

    /// The port of a device.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn port(&mut self, device: DeviceId) -> &mut Port<CoreLink<D>> {
        &mut self.ports[usize::from(device.0)]
    }

    /// Waits for an operation of the port of a device.
    ///
    /// # Errors
    /// Why it failed.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn finish<T>(&mut self, device: DeviceId, pending: Pending<T>) -> Result<T, LabError> {
        let mut pending = Some(pending);
        self.wait(device, |port, now_ns| {
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
        device: DeviceId,
        mut step: impl FnMut(&mut Port<CoreLink<D>>, u64) -> Result<Option<T>, LabError>,
    ) -> Result<T, LabError> {
        let core = CoreId(0);
        let until = self.sim.with(|machine| machine.now()) + TIMEOUT;
        self.sim.end_turn(core, Next::Again);
        loop {
            match self.sim.advance(until) {
                Some(Pause::Turn(_)) => {}
                Some(Pause::Frame) => {
                    self.drop_frames();
                    continue;
                }
                None => return Err(LabError::Stuck { at: until, done: 0, wanted: 0 }),
            }
            let now_ns = self.sim.with(|machine| machine.core_clock(core)).as_ns();
            if let Some(value) = step(&mut self.ports[usize::from(device.0)], now_ns)? {
                return Ok(value);
            }
            self.sim.work(core, self.sim.with(|machine| machine.poll_time(core)));
            self.sim.end_turn(core, Next::Again);
        }
    }

    /// Nobody looks at frames that leave meanwhile.
    fn drop_frames(&self) {
        self.sim.with(|machine| {
            for device in (0..machine.devices().len() as u16).map(DeviceId) {
                while machine.drop_transmitted(device) {}
            }
        });
    }
}
