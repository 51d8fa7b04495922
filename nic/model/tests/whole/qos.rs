//! Who goes on the wire: strict classes, weighted fairness, and their bounds, through the whole device (Larsen & Lee,
//! NAS'15, §V: "a core can control I/O transactions based on priority").

use beeline_contract_device::{Accept, Device, Enables};
use beeline_nic_model::NicConfig;
use beeline_spec::formats::{KPIO_EOP_DEFAULT, interface};
use beeline_spec::regs::queue as r;

use crate::rig::{QueueSetup, Random, Rig, Sender, for_seeds};

/// Bytes a queue of weight 1 may send in a round; what the arbiter's bound is stated with.
const QUANTUM: u64 = 2048;
const MAX_FRAME: u64 = 1514;

/// Queues with classes and weights, each kept full of frames.
struct Load {
    rig: Rig,
    senders: Vec<Sender>,
    classes: Vec<u8>,
    weights: Vec<u8>,
    /// Frames that were completely written and have not left.
    waiting: Vec<u64>,
    bytes: Vec<u64>,
}

impl Load {
    fn new(queues: &[(u8, u8)]) -> Self {
        let config = NicConfig {
            queues: queues.len() as u32,
            window_lines: 256,
            span_lines: 8,
            contexts: queues.len() as u32,
            pool_lines: 256 * queues.len() as u32,
            max_frame_bytes: MAX_FRAME as u32,
            ..NicConfig::default()
        };
        let mut rig = Rig::new(config);
        rig.nic.wire_ready(false);
        for (queue, (class, weight)) in queues.iter().enumerate() {
            rig.enable(queue as u16, &QueueSetup { class: *class, weight: *weight, ..QueueSetup::default() });
        }
        Load {
            rig,
            senders: queues.iter().map(|_| Sender::new(1, 0)).collect(),
            classes: queues.iter().map(|(class, _)| *class).collect(),
            weights: queues.iter().map(|(_, weight)| (*weight).max(1)).collect(),
            waiting: vec![0; queues.len()],
            bytes: vec![0; queues.len()],
        }
    }

    /// Writes a frame into a queue if credits allow.
    fn offer(&mut self, queue: usize, bytes: usize) -> bool {
        let sender = &mut self.senders[queue];
        let lines = beeline_spec::header::lines_of(bytes as u32);
        if sender.position + u64::from(lines) > self.rig.credits[queue] + 256 {
            return false;
        }
        for line in sender.frame(&vec![queue as u8; bytes]) {
            let at = line.position % 256 * 64;
            assert_eq!(self.rig.write_only(queue as u16, at, &line.bytes, Enables::All), Accept::Taken);
        }
        self.waiting[queue] += 1;
        true
    }

    /// Lets one frame out, and returns its queue.
    fn send_one(&mut self) -> Option<usize> {
        self.rig.nic.wire_ready(true);
        let before = self.rig.frames.len();
        while self.rig.frames.len() == before && self.rig.take_want() {}
        self.rig.nic.wire_ready(false);
        self.rig.settle();
        let (queue, frame) = self.rig.frames.get(before)?;
        let queue = usize::from(*queue);
        self.waiting[queue] -= 1;
        self.bytes[queue] += frame.len() as u64;
        Some(queue)
    }
}

#[test]
fn a_class_is_served_only_while_those_before_it_are_empty() {
    for_seeds(20, |random| {
        let queues: Vec<(u8, u8)> =
            (0..6).map(|_| (random.below(4) as u8 * 5, random.below(5) as u8)).collect();
        let mut load = Load::new(&queues);
        for _ in 0..500 {
            for _ in 0..random.below(3) {
                let (queue, bytes) = (random.below(6) as usize, random.within(14, MAX_FRAME) as usize);
                load.offer(queue, bytes);
            }
            let first =
                (0..6).filter(|queue| load.waiting[*queue] > 0).map(|queue| load.classes[queue]).min();
            let sent = load.send_one().map(|queue| load.classes[queue]);
            assert_eq!(sent, first);
        }
    });
}

