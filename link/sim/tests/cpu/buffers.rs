//! Write-combining buffers, one rule at a time.

use beeline_link_sim::cpu::{Blocked, CoreSettings, Piece, Release, WriteCombining};
use beeline_link_sim::des::{Picoseconds, stream};

use crate::{Path, piece, settings};

const NEVER: Picoseconds = Picoseconds::NEVER;

/// Buffers, their settings, and a way out with room.
fn buffers(settings: &CoreSettings) -> (WriteCombining, Path) {
    (WriteCombining::new(settings, stream(1, "core 0")), Path::with_room(1000))
}

#[test]
fn words_of_a_line_merge_and_leave_when_it_is_full() {
    let settings = settings();
    let (mut wc, mut path) = buffers(&settings);
    let mut at = Picoseconds(100);
    for word in [1, 2, 3, 0, 7, 6, 5] {
        at = wc.store(at, &piece(9, 1 << word, 50), &settings, &mut path).unwrap();
        assert_eq!((path.left.len(), wc.held()), (0, 1));
    }
    // A word that is stored twice travels once, as it was stored last.
    at = wc.store(at, &piece(9, 1 << 7, 80), &settings, &mut path).unwrap();
    at = wc.store(at, &piece(9, 1 << 4, 50), &settings, &mut path).unwrap();
    assert_eq!(at, Picoseconds(109), "nine stores");
    assert_eq!(path.lines(), [(109, 9)]);
    assert_eq!(path.left[0].1.words, [50, 51, 52, 53, 54, 55, 56, 87]);
    assert_eq!((path.masks(), wc.held()), (vec![u64::MAX], 0));
}

#[test]
fn lines_leave_one_after_the_other_and_hold_their_buffers() {
    let settings = settings();
    let (mut wc, mut path) = buffers(&settings);
    let mut at = Picoseconds::ZERO;
    for line in 0..6 {
        at = wc.store(at, &piece(line, 0xff, 0), &settings, &mut path).unwrap();
    }
    // Eight stores a line; the way out takes one in 30. The fifth store finds the first buffer free at 8 + 500.
    assert_eq!(path.lines(), [(8, 0), (38, 1), (68, 2), (98, 3), (516, 4), (546, 5)]);
    assert_eq!(at, Picoseconds(546));
}

#[test]
fn without_a_free_buffer_the_oldest_line_leaves() {
    let settings = CoreSettings { buffers: 2, ..settings() };
    let (mut wc, mut path) = buffers(&settings);
    for (at, line) in [(10, 5), (20, 6), (30, 5)] {
        wc.store(Picoseconds(at), &piece(line, 1 << (at / 10), 0), &settings, &mut path).unwrap();
    }
    assert!(path.left.is_empty());
    let done = wc.store(Picoseconds(40), &piece(7, 1, 0), &settings, &mut path).unwrap();
    assert_eq!(path.lines(), [(40, 5), (70, 5)], "the line that was opened first, in two runs");
    assert_eq!(path.masks(), [0xff00, 0xff00_0000]);
    assert_eq!(done, Picoseconds(70 + 500 + 1), "stored when the buffer is free");
    assert_eq!(wc.held(), 2);
}

#[test]
fn a_line_that_is_not_full_leaves_after_its_time_out() {
    let settings = CoreSettings { timeout: Picoseconds(1000), ..settings() };
    let (mut wc, mut path) = buffers(&settings);
    wc.store(Picoseconds(0), &piece(3, 0b11, 0), &settings, &mut path).unwrap();
    wc.store(Picoseconds(500), &piece(4, 0b1, 0), &settings, &mut path).unwrap();
    assert_eq!(wc.expire(Picoseconds(1001), &settings, &mut path), Some(Picoseconds(1002)));
    assert!(path.left.is_empty());
    assert_eq!(wc.expire(Picoseconds(1002), &settings, &mut path), Some(Picoseconds(1501)));
    assert_eq!(path.lines(), [(1002, 3)]);
    assert_eq!(wc.expire(Picoseconds(1501), &settings, &mut path), None);
    assert_eq!(path.lines(), [(1002, 3), (1501, 4)]);
}

/// A program's turn runs ahead: a line whose time is over between two of its stores has left, although nobody looked.
#[test]
fn a_time_out_is_kept_within_a_turn() {
    for release in [Release::Fifo, Release::OldestRandom, Release::Random] {
        let settings = CoreSettings { timeout: Picoseconds(1000), release, ..settings() };
        let (mut wc, mut path) = buffers(&settings);
        wc.store(Picoseconds(0), &piece(3, 0x0f, 0), &settings, &mut path).unwrap();
        wc.store(Picoseconds(9000), &piece(3, 0xf0, 0), &settings, &mut path).unwrap();
        wc.flush(Picoseconds(9500), &settings, &mut path);
        wc.drain(NEVER, &settings, &mut path);
        assert_eq!(path.lines(), [(1004, 3), (9500, 3)], "{release:?}");
        assert_eq!(path.masks(), [0xffff_ffff, 0xffff_ffff << 32]);
    }
}

