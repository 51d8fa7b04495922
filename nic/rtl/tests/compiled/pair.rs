//! Both devices behind one set of calls, and the comparison.

use std::collections::{HashMap, HashSet};

use beeline_contract_device::{Accept, Device, Enables, ReadTag, SimTime, Want, Write};
use beeline_nic_model::{Nic, NicConfig};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_spec::regs::field::{credit_coalesce, queue_control, queue_status};
use beeline_spec::regs::{self, counter, queue};

use crate::traffic::{Agreement, Breaks, Shape, Traffic};

/// Where the credits of queue `q` go: this plus 64 `q`.
const CREDITS: u64 = 0x10_0000;

/// Cycles for which a read may wait, half of them for a wire that stands.
const READ_CYCLES: u32 = 20_000;

/// What one device has done since it was last looked at.
#[derive(Debug, Default)]
pub struct Seen {
    pub frames: HashMap<u16, Vec<Vec<u8>>>,
    /// What had left of frames that ended with an abort mark.
    pub aborted: HashMap<u16, Vec<Vec<u8>>>,
    /// Freed lines as last pushed.
    pub freed: HashMap<u16, u64>,
    /// Queues whose credits may be of a life before.
    uncounted: HashSet<u16>,
    answer: Option<u64>,
}

impl Seen {
    fn take(&mut self, want: Want<'_>) {
        match want {
            Want::Transmit { queue, frame } => self.frames.entry(queue.0).or_default().push(frame.to_vec()),
            Want::DmaWrite { address, data } => {
                let queue = ((address - CREDITS) / 64) as u16;
                let freed = u64::from_le_bytes(data.try_into().expect("a credit is a word"));
                if self.uncounted.contains(&queue) {
                    return;
                }
                let before = self.freed.insert(queue, freed);
                assert!(
                    before.is_none_or(|before| before <= freed),
                    "credits of queue {queue} run backwards"
                );
            }
            Want::ReadCompletion { value, .. } => self.answer = Some(value),
            Want::Aborted { queue, frame } => self.aborted.entry(queue.0).or_default().push(frame.to_vec()),
            Want::Interrupt { .. } => {}
            other @ (Want::DmaRead { .. } | Want::WatchLine { .. } | Want::ForgetLine { .. }) => {
                panic!("{other:?}")
            }
        }
    }
}

#[derive(Debug)]
pub struct Pair {
    pub model: Nic,
    pub rtl: RtlNic,
    pub of_model: Seen,
    pub of_rtl: Seen,
    aperture: u64,
    stride: u64,
    /// Names of pool lines and contexts that nobody has while no queue is started.
    free: (u32, u32),
}

/// Until the device has nothing more to do.
fn take_wants(device: &mut impl Device, seen: &mut Seen) {
    while let Some(want) = device.next() {
        seen.take(want);
    }
}

fn write_until_taken(device: &mut impl Device, seen: &mut Seen, write: Write<'_>) {
    for _ in 0..1000 {
        if device.write_arrived(write) == Accept::Taken {
            return;
        }
        take_wants(device, seen);
    }
    panic!("a write at {:#x} is refused for ever", write.offset_bytes);
}

fn read(device: &mut impl Device, seen: &mut Seen, offset: u32) -> u64 {
    device.read_arrived(offset.into(), ReadTag(1));
    take_wants(device, seen);
    seen.answer.take().expect("a read is answered")
}

impl Pair {
    pub fn new(config: &RtlConfig, queues: u16) -> Self {
        let of_model = NicConfig {
            queues: 16,
            window_lines: config.window_lines,
            span_lines: config.span_lines,
            contexts: config.contexts,
            pool_lines: config.pool_lines,
            max_frame_bytes: config.max_frame_bytes,
            mac: config.mac,
            ..NicConfig::default()
        };
        let (aperture, stride) = (of_model.aperture_bytes(), of_model.window_stride_bytes());
        let mut pair = Pair {
            model: Nic::new(of_model).unwrap(),
            rtl: RtlNic::new(config).unwrap(),
            of_model: Seen::default(),
            of_rtl: Seen::default(),
            aperture,
            stride,
            free: (0, 0),
        };
        pair.set_up(queues);
        pair.free = (pair.rtl.free_lines(), pair.rtl.free_contexts());
        pair
    }

    fn set_up(&mut self, queues: u16) {
        self.write_register(regs::CONTROL, 1);
        for queue in 0..queues {
            let base = queue_base(queue);
            self.write_register(base + queue::CREDIT_ADDRESS, CREDITS + 64 * u64::from(queue));
            self.write_register(base + queue::CREDIT_COALESCE, 1 << credit_coalesce::LINES_LSB);
        }
    }

