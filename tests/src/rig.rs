//! What a conformance body needs of its surroundings: a port, a clock, and the other side getting its turn.

use beeline_contract_device::Device;
use beeline_contract_link::Link;
use beeline_driver::{Pending, Port, PortConfig, PortError, PortState, Progress, QueueHalf, Stopped};
use beeline_nic_model::{Counters, Nic, NicConfig};

use beeline_link_memory::{Aperture, MemoryLink};

/// A port of a NIC whose wire is looped back: what it transmits it receives, and a frame that it refuses is offered
/// again. Bodies open queues 0 to 2; the windows are empty and nobody else uses the port.
pub trait Rig {
    /// The link the port is on.
    type Link: Link + 'static;

    /// The port, ready.
    fn port(&mut self) -> &mut Port<Self::Link>;

    /// Lets the other side work and some time pass, a microsecond or more, and polls the port.
    ///
    /// # Errors
    /// The port has failed.
    fn step(&mut self) -> Result<(), PortError>;

    /// Resets the device and brings a new port up. Queues opened before are dead.
    fn restart(&mut self);

    /// Steps without progress after which a body gives up: generous, a watchdog and no measurement.
    fn max_idle_steps(&self) -> usize;
}

/// Steps until an operation is done.
///
/// # Errors
/// Why it failed.
///
/// # Panics
/// If it does not end.
pub fn finish<R: Rig, T>(rig: &mut R, mut pending: Pending<T>) -> Result<T, PortError> {
    for _ in 0..rig.max_idle_steps() {
        pending = match rig.port().finish(pending)? {
            Progress::Done(value) => return Ok(value),
            Progress::Pending(pending) => pending,
        };
        rig.step()?;
    }
    panic!("an operation of the port does not end");
}

/// Opens a queue.
///
/// # Panics
/// If the device does not start it.
pub fn open<R: Rig, H: QueueHalf>(rig: &mut R, half: Stopped<H>) -> H {
    let pending = rig.port().open(half);
    finish(rig, pending).expect("a sound device starts a queue")
}

/// A NIC behind a [`MemoryLink`]: the behavioural one, or any other device.
pub struct MemoryRig<D: Device = Nic> {
    link: MemoryLink<D>,
    port: Port<MemoryLink<D>>,
    now_ns: u64,
}

impl<D: Device + 'static> MemoryRig<D> {
    /// A rig around a device whose windows lie as `aperture` says.
    ///
    /// # Panics
    /// If the device cannot be brought up.
    pub fn around(device: D, aperture: Aperture, seed: u64) -> Self {
        let link = MemoryLink::new(device, aperture, seed);
        let port = Port::new(link.clone(), PortConfig::default());
        let mut rig = MemoryRig { link, port, now_ns: 0 };
        rig.bring_up();
        rig
    }

    fn bring_up(&mut self) {
        for _ in 0..self.max_idle_steps() {
            if self.port.poll(self.now_ns).expect("a sound device comes up") == PortState::Ready {
                return;
            }
            self.link.pump();
        }
        panic!("the port does not become ready");
    }

    /// The link, to look at the device.
    pub fn link(&self) -> &MemoryLink<D> {
        &self.link
    }
}

impl MemoryRig {
    /// A rig around a behavioural NIC with these sizes.
    ///
    /// # Panics
    /// If the NIC cannot be made or brought up.
    pub fn new(config: NicConfig, seed: u64) -> Self {
        let (offset_bytes, stride_bytes) = config.capabilities().aperture.expect("a NIC has an aperture");
        let aperture = Aperture {
            offset_bytes,
            stride_bytes,
            window_lines: config.window_lines,
            queues: config.queues,
            is_blank: config.blank,
        };
        let nic = Nic::new(config).expect("the sizes of a test's NIC make sense");
        MemoryRig::around(nic, aperture, seed)
    }

    /// The device's counters.
    pub fn counters(&self) -> Counters {
        self.link.with_bus(|bus| bus.device.counters())
    }
}

impl<D: Device + 'static> Rig for MemoryRig<D> {
    type Link = MemoryLink<D>;

    fn port(&mut self) -> &mut Port<MemoryLink<D>> {
        &mut self.port
    }

    fn step(&mut self) -> Result<(), PortError> {
        self.now_ns += 1000;
        self.link.pass(1000);
        self.port.poll(self.now_ns).map(|_| ())
    }

    fn restart(&mut self) {
        self.port = Port::new(self.link.clone(), PortConfig::default());
        self.bring_up();
    }

    fn max_idle_steps(&self) -> usize {
        100_000
    }
}
