//! Frames sent through a NIC, and how long each took.

use std::collections::VecDeque;
use std::rc::Rc;

use beeline_contract_device::Device;
use beeline_driver::{Choice, OnHalf, QueueHalf, Stopped, Transmit};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, DeviceId, Next, Pause, Sim};
use beeline_window::Sent;

use crate::counter::{Begun, Counter};
use crate::traffic::Clock;
use crate::{Arrivals, Cost, Frames, LabError, LatencyHistogram, Station, Traffic};

/// A frame that was sent so long ago, with none that left since, is lost: longer than devices wait for what is missing.
const PATIENCE: Picoseconds = Picoseconds::from_ns(2_000_000);

/// A run: which interface, which traffic, what software costs.
#[derive(Clone, Debug)]
pub struct Run {
    /// The interface and how it is configured.
    pub choice: Choice,
    /// The frames.
    pub traffic: Traffic,
    /// What a message costs in software, besides its stores and loads.
    pub message: Picoseconds,
    /// Frames of each core that are sent before counting begins.
    pub warm_up: u64,
    /// Seed of arrivals.
    pub seed: u64,
}

/// Result of one sender's run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// From the call that sends a frame (of an open loop: from its arrival) to its first bit on the wire.
    pub to_wire: LatencyHistogram,
    /// Frames that were counted.
    pub frames: u64,
    pub bytes: u64,
    /// From the first counted frame on the wire to the last.
    pub elapsed: Picoseconds,
    /// Of the counted frames, what left by the wire of each device.
    pub of_devices: Vec<Share>,
    /// Frames that left from the first call on, those of the warm-up included: what `cost` is the cost of.
    pub all_frames: u64,
    pub all_bytes: u64,
    /// What was spent from the first call until the last frame had left.
    pub cost: Cost,
    /// Frames that were not what was sent; only looked for in a machine that keeps frames.
    pub changed_frames: u64,
    /// When each of the first counted frames was where.
    pub times: Vec<FrameTimes>,
}

/// What left by the wire of one of several devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub frames: u64,
    pub bytes: u64,
    /// From the first of them on the wire to the last: a device whose cores are done before others has less.
    pub elapsed: Picoseconds,
}

/// Moments in the life of one frame, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTimes {
    /// The core that sent it.
    pub core: CoreId,
    pub bytes: u32,
    /// When it was there to be sent.
    pub begun_at: Picoseconds,
    /// When the call that sent it had returned.
    pub returned_at: Picoseconds,
    /// When the logic of the device let it go.
    pub decided_at: Picoseconds,
    pub starts_at: Picoseconds,
    pub ends_at: Picoseconds,
}

impl Outcome {
    /// Gbit/s of frames, of all devices together.
    pub fn goodput_gbps(&self) -> f64 {
        gbps(self.bytes, self.elapsed)
    }

    /// Returns frames divided by the elapsed time, or 0 when no time passed.
    pub fn frames_per_second(&self) -> f64 {
        if self.elapsed == Picoseconds::ZERO {
            return 0.0;
        }
        self.frames as f64 * 1e12 / self.elapsed.0 as f64
    }
}

impl Share {
    /// Gbit/s of frames.
    pub fn goodput_gbps(&self) -> f64 {
        gbps(self.bytes, self.elapsed)
    }
}

fn gbps(bytes: u64, elapsed: Picoseconds) -> f64 {
    if elapsed == Picoseconds::ZERO { 0.0 } else { bytes as f64 * 8000.0 / elapsed.0 as f64 }
}

/// Opens a queue of this device and puts its half into a box: one type for every interface.
struct Boxed(DeviceId);

impl<'a, D: Device> OnHalf<&'a mut Station<D>> for Boxed {
    type Output = Result<Box<dyn Transmit>, LabError>;

    fn run<T: Transmit + QueueHalf + 'static>(
        self,
        station: &'a mut Station<D>,
        half: Stopped<T>,
    ) -> Self::Output {
        let pending = station.port(self.0).open(half);
        Ok(Box::new(station.finish(self.0, pending)?))
    }
}

impl<D: Device + 'static> Station<D> {
    /// The half of a queue of a device by the interface that was chosen, open, in a box.
    ///
    /// # Errors
    /// The queue does not open.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn open(
        &mut self,
        choice: &Choice,
        device: DeviceId,
        queue: u32,
    ) -> Result<Box<dyn Transmit>, LabError> {
        choice.half(self, |station| station.port(device), queue, Boxed(device))?
    }
}