    /// The RTL by its pin, the model anew.
    pub fn reset(&mut self, config: &RtlConfig, queues: u16) {
        self.rtl.reset();
        let model = Pair::new(config, 0).model;
        self.model = model;
        (self.of_model, self.of_rtl) = (Seen::default(), Seen::default());
        self.set_up(queues);
    }

    /// A register write arrives at both, behind the writes before it. The wire moves on if that is what the RTL waits for.
    pub fn write_register(&mut self, offset: u32, value: u64) {
        let data = value.to_le_bytes();
        self.arrives(Write { offset_bytes: offset.into(), data: &data, enables: Enables::All });
    }

    fn arrives(&mut self, write: Write<'_>) {
        // The model is never behind: what it wants is taken before it could refuse.
        write_until_taken(&mut self.model, &mut self.of_model, write);
        if self.rtl.write_arrived(write) == Accept::Refused {
            self.rtl.wire_ready(true);
            write_until_taken(&mut self.rtl, &mut self.of_rtl, write);
        }
        assert!(!self.rtl.has_failed(), "an assertion of the RTL failed");
    }

    /// Reads a queue's status for what that does: what was written has had its effect in both, and what they wrote to
    /// memory before is there.
    pub fn read_back(&mut self, queue: u16) {
        let offset = queue_base(queue) + queue::STATUS;
        read(&mut self.model, &mut self.of_model, offset);
        self.rtl.read_arrived(offset.into(), ReadTag(1));
        for cycle in 0..READ_CYCLES {
            if cycle == READ_CYCLES / 2 {
                self.rtl.wire_ready(true);
            }
            self.rtl.cycle();
            self.collect();
            if self.of_rtl.answer.take().is_some() {
                return;
            }
        }
        println!("{:?}", self.rtl);
        panic!("the RTL does not answer a read of queue {queue}");
    }

    pub fn read_register(&mut self, offset: u32) -> (u64, u64) {
        (read(&mut self.model, &mut self.of_model, offset), read(&mut self.rtl, &mut self.of_rtl, offset))
    }

    /// Starts a queue whose life before is over for both, credits included.
    pub fn start(&mut self, queue: u16, epoch: u8, class: u8, weight: u8, credits: bool) {
        let value = 1 << queue_control::ENABLE_LSB
            | 1 << queue_control::IFACE_LSB
            | u64::from(epoch) << queue_control::EPOCH_LSB
            | u64::from(class) << queue_control::CLASS_LSB
            | u64::from(weight) << queue_control::WEIGHT_LSB
            | u64::from(!credits) << queue_control::BACKPRESSURE_LSB;
        self.collect();
        for seen in [&mut self.of_model, &mut self.of_rtl] {
            seen.freed.insert(queue, 0);
        }
        self.write_register(queue_base(queue) + queue::CONTROL, value);
    }

    /// Whether credits of a queue are of its present life.
    pub fn count_credits(&mut self, queue: u16, are_counted: bool) {
        self.collect();
        for seen in [&mut self.of_model, &mut self.of_rtl] {
            if are_counted {
                seen.uncounted.remove(&queue);
            } else {
                seen.uncounted.insert(queue);
            }
        }
    }

    pub fn set_hole_timeout(&mut self, queue: u16, ns: u64) {
        self.write_register(queue_base(queue) + queue::HOLE_TIMEOUT_NS, ns);
    }

    pub fn time_passed(&mut self, now_ns: u64) {
        self.model.time_passed(SimTime::from_ns(now_ns));
        self.rtl.time_passed(SimTime::from_ns(now_ns));
        self.collect();
    }

    pub fn set_cut_through(&mut self, queues: u16, lines: u64) {
        for queue in 0..queues {
            self.write_register(queue_base(queue) + queue::CUT_THROUGH, lines);
        }
    }

    pub fn stop(&mut self, queue: u16) {
        self.write_register(queue_base(queue) + queue::CONTROL, 0);
    }

    /// A write to a queue's window arrives at both; a cycle of the RTL goes by for each line.
    pub fn write(&mut self, queue: u16, offset: u64, data: &[u8], enables: Enables) {
        let offset_bytes = self.aperture + u64::from(queue) * self.stride + offset;
        self.arrives(Write { offset_bytes, data, enables });
    }

    pub fn wire_ready(&mut self, ready: bool) {
        self.rtl.wire_ready(ready);
    }

    /// What both have done so far; no cycle goes by for it.
    pub fn collect(&mut self) {
        take_wants(&mut self.model, &mut self.of_model);
        while let Some(want) = self.rtl.lend() {
            self.of_rtl.take(want);
        }
    }

    /// Until neither has anything to do.
    pub fn settle(&mut self) {
        self.rtl.wire_ready(true);
        take_wants(&mut self.model, &mut self.of_model);
        take_wants(&mut self.rtl, &mut self.of_rtl);
    }

