//! An honest queue beside another one: what leaves of it, byte for byte, and how many cycles its script takes.
//!
//! Both owners have the same share of the BAR: they write in turn, and who has nothing to write leaves its turn to the
//! other. The honest script is played beside an honest queue that sends as much as it can; beside one that keeps no rule
//! and is never started anew; and beside one that is, every few writes. Garbage alone may cost no more than honest load
//! does, but for what the engine's header says of a single write. A life may cost what the header says of a start, a
//! stop and a failure: the BAR stands meanwhile, for everybody. An owner cannot begin one by itself, so whoever starts
//! its queue for it decides how often.

use beeline_nic_rtl::RtlConfig;
use beeline_spec::Interface;
use beeline_spec::regs::{self, queue};
use beeline_tests::Random;
use beeline_tests::owners::{Bench, Owner, QueueResources, Store, owner};

use crate::host::{CREDITS, Host, READ_CYCLES, Start};

/// The queue whose owner keeps every rule, and the one beside it.
const HONEST: u16 = 1;
const NEIGHBOUR: u16 = 2;

/// Frames of the honest script.
const FRAMES: usize = 400;

/// Writes of a hostile owner between two lives of its queue.
const LIFE_WRITES: [u64; 2] = [24, 96];

/// Longest frame of a script.
const LONGEST_BYTES: usize = 500;

const CONFIG: RtlConfig = RtlConfig {
    window_lines: 64,
    span_lines: 16,
    contexts: 16,
    pool_lines: 16 * 1024,
    max_frame_bytes: 1514,
    rx_lossless: true,
    mac: [2, 0, 0, 0, 0, 1],
};

/// What an interface may cost an honest queue beyond what honest load costs, in cycles.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Cycles that a hostile write may cost.
    write: u64,
    /// Cycles that a start and stop of the hostile queue may cost.
    life: u64,
}

/// A register write passes the ingress and the registers alone: the writes behind it wait so long.
const REGISTER_CYCLES: u64 = 16;

/// Beats of the longest frame of a script.
const FRAME_BEATS: u64 = LONGEST_BYTES.div_ceil(64) as u64;

/// A life of a queue of an engine that reads memory (`engine/engine_control.sv`), with so many beats under way at most:
/// a stop takes 20 cycles, the answers under way, a look at 64 places for frames and 20 cycles more; a start 20. Behind
/// it the honest queue's next frame begins with two round trips to memory, of its ring and of its payload.
const fn life_of_reads(beats: u64) -> u64 {
    let stop = 20 + READ_CYCLES + beats + 64 + 20;
    stop + 20 + 2 * (READ_CYCLES + 20) + 2 * REGISTER_CYCLES
}

/// Who is beside the honest queue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Beside {
    Honest,
    /// It keeps no rule, and is started anew after so many writes.
    Hostile(u64),
}

/// A queue that has something to write.
struct Side {
    owner: Box<dyn Owner>,
    queue: u16,
    epoch: u8,
    random: Random,
    /// What is to be written next, the last one first.
    stores: Vec<Store>,
    handed: usize,
}

impl Side {
    fn new(interface: Interface, queue: u16, seed: u64) -> Self {
        let (aperture, stride) = CONFIG.aperture();
        let resources = QueueResources {
            queue,
            window_lines: CONFIG.window_lines.into(),
            window: aperture + u64::from(queue) * stride,
            memory: QueueResources::MEMORY_BYTES * (u64::from(queue) + 1),
            credits: CREDITS + 64 * u64::from(queue),
        };
        let owner = owner(interface, resources);
        Side { owner, queue, epoch: 0, random: Random::new(seed), stores: Vec::new(), handed: 0 }
    }

    /// The value that starts the next life.
    fn begin(&mut self) -> u64 {
        self.epoch = self.epoch.wrapping_add(1);
        self.owner.begin(self.epoch);
        Start { interface: self.owner.interface(), epoch: self.epoch, credits: true }.control()
    }

