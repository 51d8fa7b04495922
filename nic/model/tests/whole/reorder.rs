//! The reorder unit under an adversary: any split, any byte enables, any order inside the span; every frame once, in
//! order, unchanged, nothing left behind (HotOS'25 §3.1 to 3.4).

use beeline_contract_device::Accept;
use beeline_nic_model::NicConfig;
use beeline_spec::{Kind, escape};

use crate::rig::{Chunk, Cut, PlacedLine, QueueSetup, Random, Rig, Sender, cut, for_seeds};

const SPAN: u64 = 8;

fn config(queues: u32) -> NicConfig {
    NicConfig {
        queues,
        window_lines: 32,
        span_lines: SPAN as u32,
        contexts: queues,
        pool_lines: 32 * queues,
        max_frame_bytes: 1514,
        ..NicConfig::default()
    }
}

/// Messages on their way to one queue: laid out, cut, and delivered in any order that the span allows.
struct Stream {
    queue: u16,
    sender: Sender,
    how: Cut,
    /// Chunks that were stored and have not arrived.
    on_the_way: Vec<Chunk>,
    expected: Vec<Vec<u8>>,
    voids: u64,
}

impl Stream {
    fn new(queue: u16, setup: &QueueSetup, how: Cut) -> Self {
        let sender = Sender::new(setup.epoch, setup.blank);
        Stream { queue, sender, how, on_the_way: Vec::new(), expected: Vec::new(), voids: 0 }
    }

    /// A payload in which words often are the blank, or nearly.
    fn payload(&self, bytes: u64, random: &mut Random) -> Vec<u8> {
        let blank = self.sender.blank;
        let mut payload = Vec::new();
        while (payload.len() as u64) < bytes {
            let word = match random.below(4) {
                0 => random.word(),
                1 => 0,
                2 => blank,
                _ => blank.wrapping_add(random.below(3)).wrapping_sub(1),
            };
            payload.extend_from_slice(&word.to_le_bytes());
        }
        payload.truncate(bytes as usize);
        payload
    }

    /// Lays out one more message: mostly a frame, sometimes a batch, a void or a runt.
    fn next_message(&mut self, random: &mut Random) -> Vec<PlacedLine> {
        match random.below(10) {
            0 => {
                self.voids += 1;
                let bytes = random.below(300);
                let payload = self.payload(bytes, random);
                self.sender.message(Kind::Void, &payload)
            }
            1 => {
                let bytes = random.below(14);
                let payload = self.payload(bytes, random);
                self.sender.frame(&payload)
            }
            2 | 3 => {
                let count = random.below(6);
                let records: Vec<Vec<u8>> = (0..count)
                    .map(|_| {
                        let bytes = random.within(0, 90);
                        self.payload(bytes, random)
                    })
                    .collect();
                self.expected.extend(records.iter().filter(|record| record.len() >= 14).cloned());
                self.sender.batch(&records)
            }
            _ => {
                let bytes = if random.once_in(8) { random.within(14, 1514) } else { random.within(14, 200) };
                let frame = self.payload(bytes, random);
                self.expected.push(frame.clone());
                self.sender.frame(&frame)
            }
        }
    }

    fn store(&mut self, lines: &[PlacedLine], random: &mut Random) {
        for line in lines {
            self.on_the_way.extend(cut(line, self.how, random));
        }
    }

    /// The first line of which something has not arrived.
    fn frontier(&self) -> Option<u64> {
        self.on_the_way.iter().map(Chunk::line).min()
    }

    /// Delivers one chunk, any of those that the span lets arrive. `false` when it was refused.
    fn deliver(&mut self, rig: &mut Rig, random: &mut Random) -> bool {
        let Some(frontier) = self.frontier() else { return true };
        let allowed: Vec<usize> =
            (0..self.on_the_way.len()).filter(|i| self.on_the_way[*i].line() < frontier + SPAN).collect();
        let index = random.pick(&allowed);
        if rig.write_chunk(self.queue, &self.on_the_way[index]) == Accept::Refused {
            return false;
        }
        self.on_the_way.swap_remove(index);
        true
    }

    fn finish(&mut self, rig: &mut Rig, random: &mut Random) {
        while !self.on_the_way.is_empty() {
            assert!(self.deliver(rig, random), "the wire is ready, so nothing waits for it");
        }
    }
}

/// Sends messages on credits alone: never more lines than the device freed.
fn send_on_credits(how: Cut, blank_window: bool, random: &mut Random) {
    let mut rig = Rig::new(config(1));
    let blank = if blank_window { escape::blank_from_random(random.word()) } else { 0 };
    let setup = QueueSetup { blank, credit_lines: random.within(1, 8) as u32, ..QueueSetup::default() };
    rig.enable(0, &setup);
    let mut stream = Stream::new(0, &setup, how);
    let mut waiting: Option<Vec<PlacedLine>> = None;
    let mut messages = 0;
    let mut last_credit = 0;
    while messages < 60 {
        let lines = waiting.take().unwrap_or_else(|| stream.next_message(random));
        let end = lines.last().expect("a message has a line").position + 1;
        if end > rig.credits[0] + 32 {
            // Not enough credits. While chunks are on the way they must come; otherwise the device owes.
            assert!(!stream.on_the_way.is_empty(), "the device keeps credits back");
            waiting = Some(lines);
        } else {
            stream.store(&lines, random);
            messages += 1;
        }
        for _ in 0..random.below(6) {
            rig.nic_wire(!random.once_in(4));
            assert!(stream.deliver(&mut rig, random), "a queue on credits is never refused");
        }
        rig.nic_wire(true);
        if waiting.is_some() {
            stream.finish(&mut rig, random);
        }
        let credit = rig.credits[0];
        assert!(credit >= last_credit && credit <= stream.sender.position, "credit {credit}");
        last_credit = credit;
    }
    stream.finish(&mut rig, random);
    assert_eq!(rig.frames_of(0), stream.expected);
    assert_eq!(rig.credits[0], stream.sender.position, "every line is freed once");
    assert_eq!(rig.next_start(0), stream.sender.position);
    assert_eq!(rig.nic.counters().tx_voids, stream.voids);
    assert!(rig.status(0).active);
    rig.assert_empty();
}

