//! Counts frames that have left by the wires of all devices.

use beeline_contract_device::Device;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::Transmitted;
use beeline_link_sim::machine::{DeviceId, Next, Sim};

use crate::Outcome;
use crate::sender::{Begun, Sender};

/// Frames of which the times are kept one by one.
const KEPT_TIMES: usize = 256;

/// Counts frames that have left.
pub(crate) struct Counter {
    is_one_by_one: bool,
    /// Frames that leave before counting begins.
    warm_up: u64,
    /// Frames that have left.
    pub left: u64,
    first: Option<Picoseconds>,
    pub last: Picoseconds,
    /// The first counted frame of each device.
    first_of: Vec<Option<Picoseconds>>,
}

impl Counter {
    pub(crate) fn new(is_one_by_one: bool, warm_up: u64, devices: usize) -> Counter {
        let first_of = vec![None; devices];
        Counter { is_one_by_one, warm_up, left: 0, first: None, last: Picoseconds::ZERO, first_of }
    }

    /// Takes what was let go, of each device in turn.
    pub(crate) fn take<D: Device>(&mut self, sim: &Sim<D>, senders: &mut [Sender], outcome: &mut Outcome) {
        let devices = self.first_of.len();
        sim.with(|machine| {
            for number in 0..devices {
                let device = DeviceId(number as u16);
                while let Some(frame) = machine.transmitted_by(device) {
                    // As `Run::on` has dealt the queues out.
                    let sender = &mut senders[usize::from(frame.queue.0) * devices + number];
                    self.count(number, sender, frame, outcome);
                    let starts_at = frame.starts_at;
                    machine.drop_transmitted(device);
                    if self.is_one_by_one {
                        machine.end_turn(sender.core, Next::At(starts_at));
                    }
                }
            }
        });
    }

    // A call for each frame is some percent of a run of short ones.
    #[inline(always)]
    fn count(&mut self, device: usize, sender: &mut Sender, frame: &Transmitted, outcome: &mut Outcome) {
        let (now, bytes) = (frame.starts_at, u64::from(frame.length_bytes));
        // Frames of several wires are taken as they are decided, and need not start in that order.
        self.last = self.last.max(now);
        let begun = sender.begun.pop_front().unwrap_or(Begun { at: now, returned_at: None });
        if !frame.frame.is_empty() && !sender.frames.is(sender.left, &frame.frame) {
            outcome.changed_frames += 1;
        }
        sender.left += 1;
        outcome.all_frames += 1;
        outcome.all_bytes += bytes;
        self.left += 1;
        if self.left <= self.warm_up {
            return;
        }
        outcome.to_wire.add(now - begun.at);
        if outcome.times.len() < KEPT_TIMES {
            outcome.times.push(begun.times(sender.core, frame));
        }
        // The frame at which counting begins is where time begins, and is not in the bytes.
        match self.first {
            None => self.first = Some(now),
            Some(first) => {
                outcome.frames += 1;
                outcome.bytes += bytes;
                outcome.elapsed = outcome.elapsed.max(now.since(first));
            }
        }
        let share = &mut outcome.of_devices[device];
        match self.first_of[device] {
            None => self.first_of[device] = Some(now),
            Some(first) => {
                share.frames += 1;
                share.bytes += bytes;
                share.elapsed = now - first;
            }
        }
    }
}
