//! Frames sent through a NIC, and how long each took.

use std::collections::VecDeque;
use std::rc::Rc;

use beeline_contract_device::Device;
use beeline_driver::{Choice, OnHalf, QueueHalf, Stopped, Transmit};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::Transmitted;
use beeline_link_sim::machine::{CoreId, DeviceId, Next, Sim};
use beeline_window::Sent;

use crate::traffic::Clock;
use crate::{Arrivals, FrameTimes, Frames, LabError, Station, Traffic};

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

/// A frame that was sent and has not left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// When it was there to be sent.
    pub at: Picoseconds,
    /// When the call returned, once that is known.
    pub returned_at: Option<Picoseconds>,
}

impl Begun {
    pub(crate) fn times(&self, core: CoreId, frame: &Transmitted) -> FrameTimes {
        FrameTimes {
            core,
            bytes: frame.length_bytes,
            begun_at: self.at,
            returned_at: self.returned_at.unwrap_or(frame.starts_at),
            decided_at: frame.decided_at,
            starts_at: frame.starts_at,
            ends_at: frame.ends_at,
        }
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

impl Sender {
    pub(crate) fn new(half: Box<dyn Transmit>, core: CoreId, run: &Rc<Run>, frames: &Rc<Frames>) -> Sender {
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

    pub(crate) fn clock_from(&mut self, start: Picoseconds) {
        self.clock.start(start);
    }

    /// The program's turn.
    pub(crate) fn turn<D: Device>(&mut self, sim: &Sim<D>) -> Result<Next, LabError> {
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