    /// The next frame's writes; lengths and bytes follow from the number alone.
    fn hand_over(&mut self, host: &mut Host) {
        let frame = frame(self.queue, self.handed);
        if let Some(stores) = self.owner.send(host, &mut self.random, &frame) {
            self.handed += 1;
            self.stores = stores;
            self.stores.reverse();
        }
    }

    /// Writes that keep no rule, or those that start the queue anew; whether it was the latter.
    fn misbehave(&mut self, host: &mut Host, is_over: bool) -> bool {
        self.stores = if is_over {
            let control = self.begin();
            vec![control_write(self.queue, 0), control_write(self.queue, control)]
        } else {
            self.owner.break_rules(host, &mut self.random)
        };
        self.stores.reverse();
        is_over
    }

    /// Makes the next write, if there is one.
    fn write(&mut self, host: &mut Host) -> bool {
        let Some(store) = self.stores.pop() else { return false };
        host.write_at(store.offset, &store.data, store.enables);
        true
    }
}

fn control_write(queue: u16, value: u64) -> Store {
    let offset = regs::QUEUE + u32::from(queue) * regs::QUEUE_STRIDE + queue::CONTROL;
    Store::whole(offset.into(), &value.to_le_bytes())
}

/// The frame of a script with this number.
fn frame(queue: u16, number: usize) -> Vec<u8> {
    const LENGTHS: [usize; 7] = [60, 64, 14, 120, 300, 56, LONGEST_BYTES];
    let mut random = Random::new(u64::from(queue) << 32 | number as u64);
    (0..LENGTHS[number % LENGTHS.len()]).map(|_| random.word() as u8).collect()
}

/// What a script took beside a neighbour: cycles, the neighbour's writes and its lives.
#[derive(Clone, Copy, Debug)]
struct Played {
    cycles: u64,
    writes: u64,
    lives: u64,
}

/// Plays the honest script beside a neighbour.
fn play(interface: Interface, beside: Beside, seed: u64) -> Played {
    let mut host = Host::new(CONFIG);
    let mut honest = Side::new(interface, HONEST, seed);
    let mut neighbour = Side::new(interface, NEIGHBOUR, seed + 1);
    for side in [&mut honest, &mut neighbour] {
        side.owner.set_up(&mut host);
        let control = side.begin();
        host.set_of(side.queue, queue::CONTROL, control);
    }
    host.idle_for(1000);
    let (began, mut turns, mut writes, mut lives) = (host.cycles(), 0, 0, 0);
    while host.frames.get(&HONEST).map_or(0, Vec::len) < FRAMES {
        let handed = honest.handed;
        assert!(
            host.cycles() < began + 2_000_000,
            "{interface} beside {beside:?}: {handed} of {FRAMES} handed over"
        );
        if honest.stores.is_empty() && handed < FRAMES {
            honest.hand_over(&mut host);
        }
        if neighbour.stores.is_empty() {
            turns += 1;
            match beside {
                Beside::Honest => neighbour.hand_over(&mut host),
                Beside::Hostile(life) => {
                    lives += u64::from(neighbour.misbehave(&mut host, turns % life == 0))
                }
            }
        }
        let wrote = honest.write(&mut host);
        let other = neighbour.write(&mut host);
        writes += u64::from(other);
        if !wrote && !other {
            host.idle();
        }
    }
    let cycles = host.last_frame[&HONEST] - began;
    is_exact(&mut host, &honest, beside);
    Played { cycles, writes, lives }
}