#[test]
fn flush_sends_a_packet_for_each_run_of_a_line_with_holes() {
    let settings = settings();
    let (mut wc, mut path) = buffers(&settings);
    wc.store(Picoseconds(0), &piece(1, 0b1001_0110, 0), &settings, &mut path).unwrap();
    wc.store(Picoseconds(4), &piece(2, 0b1000_0000, 0), &settings, &mut path).unwrap();
    wc.flush(Picoseconds(5), &settings, &mut path);
    assert_eq!(path.lines(), [(5, 1), (35, 1), (65, 1), (95, 2)]);
    assert_eq!(path.masks(), [0xff_ff00, 0xff << 32, 0xff << 56, 0xff << 56]);
    assert_eq!((wc.held(), wc.all_free_at()), (0, Some(Picoseconds(95 + 500))));
}

#[test]
fn a_full_line_that_is_split_leaves_in_two_pieces_of_whole_words() {
    let settings = CoreSettings { split_per_mille: 1000, ..settings() };
    let (mut wc, mut path) = buffers(&settings);
    // Room for one piece at a time: a second one is never pushed after it.
    path.room = 1;
    let mut at = Picoseconds::ZERO;
    let mut stored = 0;
    while stored < 100 {
        match wc.store(at, &piece(stored, 0xff, 0), &settings, &mut path) {
            Ok(done) => (at, stored) = (done, stored + 1),
            Err(Blocked) => {
                path.room = 1;
                wc.drain(NEVER, &settings, &mut path);
            }
        }
    }
    path.room = 1000;
    wc.drain(NEVER, &settings, &mut path);
    assert_eq!(path.left.len(), 200);
    for (line, pieces) in path.left.chunks(2).enumerate() {
        let [(first_at, first), (second_at, second)] = pieces else { panic!("two pieces") };
        assert_eq!((first.offset_bytes, second.offset_bytes), (line as u64 * 64, line as u64 * 64));
        assert_eq!((first.mask | second.mask, first.mask & second.mask), (u64::MAX, 0));
        assert!(
            first.mask.trailing_ones().is_multiple_of(8) && *second_at >= *first_at + settings.drain_interval
        );
    }
    let cuts = |pieces: &[(Picoseconds, Piece)]| pieces[0].1.mask.count_ones();
    let all: std::collections::BTreeSet<u32> = path.left.chunks(2).map(cuts).collect();
    assert_eq!(all.len(), 7, "behind every word");
}

/// Without room nothing leaves; what is full first leaves first when there is some, and not before it was full.
#[test]
fn lines_leave_in_the_order_in_which_they_were_filled() {
    let settings = settings();
    let (mut wc, mut path) = buffers(&settings);
    path.room = 0;
    wc.store(Picoseconds(0), &piece(1, 0x7f, 0), &settings, &mut path).unwrap();
    wc.store(Picoseconds(100), &piece(2, 0xff, 0), &settings, &mut path).unwrap();
    wc.store(Picoseconds(900), &piece(1, 0x80, 0), &settings, &mut path).unwrap();
    path.room = 10;
    // Room is back at 200, long before the program's time.
    wc.port_taken_until(Picoseconds(200));
    wc.drain(NEVER, &settings, &mut path);
    assert_eq!(path.lines(), [(200, 2), (901, 1)]);
}

#[test]
fn a_store_without_a_buffer_is_blocked_and_changes_nothing() {
    let settings = CoreSettings { buffers: 2, ..settings() };
    let (mut wc, mut path) = buffers(&settings);
    path.room = 0;
    wc.store(Picoseconds(0), &piece(1, 0xff, 0), &settings, &mut path).unwrap();
    wc.store(Picoseconds(9), &piece(2, 0xff, 0), &settings, &mut path).unwrap();
    for _ in 0..3 {
        assert_eq!(wc.store(Picoseconds(20), &piece(3, 0xff, 0), &settings, &mut path), Err(Blocked));
        assert_eq!((wc.held(), path.left.len()), (2, 0));
    }
    path.room = 1;
    let done = wc.store(Picoseconds(20), &piece(3, 0xff, 0), &settings, &mut path);
    assert_eq!(done, Ok(Picoseconds(8 + 500 + 8)));
    assert_eq!(path.lines(), [(8, 1)]);
}
