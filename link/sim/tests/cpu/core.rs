//! What a core does with its buffers: uncached accesses, fences, interrupts, waiting.

use beeline_link_sim::cpu::{Core, CoreSettings, FenceAck, Load, Operation};
use beeline_link_sim::des::{Picoseconds, stream};

use crate::{Path, piece, settings};

fn core(settings: CoreSettings) -> (Core, Path) {
    (Core::new(settings, stream(1, "core 0"), stream(1, "interrupts")), Path::with_room(1000))
}

const LOAD: Load = Load { offset_bytes: 0x100, length_bytes: 8, number: 4 };

#[test]
fn an_uncached_store_comes_behind_what_the_buffers_hold() {
    let (mut core, mut path) = core(settings());
    core.execute(Operation::Store(piece(1, 0xff, 0)), &mut path);
    core.execute(Operation::Store(piece(2, 0x01, 0)), &mut path);
    core.execute(Operation::StoreUncached(piece(7, 0x01, 0)), &mut path);
    core.execute(Operation::StoreUncached(piece(8, 0x01, 0)), &mut path);
    // The line at 8, the part of one as soon as the way is free, the word behind it; the next after 7000.
    assert_eq!(path.lines(), [(8, 1), (38, 2), (68, 7), (7068, 8)]);
    assert_eq!((core.clock(), core.is_ready()), (Picoseconds(14_068), true));
}

#[test]
fn a_load_comes_behind_what_the_buffers_hold_and_the_core_stands_still() {
    let (mut core, mut path) = core(settings());
    core.execute(Operation::Store(piece(2, 0x01, 0)), &mut path);
    core.execute(Operation::Load(LOAD), &mut path);
    core.execute(Operation::Store(piece(3, 0xff, 0)), &mut path);
    core.execute(Operation::Load(Load { number: 5, ..LOAD }), &mut path);
    assert_eq!((path.lines(), core.is_ready()), (vec![(1, 2)], false));
    assert_eq!(path.loads, [(Picoseconds(31), LOAD)]);
    core.answered(Picoseconds(40_000), &mut path);
    assert_eq!(path.lines(), [(1, 2), (130_008, 3)], "the load's own time, and a line");
    assert_eq!((path.loads.len(), core.is_ready()), (2, false));
    core.answered(Picoseconds(200_000), &mut path);
    assert_eq!((core.clock(), core.is_ready()), (Picoseconds(290_000), true));
    assert_eq!(core.worked(), core.clock(), "it stood still, and did nothing else");
}

/// Of a line that is stored at 8 and leaves at once, the fence costing 1,000,000 by itself.
#[test]
fn fence_waits_for_the_acknowledgement_of_its_setting() {
    for (fence_ack, done) in [
        (FenceAck::None, Some(38 + 1_000_000)),
        (FenceAck::Uncore, Some(508 + 1_000_000)),
        (FenceAck::RootComplex, None),
        (FenceAck::Device, None),
    ] {
        let (mut core, mut path) = core(CoreSettings { fence_ack, ..settings() });
        path.acknowledges = done.is_none();
        core.execute(Operation::Store(piece(1, 0xff, 0)), &mut path);
        core.execute(Operation::Store(piece(2, 0x01, 0)), &mut path);
        core.execute(Operation::Fence, &mut path);
        assert_eq!(path.lines(), [(8, 1), (38, 2)], "{fence_ack:?}");
        // The second one is a line more on the way out.
        let later = 30;
        match done {
            Some(done) => assert_eq!(core.clock(), Picoseconds(done + later), "{fence_ack:?}"),
            None => {
                core.acknowledged(Picoseconds(3_000), &mut path);
                assert!(!core.is_ready());
                core.acknowledged(Picoseconds(4_000), &mut path);
                assert_eq!(core.clock(), Picoseconds(1_004_000), "{fence_ack:?}");
            }
        }
        assert!(core.is_ready());
        // With nothing to wait for it costs what it costs.
        let before = core.clock();
        core.execute(Operation::Fence, &mut path);
        assert_eq!(core.clock(), before + Picoseconds(1_000_000), "{fence_ack:?}");
    }
}

#[test]
fn an_interrupt_empties_the_buffers() {
    let (mut core, mut path) = core(settings());
    core.execute(Operation::Store(piece(1, 0x0f, 0)), &mut path);
    core.interrupt(Picoseconds(600), &mut path);
    core.execute(Operation::Store(piece(1, 0xf0, 0)), &mut path);
    core.interrupt(Picoseconds(700), &mut path);
    assert_eq!(
        (path.lines(), path.masks()),
        (vec![(600, 1), (700, 1)], vec![0xffff_ffff, 0xffff_ffff << 32])
    );
}

#[test]
fn without_room_a_core_waits_and_goes_on_where_it_was() {
    let (mut core, mut path) = core(CoreSettings { buffers: 1, ..settings() });
    path.room = 1;
    for line in 0..3 {
        core.execute(Operation::Store(piece(line, 0xff, 0)), &mut path);
    }
    core.execute(Operation::Work(Picoseconds(5)), &mut path);
    assert_eq!((path.lines(), core.is_ready()), (vec![(8, 0)], false));
    path.room = 1;
    core.room_returned(Picoseconds(10_000), &mut path);
    assert_eq!((path.lines(), core.is_ready()), (vec![(8, 0), (10_000, 1)], true));
    // The last line has a buffer at 10,500; it waits there for room while the core goes on.
    assert_eq!(core.clock(), Picoseconds(10_500 + 8 + 5));
    assert_eq!(core.tend_at(&path), None, "there is no room to look for");
    path.room = 1;
    core.room_returned(Picoseconds(20_000), &mut path);
    assert_eq!(path.lines()[2], (20_000, 2));
}

/// An uncached access and a fence wait for room as well, with everything behind them.
#[test]
fn accesses_wait_for_room_in_their_order() {
    for second in [Operation::StoreUncached(piece(9, 1, 0)), Operation::Load(LOAD), Operation::Fence] {
        let (mut core, mut path) = core(settings());
        path.room = 0;
        core.execute(Operation::Store(piece(1, 0xff, 0)), &mut path);
        core.execute(second, &mut path);
        core.execute(Operation::Store(piece(2, 0xff, 0)), &mut path);
        assert!(!core.is_ready() && path.left.is_empty(), "{second:?}");
        path.room = 10;
        core.room_returned(Picoseconds(1_000), &mut path);
        if !path.loads.is_empty() {
            core.answered(Picoseconds(2_000), &mut path);
        }
        assert!(core.is_ready(), "{second:?}");
        let lines: Vec<u64> = path.lines().iter().map(|(_, line)| *line).collect();
        assert!(lines == [1, 2] || lines == [1, 9, 2], "{second:?}: {lines:?}");
    }
}