/// While two queues of a class both have frames all the time, the bytes they send, divided by their weights, differ by
/// at most a round's quantum and a frame of each.
#[test]
fn bytes_are_shared_by_weight_within_the_bound() {
    for_seeds(12, |random| {
        let queues: Vec<(u8, u8)> = (0..5).map(|_| (3, random.pick(&[0, 1, 1, 2, 3, 8]))).collect();
        let mut load = Load::new(&queues);
        let sizes: Vec<u64> = (0..5).map(|_| random.within(14, MAX_FRAME)).collect();
        let refill = |load: &mut Load, random: &mut Random| {
            for (queue, size) in sizes.iter().enumerate() {
                while load.offer(queue, random.within(14, *size) as usize) {}
            }
        };
        refill(&mut load, random);
        // Many rounds, so that the bound means something.
        while load.bytes.iter().any(|bytes| *bytes < 20 * QUANTUM) {
            load.send_one().expect("every queue has frames");
            refill(&mut load, random);
            assert!(load.waiting.iter().all(|waiting| *waiting > 0));
            let share = |queue: usize| load.bytes[queue] as f64 / f64::from(load.weights[queue]);
            for (a, b) in (0..5).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let bound = QUANTUM as f64 + 2.0 * MAX_FRAME as f64;
                assert!((share(a) - share(b)).abs() <= bound, "queues {a} and {b}: {:?}", load.bytes);
            }
        }
    });
}

/// A queue that becomes busy waits for the frame on the wire and one turn of each other queue of its class at most,
/// and not at all for the classes after its own.
#[test]
fn the_wait_of_a_frame_is_bounded() {
    let mut load = Load::new(&[(1, 1), (1, 1), (1, 1), (9, 255), (0, 1)]);
    for queue in 0..4 {
        if queue != 2 {
            while load.offer(queue, 1000) {}
        }
    }
    for _ in 0..20 {
        load.send_one();
        load.offer(0, 1000);
        load.offer(1, 1000);
    }
    load.offer(2, 64);
    let mut before = 0;
    while load.send_one().expect("frames wait") != 2 {
        before += 1;
        load.offer(0, 1000);
        load.offer(1, 1000);
    }
    // Two other queues, each with at most its quantum and what was left of it before.
    assert!(before <= 2 * (QUANTUM / 1000 + 2), "{before} frames went before it");
    load.offer(4, 64);
    assert_eq!(load.send_one(), Some(4), "class 0 goes first, whatever waits");
}

#[test]
fn a_change_of_class_takes_effect_while_the_queue_runs() {
    let mut load = Load::new(&[(2, 1), (2, 1)]);
    for queue in 0..2 {
        while load.offer(queue, 1000) {}
    }
    load.send_one();
    let setup = QueueSetup { class: 7, ..QueueSetup::default() };
    load.rig.set(Rig::queue_register(0, r::CONTROL), Rig::control_word(&setup));
    let sent: Vec<usize> = (0..10).filter_map(|_| load.send_one()).collect();
    assert!(sent.iter().filter(|queue| **queue == 0).count() <= 2, "{sent:?}");
    assert_eq!(sent[5..], [1; 5]);
    assert!(load.rig.status(0).active);
}

/// The arbiter does not care which engine a frame comes from.
#[test]
fn interfaces_share_the_wire_fairly() {
    let mut load = Load::new(&[(0, 1), (0, 1)]);
    load.rig.disable(1);
    load.rig.set(Rig::queue_register(1, r::KPIO_EOP), KPIO_EOP_DEFAULT);
    load.rig.enable(1, &QueueSetup { interface: interface::KPIO, ..QueueSetup::default() });
    let mut kpio_line = 0u64;
    for _ in 0..60 {
        load.offer(0, 112);
        // 112 bytes of frame and two signatures: two lines of kPIO+WC.
        let mut lines = [0xabu8; 128];
        lines[112..120].copy_from_slice(&KPIO_EOP_DEFAULT.to_le_bytes());
        lines[120..].copy_from_slice(&KPIO_EOP_DEFAULT.to_le_bytes());
        for half in lines.chunks_exact(64) {
            let at = kpio_line % 256 * 64;
            assert_eq!(load.rig.write_only(1, at, half, Enables::All), Accept::Taken);
            kpio_line += 1;
        }
        load.waiting[1] += 1;
    }
    for _ in 0..100 {
        load.send_one();
    }
    let difference = load.bytes[0].abs_diff(load.bytes[1]);
    assert!(difference <= QUANTUM + 2 * 112, "{:?}", load.bytes);
}