/// What left of the honest queue is its script; it is active and everything was given back, of the neighbour as well
/// once that has stopped.
fn is_exact(host: &mut Host, honest: &Side, beside: Beside) {
    host.idle_for(2000);
    let interface = honest.owner.interface();
    let frames = &host.frames[&HONEST];
    assert_eq!(frames.len(), FRAMES, "frames of the honest queue, {interface} beside {beside:?}");
    for (number, sent) in frames.iter().enumerate() {
        let wrote = honest.owner.on_the_wire(&frame(HONEST, number));
        assert!(
            *sent == wrote,
            "{interface} beside {beside:?}: frame {number}, wrote {wrote:02x?}, left {sent:02x?}"
        );
    }
    assert_eq!(host.status(HONEST), (true, 0), "the honest queue, {interface} beside {beside:?}");
    assert!(honest.owner.is_done(host), "{interface} beside {beside:?}: the honest owner is owed something");
    host.set_of(HONEST, queue::CONTROL, 0);
    host.set_of(NEIGHBOUR, queue::CONTROL, 0);
    assert!(!host.is_active(NEIGHBOUR), "the neighbour was stopped");
    host.idle_for(200);
    let free = (host.nic.free_lines(), host.nic.free_contexts());
    assert_eq!(free, host.free_at_reset, "free lines and contexts when both queues have stopped");
    assert!(host.holds(), "an assertion of the RTL failed");
}

/// An honest queue is exact whoever is beside it, and late by no more than its budget.
fn is_untouched(interface: Interface, budget: Budget) {
    for seed in 0..2 {
        let honest = play(interface, Beside::Honest, seed).cycles;
        for life in [u64::MAX].into_iter().chain(LIFE_WRITES) {
            let hostile = play(interface, Beside::Hostile(life), seed);
            println!(
                "{interface}, seed {seed}: {honest} cycles beside an honest queue, {hostile:?} beside a hostile one"
            );
            assert!(life == u64::MAX || hostile.lives > 0, "the hostile queue was never started anew");
            let most = honest + honest / 16 + hostile.writes * budget.write + hostile.lives * budget.life;
            assert!(hostile.cycles <= most, "seed {seed}: {} cycles, the budget is {most}", hostile.cycles);
        }
    }
}

#[test]
fn mmio_is_exact_beside_a_queue_that_keeps_no_rule() {
    // The reorder unit stands for 2 x ring + contexts + 12 cycles in a stop, as many after a failure, 12 in a start
    // (queue_control.sv; the ring is 32 lines), each time after it has emptied itself (7).
    let life = 2 * (2 * 32 + 16 + 12) + 12 + 3 * 7 + 2 * REGISTER_CYCLES;
    is_untouched(Interface::Mmio, Budget { write: 0, life });
}

#[test]
fn kpio_is_exact_beside_a_queue_that_keeps_no_rule() {
    // A register write waits until the engine has judged the pieces in it: at most 17, of 6 cycles each
    // (kpio/line_merge.sv). A stop passes through every stage: the latency of a piece, 14, and 42 pieces in front of it.
    is_untouched(Interface::Kpio, Budget { write: 0, life: 2 * (17 * 6 + REGISTER_CYCLES) + 14 + 42 });
}

#[test]
fn descriptor_is_exact_beside_a_queue_that_keeps_no_rule() {
    // 128 reads of payload, and 128 descriptors of the hostile queue, four a beat (descriptor/descriptor_tx.sv).
    let life = life_of_reads(128 * FRAME_BEATS + 128 / 4);
    is_untouched(Interface::Descriptor, Budget { write: 0, life });
}

#[test]
fn inline_is_exact_beside_a_queue_that_keeps_no_rule() {
    // A push of n lines takes n + 16 cycles, and an owner may push one line at a time; 64 lines of each ring, 64 reads
    // of payload (inline/inline_tx.sv).
    let life = life_of_reads(2 * 64 + 64 * FRAME_BEATS);
    is_untouched(Interface::Inline, Budget { write: 17, life });
}

#[test]
fn enso_is_exact_beside_a_queue_that_keeps_no_rule() {
    // 256 lines of each pipe are read ahead (enso/enso_tx.sv); the pipes here have 128.
    is_untouched(Interface::Enso, Budget { write: 0, life: life_of_reads(2 * 128) });
}

#[test]
fn niq_is_exact_beside_a_queue_that_keeps_no_rule() {
    // 32 reads of payload (niq/niq_tx.sv).
    is_untouched(Interface::Niq, Budget { write: 0, life: life_of_reads(32 * FRAME_BEATS) });
}