    /// Freed lines of a queue that both have told.
    pub fn freed(&self, queue: u16) -> u64 {
        let of = |seen: &Seen| seen.freed.get(&queue).copied().unwrap_or(0);
        of(&self.of_model).min(of(&self.of_rtl))
    }

    /// Frames, states, next starts and credits, as far as the two must agree about each life of a queue.
    pub fn compare(&mut self, traffic: &mut Traffic) {
        self.settle();
        let frames = (std::mem::take(&mut self.of_model.frames), std::mem::take(&mut self.of_rtl.frames));
        let none = Vec::new();
        for queue in 0..traffic.queues() {
            traffic.check(queue, "model", frames.0.get(&queue).unwrap_or(&none));
            traffic.check(queue, "RTL", frames.1.get(&queue).unwrap_or(&none));
            self.compare_state(queue, traffic.agreement(queue), traffic.has_credits());
        }
        if traffic.breaks() == Breaks::Never {
            self.compare_aborted(traffic);
        }
        traffic.was_compared();
    }

    /// What the present life of a queue has come to.
    fn compare_state(&mut self, queue: u16, agreement: Agreement, credits: bool) {
        let (mut model, mut rtl) = self.read_register(queue_base(queue) + queue::STATUS);
        match agreement {
            Agreement::All => {}
            Agreement::AllButCause | Agreement::Frames => {
                let cause = queue_status::CAUSE_MASK << queue_status::CAUSE_LSB;
                (model, rtl) = (model & !cause, rtl & !cause);
            }
            Agreement::FirstFrames => return,
        }
        assert_eq!(rtl, model, "status of queue {queue}, agreement {agreement:?}");
        let (model, rtl) = self.read_register(queue_base(queue) + queue::NEXT_START);
        assert_eq!(rtl, model, "next start of queue {queue}, agreement {agreement:?}");
        if credits || agreement != Agreement::Frames {
            let (model, rtl) = (self.of_model.freed.get(&queue), self.of_rtl.freed.get(&queue));
            assert_eq!(rtl, model, "freed lines of queue {queue}, agreement {agreement:?}");
        }
    }

    /// Every counter but those that count pushes and refusals, which are many ways right, and holes: of two pieces in
    /// neighbouring cycles the RTL may see both at once. Of a write that fails its queue, for it brings a byte of the
    /// frontier's line again and not the one that is missing, the model says that it came out of order, the RTL does not.
    pub fn compare_counters(&mut self, shape: &Shape) {
        let mut free = vec![counter::CREDIT_PUSHES, counter::REFUSED_WRITES, counter::HOLES];
        if shape.breaks == Breaks::InOrder {
            free.extend([counter::REORDERED_WRITES, counter::REORDER_DEPTH_MAX]);
        }
        let offsets = (0..=counter::RX_OVERSIZE)
            .step_by(8)
            .chain((0x200..0x240).step_by(8))
            .chain((0x280..0x300).step_by(8));
        for offset in offsets.filter(|offset| !free.contains(offset)) {
            let (model, rtl) = self.read_register(regs::COUNTERS + offset);
            assert_eq!(rtl, model, "counter {offset:#x} of {shape:?}");
        }
    }

    /// Frames of the RTL that began early, and those of them that were aborted for an underrun.
    pub fn cut_through(&mut self) -> (u64, u64) {
        let (_, frames) = self.read_register(regs::COUNTERS + counter::CUT_THROUGH_FRAMES);
        let (_, underruns) = self.read_register(regs::COUNTERS + counter::CUT_THROUGH_UNDERRUNS);
        (frames, underruns)
    }

    /// What left of a frame that was aborted is the front of one that was written.
    fn compare_aborted(&mut self, traffic: &Traffic) {
        for aborted in [std::mem::take(&mut self.of_model.aborted), std::mem::take(&mut self.of_rtl.aborted)]
        {
            for (queue, fronts) in aborted {
                for front in fronts {
                    assert!(
                        traffic.has_written(queue, &front),
                        "queue {queue}: {} bytes of no frame before an abort",
                        front.len()
                    );
                }
            }
        }
    }

    /// No line and no context is lost: after all queues have stopped nobody has a name, and as many can be set aside as at
    /// the start.
    pub fn everything_is_free(&mut self, traffic: &Traffic) {
        for queue in 0..traffic.queues() {
            self.stop(queue);
        }
        self.settle();
        let free = (self.rtl.free_lines(), self.rtl.free_contexts());
        assert_eq!(free, self.free, "free lines and contexts when no queue is started");
        for queue in 0..traffic.queues() {
            self.count_credits(queue, true);
            self.start(queue, 200, 0, 1, true);
            let (model, rtl) = self.read_register(queue_base(queue) + queue::STATUS);
            assert_eq!(rtl, model, "queue {queue} after everything was given back");
        }
    }
}

fn queue_base(queue: u16) -> u32 {
    regs::QUEUE + u32::from(queue) * regs::QUEUE_STRIDE
}
