//! Frames sent through a NIC, and how long each took.

use std::collections::VecDeque;
use std::rc::Rc;

use beeline_driver::{Choice, OnHalf, QueueHalf, Stopped, Transmit};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, Next, Pause, Sim};
use beeline_nic_contract::{Device, QueueId};
use beeline_window::Sent;

use crate::traffic::Clock;
use crate::{Arrivals, LabError, Laps, Station, Traffic};

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

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// From the call that sends a frame (of an open loop: from its arrival) to its first bit on the wire.
    pub to_wire: Laps,
    /// Frames that were counted.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first counted frame on the wire to the last.
    pub elapsed: Picoseconds,
}

impl Outcome {
    /// Gbit/s of frames.
    pub fn goodput_gbps(&self) -> f64 {
        if self.elapsed == Picoseconds::ZERO {
            return 0.0;
        }
        self.bytes as f64 * 8000.0 / self.elapsed.0 as f64
    }

    /// Frames a second.
    pub fn frames_per_second(&self) -> f64 {
        if self.elapsed == Picoseconds::ZERO {
            return 0.0;
        }
        self.frames as f64 * 1e12 / self.elapsed.0 as f64
    }
}

/// Opens a queue and puts its half into a box: one type for every interface.
pub(crate) struct Boxed;

impl<'a, D: Device> OnHalf<&'a mut Station<D>> for Boxed {
    type Output = Result<Box<dyn Transmit>, LabError>;

    fn run<T: Transmit + QueueHalf + 'static>(
        self,
        station: &'a mut Station<D>,
        half: Stopped<T>,
    ) -> Self::Output {
        let pending = station.port.open(half);
        Ok(Box::new(station.finish(pending)?))
    }
}

/// A program that sends on one core.
struct Sender {
    half: Box<dyn Transmit>,
    core: CoreId,
    run: Rc<Run>,
    clock: Clock,
    frame: Vec<u8>,
    sent: u64,
    /// When each frame was there to be sent that has not left.
    begun: VecDeque<Picoseconds>,
    /// When the next one is there, of an open loop.
    due: Option<Picoseconds>,
}