/// A program that sends on one core.
pub(crate) struct Sender {
    half: Box<dyn Transmit>,
    pub core: CoreId,
    run: Rc<Run>,
    clock: Clock,
    pub frames: Rc<Frames>,
    sent: u64,
    pub left: u64,
    /// Frames that have not left.
    pub begun: VecDeque<Begun>,
    /// When the next one is there, of an open loop.
    due: Option<Picoseconds>,
}

impl Run {
    /// Sends the traffic by one queue for each of `cores` cores, which take the devices in turn: of N devices core i has queue
    /// i / N of device i mod N.
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
                    if last.is_some_and(|last| at > last + PATIENCE) {
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

impl Sender {
    fn new(half: Box<dyn Transmit>, core: CoreId, run: &Rc<Run>, frames: &Rc<Frames>) -> Sender {
        Sender {
            half,
            core,
            run: Rc::clone(run),
            clock: Clock::new(run.traffic.arrivals.clone(), run.seed, core.0),
            frames: Rc::clone(frames),
            sent: 0,
            left: 0,
            begun: VecDeque::new(),
            due: None,
        }
    }

    fn clock_from(&mut self, start: Picoseconds) {
        self.clock.start(start);
    }

    /// The program's turn.
    fn turn<D: Device>(&mut self, sim: &Sim<D>) -> Result<Next, LabError> {
        let now = sim.with(|machine| machine.core_clock(self.core));
        for begun in self.begun.iter_mut().rev() {
            if begun.returned_at.is_some() {
                break;
            }
            begun.returned_at = Some(now);
        }
        if self.sent == self.run.traffic.frames {
            return self.wait(sim, Next::Poll);
        }
        match self.run.traffic.arrivals {
            // It gets its next turn when the frame has left.
            Arrivals::OneByOne if !self.begun.is_empty() => self.wait(sim, Next::Never),
            Arrivals::OneByOne => {
                self.half.progress()?;
                self.send_one(sim, None)
            }
            Arrivals::Always { burst: 0 | 1 } => self.send_one(sim, None),
            Arrivals::Always { burst } => self.send_burst(sim, burst),
            Arrivals::Poisson { .. } | Arrivals::Bursts { .. } | Arrivals::Recorded { .. } => {
                let due = match self.due {
                    Some(due) => due,
                    None => self.clock.next(),
                };
                if due > now {
                    self.due = Some(due);
                    return self.wait(sim, Next::At(due));
                }
                self.due = None;
                let before = self.sent;
                let next = self.send_one(sim, Some(due))?;
                if self.sent == before {
                    self.due = Some(due);
                }
                Ok(next)
            }
        }
    }

    /// Waits until `next`. An adversary that holds stores back lets go of them by and by, as long as it is asked.
    fn wait<D: Device>(&mut self, sim: &Sim<D>, next: Next) -> Result<Next, LabError> {
        if self.run.choice.adversary.is_none() {
            if next == Next::Poll {
                self.half.progress()?;
            }
            return Ok(next);
        }
        self.half.progress()?;
        // Pieces of lines would stay in buffers that only full lines leave by themselves; something always interrupts a core.
        sim.interrupt_core(self.core);
        sim.work(self.core, sim.with(|machine| machine.poll_time(self.core)));
        Ok(Next::Again)
    }

    fn send_one<D: Device>(&mut self, sim: &Sim<D>, due: Option<Picoseconds>) -> Result<Next, LabError> {
        let begun = due.unwrap_or_else(|| sim.with(|machine| machine.core_clock(self.core)));
        sim.work(self.core, self.run.message);
        if self.half.try_send(self.frames.frame(self.sent))? == Sent::Full {
            return self.wait(sim, Next::Poll);
        }
        self.begun.push_back(Begun { at: begun, returned_at: None });
        self.sent += 1;
        Ok(Next::Again)
    }

    fn send_burst<D: Device>(&mut self, sim: &Sim<D>, burst: usize) -> Result<Next, LabError> {
        let begun = sim.with(|machine| machine.core_clock(self.core));
        let left = (self.run.traffic.frames - self.sent).min(burst as u64);
        let frames: Vec<&[u8]> = (0..left).map(|index| self.frames.frame(self.sent + index)).collect();
        let taken = self.half.try_send_burst(&frames)?.0;
        sim.work(self.core, self.run.message * taken as u64);
        if taken == 0 {
            return self.wait(sim, Next::Poll);
        }
        self.begun.extend(std::iter::repeat_n(Begun { at: begun, returned_at: None }, taken));
        self.sent += taken as u64;
        Ok(Next::Again)
    }
}