impl Rig {
    /// Tells the device whether the wire is ready and takes what it wants.
    fn nic_wire(&mut self, ready: bool) {
        beeline_contract_device::Device::wire_ready(&mut self.nic, ready);
        self.settle();
    }
}

#[test]
fn observed_window_any_split_and_order() {
    for_seeds(150, |random| send_on_credits(Cut::Bytes, false, random));
}

#[test]
fn blank_window_any_order_of_words() {
    for_seeds(150, |random| send_on_credits(Cut::Words, true, random));
}

#[test]
fn whole_lines_in_any_order() {
    for_seeds(100, |random| send_on_credits(Cut::Whole, random.clone().once_in(2), random));
}

/// Without credits: the device takes what comes, and refuses only while complete frames wait for the wire.
#[test]
fn back_pressure_loses_nothing() {
    for_seeds(150, |random| {
        let mut rig = Rig::new(NicConfig { pool_lines: 40, ..config(1) });
        let setup = QueueSetup { backpressure: true, ..QueueSetup::default() };
        rig.enable(0, &setup);
        let mut stream = Stream::new(0, &setup, Cut::Bytes);
        for _ in 0..60 {
            let lines = stream.next_message(random);
            stream.store(&lines, random);
            rig.nic_wire(random.once_in(3));
            while !stream.on_the_way.is_empty() {
                if !stream.deliver(&mut rig, random) {
                    assert!(rig.nic.counters().tx_messages > 0);
                    rig.nic_wire(true);
                    rig.nic_wire(random.once_in(3));
                }
            }
        }
        rig.nic_wire(true);
        assert_eq!(rig.frames_of(0), stream.expected);
        assert_eq!(rig.credits[0], stream.sender.position);
        rig.assert_empty();
    });
}

/// Many queues, each in disorder, with fewer contexts and much less pool than queues times window.
#[test]
fn many_queues_share_contexts_and_pool() {
    for_seeds(40, |random| {
        let (queues, contexts) = (64, 4);
        let mut rig = Rig::new(NicConfig { contexts, pool_lines: 200, ..config(queues) });
        let setup = QueueSetup { backpressure: true, ..QueueSetup::default() };
        let mut streams: Vec<Stream> = (0..queues as u16)
            .map(|queue| {
                rig.enable(queue, &setup);
                Stream::new(queue, &setup, Cut::Bytes)
            })
            .collect();
        // So many queues are in the middle of a message at any time; each one holds a context at most.
        let mut busy: Vec<usize> = Vec::new();
        for _ in 0..3000 {
            if busy.len() < contexts as usize {
                let index = random.below(queues.into()) as usize;
                if !busy.contains(&index) {
                    let lines = streams[index].next_message(random);
                    streams[index].store(&lines, random);
                    busy.push(index);
                }
            }
            let at = random.below(busy.len() as u64) as usize;
            rig.nic_wire(random.once_in(2));
            if !streams[busy[at]].deliver(&mut rig, random) {
                rig.nic_wire(true);
                assert!(streams[busy[at]].deliver(&mut rig, random), "nothing waits for the wire any more");
            }
            if streams[busy[at]].on_the_way.is_empty() {
                busy.swap_remove(at);
            }
        }
        rig.nic_wire(true);
        for index in busy {
            streams[index].finish(&mut rig, random);
        }
        for stream in &streams {
            assert_eq!(rig.frames_of(stream.queue), stream.expected, "queue {}", stream.queue);
            assert_eq!(rig.credits[usize::from(stream.queue)], stream.sender.position);
        }
        rig.assert_empty();
    });
}

/// Every queue of the register map at once, on credits, each with a line on its way: the reservation holds.
#[test]
fn a_thousand_queues_on_credits() {
    let queues = 1024;
    let config = NicConfig { window_lines: 4, span_lines: 4, pool_lines: 4 * queues, ..config(queues) };
    let mut rig = Rig::new(config);
    let setup = QueueSetup::default();
    let mut streams: Vec<Stream> = (0..queues as u16)
        .map(|queue| {
            rig.enable(queue, &setup);
            Stream::new(queue, &setup, Cut::Bytes)
        })
        .collect();
    let mut random = Random::new(1);
    for round in 0..3u8 {
        for stream in &mut streams {
            let frame = vec![round; 150];
            stream.expected.push(frame.clone());
            let lines = stream.sender.frame(&frame);
            stream.store(&lines, &mut random);
        }
        while streams.iter().any(|stream| !stream.on_the_way.is_empty()) {
            for stream in &mut streams {
                assert!(stream.deliver(&mut rig, &mut random));
            }
        }
    }
    for stream in &streams {
        assert_eq!(rig.frames_of(stream.queue), stream.expected);
    }
    assert_eq!(rig.nic.counters().no_context + rig.nic.counters().no_pool, 0);
    rig.assert_empty();
}