impl Run {
    /// Sends the traffic by one queue for each of `cores` cores.
    ///
    /// # Errors
    /// A queue does not open, a frame cannot be sent, or nothing moves any more.
    pub fn on<D: Device + 'static>(&self, station: &mut Station<D>, cores: u16) -> Result<Outcome, LabError> {
        let run = Rc::new(self.clone());
        let mut senders = Vec::new();
        for core in 0..cores {
            let queue = u32::from(core);
            station.port.link().turn_to(CoreId(core));
            let half = self.choice.half(&mut *station, |station| &mut station.port, queue, Boxed)??;
            station.port.link().turn_to(CoreId(0));
            senders.push(Sender::new(half, CoreId(core), &run));
        }
        let start = station.sim.with(|machine| machine.now());
        for sender in &mut senders {
            sender.clock_from(start);
            station.sim.end_turn(sender.core, Next::Again);
        }
        let mut outcome = Outcome::default();
        self.serve(&station.sim, &mut senders, &mut outcome)?;
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
        let mut counter = Counter { is_one_by_one, warm_up, left: 0, first: None };
        while counter.left < wanted {
            match sim.advance(Picoseconds::NEVER) {
                Some(Pause::Frame) => counter.take(sim, senders, outcome),
                Some(Pause::Turn(core)) => {
                    let next = senders[usize::from(core.0)].turn(sim)?;
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

/// Counts frames that have left.
struct Counter {
    is_one_by_one: bool,
    warm_up: u64,
    left: u64,
    first: Option<Picoseconds>,
}

impl Counter {
    fn take<D: Device>(&mut self, sim: &Sim<D>, senders: &mut [Sender], outcome: &mut Outcome) {
        while let Some(frame) = sim.with(|machine| machine.next_transmitted()) {
            let QueueId(queue) = frame.queue;
            let sender = &mut senders[usize::from(queue)];
            let begun = sender.begun.pop_front().unwrap_or_default();
            if self.is_one_by_one {
                sim.end_turn(sender.core, Next::At(frame.starts_at));
            }
            self.left += 1;
            if self.left > self.warm_up {
                outcome.to_wire.add(frame.starts_at - begun);
                match self.first {
                    // The frame at which counting begins is where time begins, and is not in the bytes.
                    None => self.first = Some(frame.starts_at),
                    Some(first) => {
                        outcome.frames += 1;
                        outcome.bytes += u64::from(frame.length_bytes);
                        outcome.elapsed = frame.starts_at - first;
                    }
                }
            }
            sim.with(|machine| machine.give_back(frame));
        }
    }
}

impl Sender {
    fn new(half: Box<dyn Transmit>, core: CoreId, run: &Rc<Run>) -> Sender {
        let longest = run.traffic.sizes.iter().copied().max().unwrap_or(0);
        // A pattern without zeros, so that a frame in the wrong place is seen where frames are kept.
        let frame = (0..longest).map(|i| (i % 251 + 1) as u8).collect();
        Sender {
            half,
            core,
            run: Rc::clone(run),
            clock: Clock::new(run.traffic.arrivals, run.seed, core.0),
            frame,
            sent: 0,
            begun: VecDeque::new(),
            due: None,
        }
    }

    fn clock_from(&mut self, start: Picoseconds) {
        self.clock.start(start);
    }

    fn size(&self, index: u64) -> usize {
        let sizes = &self.run.traffic.sizes;
        sizes[(index % sizes.len() as u64) as usize]
    }

    /// The program's turn.
    fn turn<D: Device>(&mut self, sim: &Sim<D>) -> Result<Next, LabError> {
        if self.sent == self.run.traffic.frames {
            self.half.progress()?;
            return Ok(Next::Poll);
        }
        match self.run.traffic.arrivals {
            // It gets its next turn when the frame has left.
            Arrivals::OneByOne if !self.begun.is_empty() => Ok(Next::Never),
            Arrivals::OneByOne => {
                self.half.progress()?;
                self.send_one(sim, None)
            }
            Arrivals::Always { burst: 0 | 1 } => self.send_one(sim, None),
            Arrivals::Always { burst } => self.send_burst(sim, burst),
            Arrivals::Poisson { .. } | Arrivals::Bursts { .. } => {
                let due = match self.due {
                    Some(due) => due,
                    None => self.clock.next(),
                };
                let now = sim.with(|machine| machine.core_clock(self.core));
                if due > now {
                    self.due = Some(due);
                    return Ok(Next::At(due));
                }
                self.due = None;
                let next = self.send_one(sim, Some(due))?;
                if next == Next::Poll {
                    self.due = Some(due);
                }
                Ok(next)
            }
        }
    }

    fn send_one<D: Device>(&mut self, sim: &Sim<D>, due: Option<Picoseconds>) -> Result<Next, LabError> {
        let begun = due.unwrap_or_else(|| sim.with(|machine| machine.core_clock(self.core)));
        sim.work(self.core, self.run.message);
        let bytes = self.size(self.sent);
        if self.half.try_send(&self.frame[..bytes])? == Sent::Full {
            self.half.progress()?;
            return Ok(Next::Poll);
        }
        self.begun.push_back(begun);
        self.sent += 1;
        Ok(Next::Again)
    }

    fn send_burst<D: Device>(&mut self, sim: &Sim<D>, burst: usize) -> Result<Next, LabError> {
        let begun = sim.with(|machine| machine.core_clock(self.core));
        let left = (self.run.traffic.frames - self.sent).min(burst as u64);
        let (sizes, sent) = (&self.run.traffic.sizes, self.sent);
        let size = |index: u64| sizes[((sent + index) % sizes.len() as u64) as usize];
        let frames: Vec<&[u8]> = (0..left).map(|index| &self.frame[..size(index)]).collect();
        let taken = self.half.try_send_burst(&frames)?;
        sim.work(self.core, self.run.message * taken as u64);
        if taken == 0 {
            self.half.progress()?;
            return Ok(Next::Poll);
        }
        self.begun.extend(std::iter::repeat_n(begun, taken));
        self.sent += taken as u64;
        Ok(Next::Again)
    }
}
