//! Receiving by reads of the BAR from the behavioural NIC: reads that are held and given up, one queue in both
//! directions, lives of a queue, a table of held reads that others have filled.

use beeline_contract_device::{Accept, Device, ReadTag};
use beeline_contract_link::{Link, LinkError};
use beeline_driver::{
    LongFrameConfig, NiqConfig, PortError, Receive, RxNiq, RxNiqConfig, Sent, Transmit, TxNiq, TxQueueConfig,
};
use beeline_link_memory::MemoryLink;
use beeline_nic_model::{Nic, NicConfig};
use beeline_tests::{MemoryRig, Random, Rig, finish, open};

const WINDOW_LINES: u32 = 64;

fn config() -> NicConfig {
    NicConfig { queues: 4, window_lines: WINDOW_LINES, max_frame_bytes: 1518, ..NicConfig::default() }
}

type Pair = (
    TxNiq<<MemoryLink<Nic> as Link>::Window, <MemoryLink<Nic> as Link>::Memory>,
    RxNiq<
        <MemoryLink<Nic> as Link>::Reads,
        <MemoryLink<Nic> as Link>::Memory,
        <MemoryLink<Nic> as Link>::Doorbell,
    >,
);

/// Opens both directions of queue 0.
fn pair(rig: &mut MemoryRig, entry_lines_log2: u32, hold_ns: u32) -> Pair {
    let tx =
        NiqConfig { entry_lines_log2, buffer_bytes: 1 << 14, completion_frames: 4, ..NiqConfig::default() };
    let rx = RxNiqConfig { entry_lines_log2, hold_ns, ..RxNiqConfig::default() };
    let tx = rig.port().niq(0, tx).expect("a niq queue");
    let rx = rig.port().rx_niq(0, rx).expect("reads of entries");
    open(rig, tx.with(rx).expect("both have the same entries"))
}

/// Sends `frames`, idling now and then for longer than a read is held, and receives them.
fn there_and_back(rig: &mut MemoryRig, (tx, rx): &mut Pair, frames: &[Vec<u8>], random: &mut Random) {
    let (mut sent, mut received, mut steps) = (0, 0, 0);
    let mut bytes = Vec::new();
    while received < frames.len() {
        if sent < frames.len() && random.below(3) == 0 {
            sent += usize::from(tx.try_send(&frames[sent]).expect("a legal frame") == Sent::Sent);
        }
        for _ in 0..random.below(4) {
            rig.step().expect("the port lives");
        }
        tx.progress().expect("the device counts right");
        while let Some(mut frame) = rx.poll().expect("a sound device") {
            assert_eq!(frame.word(usize::MAX), None);
            frame.copy_to(&mut bytes);
            assert_eq!(frame.word(0), bytes.first_chunk().map(|word| u64::from_le_bytes(*word)));
            assert!(bytes == frames[received], "frame {received}: {} bytes", bytes.len());
            received += 1;
        }
        steps += 1;
        assert!(steps < rig.max_idle_steps(), "stuck: {sent} sent, {received} received");
    }
}

fn random_frames(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|_| {
            let longest = [48, 112, 240, 1518][random.below(4)];
            let bytes = 14 + random.below(longest - 13);
            (0..bytes).map(|_| random.below(256) as u8).collect()
        })
        .collect()
}

#[test]
fn frames_arrive_with_reads_held_timed_out_and_not_held() {
    for (seed, lines_log2, hold_ns) in
        [(1, 0, 1_500), (2, 1, 2_500), (3, 2, 1_500), (4, 1, 0), (5, 2, 50_000)]
    {
        let mut rig = MemoryRig::new(config(), seed);
        let mut pair = pair(&mut rig, lines_log2, hold_ns);
        let mut random = Random::new(seed);
        let frames = random_frames(&mut random, 400);
        there_and_back(&mut rig, &mut pair, &frames, &mut random);
        let counters = rig.counters();
        assert_eq!((counters.bad_accesses, counters.rx_frames), (0, 400), "{counters:?}");
        assert_eq!(counters.held_reads > 0, hold_ns > 0, "{counters:?}");
        let gives_up = (1..10_000).contains(&hold_ns);
        assert_eq!(counters.held_read_timeouts > 0, gives_up, "{counters:?}");
        assert_eq!(pair.1.frames(), 400);
    }
}

/// A held read brings the frame by itself: nothing is asked again, and nothing is told for every frame.
#[test]
fn a_short_frame_costs_one_read_and_a_fraction_of_a_doorbell() {
    let mut rig = MemoryRig::new(config(), 7);
    let mut pair = pair(&mut rig, 0, 1_000_000);
    let mut random = Random::new(7);
    let frames: Vec<_> = (0..320).map(|number| vec![number as u8; 48]).collect();
    there_and_back(&mut rig, &mut pair, &frames, &mut random);
    rig.step().expect("the port lives");
    let counters = rig.counters();
    // One more read is under way; 64 entries, told after 16.
    assert_eq!((counters.entry_reads, counters.held_read_timeouts), (321 * 8, 0), "{counters:?}");
    assert_eq!(counters.doorbells, 320 / 16, "{counters:?}");
}

#[test]
fn a_queue_that_was_closed_or_recovered_begins_with_its_first_entry() {
    let mut rig = MemoryRig::new(config(), 9);
    let mut random = Random::new(9);
    let mut pair = pair(&mut rig, 1, 3_000);
    for life in 0..8 {
        let frames = random_frames(&mut random, 60);
        there_and_back(&mut rig, &mut pair, &frames, &mut random);
        // Frames are on their way, a read is held, and its answer comes when nobody wants it any more.
        for frame in &frames[..random.below(6)] {
            let _full_is_fine = pair.0.try_send(frame).expect("a legal frame");
        }
        assert!(pair.1.poll().is_ok());
        pair = if life % 2 == 0 {
            let pending = rig.port().recover(pair);
            finish(&mut rig, pending).expect("the queue recovers")
        } else {
            let pending = rig.port().close(pair);
            let stopped = finish(&mut rig, pending).expect("the queue stops");
            open(&mut rig, stopped)
        };
    }
    assert_eq!(rig.counters().bad_accesses, 0);
}

#[test]
fn long_frames_that_have_no_place_are_dropped_by_the_device() {
    let mut rig = MemoryRig::new(config(), 3);
    let tx = rig.port().niq(0, NiqConfig::default()).expect("a niq queue");
    let dropped = RxNiqConfig { long: LongFrameConfig::Dropped, ..RxNiqConfig::default() };
    let rx = rig.port().rx_niq(0, dropped).expect("reads of entries");
    let (mut tx, mut rx) = open(&mut rig, tx.with(rx).expect("both have the same entries"));
    for bytes in [112, 113, 20] {
        assert_eq!(tx.try_send(&vec![bytes as u8; bytes]), Ok(Sent::Sent));
    }
    let mut lengths = Vec::new();
    for _ in 0..20 {
        rig.step().expect("the port lives");
        while let Some(frame) = rx.poll().expect("a sound device") {
            lengths.push(frame.len());
        }
    }
    assert_eq!((lengths, rig.counters().rx_oversize), (vec![112, 20], 1));
}

/// Reads of single words, which anybody may make, have left less than a line's room in the device's table. A line that
/// were held in part would come with zeros where its frame has bytes.
#[test]
fn a_line_is_held_whole_or_not_at_all() {
    for others in 50..=64u16 {
        let mut rig = MemoryRig::new(config(), 5);
        let other = rig.port().rx_niq(1, RxNiqConfig { hold_ns: 1 << 30, ..RxNiqConfig::default() });
        let _other = open(&mut rig, other.expect("reads of entries"));
        let mut pair = pair(&mut rig, 1, 5_000);
        let (aperture, stride) = config().capabilities().aperture.expect("a NIC has windows");
        rig.link().with_bus(|bus| {
            for tag in 0..others {
                bus.device.read_arrived(aperture + stride, ReadTag(0x8000 + tag));
            }
        });
        assert!(pair.1.poll().expect("a sound device").is_none());
        rig.step().expect("the port lives");
        // Frames are steered by their bytes: some frame goes to queue 0.
        let mut random = Random::new(others.into());
        let mut bytes = Vec::new();
        for _ in 0..20 {
            let frame: Vec<u8> = (0..112).map(|_| 1 + random.below(255) as u8).collect();
            let accept = rig.link().with_bus(|bus| bus.device.frame_arrived(&frame));
            assert_eq!(accept, Accept::Taken);
            for _ in 0..4 {
                rig.step().expect("the port lives");
                if let Some(mut found) = pair.1.poll().expect("a sound device") {
                    found.copy_to(&mut bytes);
                    assert!(bytes == frame, "with {others} words held: {bytes:?}");
                }
            }
        }
        assert!(!bytes.is_empty(), "no frame came to the queue");
    }
}

#[test]
fn niq_halves_must_agree_and_reads_of_a_queue_have_one_owner() {
    let mut rig = MemoryRig::new(config(), 1);
    let tx = rig.port().niq(0, NiqConfig { entry_lines_log2: 0, ..NiqConfig::default() }).expect("a queue");
    let rx = rig.port().rx_niq(0, RxNiqConfig::default()).expect("reads of entries");
    let again = rig.port().rx_niq(0, RxNiqConfig::default()).map(|_| ());
    assert_eq!(again, Err(PortError::Link(LinkError::ReadsTaken(0))));
    let what = "lines of an entry (log2)";
    let differ = PortError::HalvesDiffer { queue: 0, what, first: 0, second: 1 };
    assert_eq!(tx.with(rx).map(|_| ()), Err(differ));
    let tx = rig.port().niq(1, NiqConfig::default()).expect("a queue");
    let rx = rig.port().rx_niq(1, RxNiqConfig { epoch: 9, ..RxNiqConfig::default() }).expect("reads");
    let epoch = TxQueueConfig::default().epoch.into();
    let differ = PortError::HalvesDiffer { queue: 1, what: "epoch", first: 9, second: epoch };
    assert_eq!(rx.with(tx).map(|_| ()), Err(differ));
}
