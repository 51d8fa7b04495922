//! What a device finds of a frame that was sent: all of it, where the device will look, inside memory of the queue.

use beeline_driver::{TxCoherent, TxDescriptor, TxEnso, TxInline, TxNiq};
use beeline_spec::coherent::{LineBuffer, LineHeader, LineKind};
use beeline_spec::entry::{EntryHeader, EntryKind, PUSH_HALF_LINES, position_of};
use beeline_spec::formats::{KPIO_EOP_DEFAULT, header};
use beeline_spec::header::lines_of;
use beeline_spec::{pipe, regs};

use crate::opened::{Opened, padded_words, rung};
use crate::scripted::{Bell, Memory, Scripted, Window};

/// Entries of the descriptor rings.
pub const ENTRIES: u64 = 8;
/// Lines of the ring of pushed entries, and of the pipe to send.
pub const RING_LINES: u64 = 64;
/// Lines of an entry of `niq` and of `coherent`.
pub const ENTRY_LINES: usize = 2;
/// Entries of the ring of coherent lines.
pub const LINE_ENTRIES: u64 = 4;

/// The words of a queue's window.
pub fn window(link: &Scripted, queue: u32) -> Vec<u64> {
    link.0.borrow().windows[&queue].borrow().clone()
}

/// A message of this frame starts at a line: its length, then its words; a word equal to the blank is escaped.
pub fn check_message(window: &[u64], blank: Option<u64>, start: u64, frame: &[u8]) {
    let at = |index: usize| window[(start as usize * 8 + index) % window.len()];
    let words = padded_words(frame);
    assert_eq!(at(0) >> header::LENGTH_BYTES_LSB & header::LENGTH_BYTES_MASK, frame.len() as u64);
    for (index, word) in (1..).zip(&words) {
        assert!(
            Some(at(index)) != blank && (Some(*word) == blank || at(index) == *word),
            "word {index}: {:#x}",
            at(index)
        );
    }
    (words.len() + 1..lines_of(frame.len() as u32) as usize * 8).for_each(|index| assert_eq!(at(index), 0));
}

/// The lines are the frame's words and then signatures, one at least.
pub fn check_lines(window: &[u64], start: u64, end: u64, frame: &[u8]) {
    let words = padded_words(frame);
    let stored = (end - start) as usize * 8;
    assert!(words.len() < stored && stored <= words.len() + 8);
    for index in 0..stored {
        let expected = words.get(index).copied().unwrap_or(KPIO_EOP_DEFAULT);
        assert_eq!(window[(start as usize * 8 + index) % window.len()], expected, "word {index}");
    }
}

/// The frame lies at a bus address, behind the first `skip_bytes` of the queue's memory.
fn check_memory(words: &[u64], base: u64, (address, skip_bytes): (u64, usize), frame: &[u8]) {
    let (first, end) = (skip_bytes, words.len() * 8);
    let offset = address.wrapping_sub(base) as usize;
    assert!(offset >= first && offset.is_multiple_of(64) && offset + frame.len() <= end, "{address:#x}");
    assert!(frame_at(words, offset / 8, words.len(), frame), "another frame at {address:#x}");
}

/// Whether the frame lies at a word of some that wrap after `wrap`.
fn frame_at(words: &[u64], first: usize, wrap: usize, frame: &[u8]) -> bool {
    let bytes = (0..frame.len().div_ceil(8)).flat_map(|word| words[(first + word) % wrap].to_le_bytes());
    bytes.zip(frame).all(|(found, sent)| found == *sent)
}

/// The newest descriptor names memory of the queue, outside the ring, in which the frame lies; its doorbell rang.
pub fn check_descriptor(opened: &Opened<TxDescriptor<Memory, Bell>>, link: &Scripted, frame: &[u8]) {
    let slot = ((opened.half.posted() - 1) % ENTRIES) as usize;
    let words = opened.words();
    let words = words.borrow();
    let (address, length) = (words[8 + slot * 2], words[9 + slot * 2] as u32 as usize);
    assert_eq!(length, frame.len());
    check_memory(&words, opened.address, (address, 64 + ENTRIES as usize * 16), frame);
    assert_eq!(rung(link, opened.queue, regs::doorbell::TX_TAIL), opened.half.posted());
}

/// An entry whose first word is at `at(0)`: of this epoch and place, with the frame in it or named by it.
fn check_entry(
    at: impl Fn(usize) -> u64,
    (epoch, position): (u8, u64),
    (memory, base, skip_bytes): (&[u64], u64, usize),
    frame: &[u8],
) -> EntryHeader {
    let head = EntryHeader::decode(at(0), epoch).expect("the head of an entry");
    assert_eq!((head.position, usize::from(head.length_bytes)), (position_of(position), frame.len()));
    match head.kind {
        EntryKind::Whole => {
            for (index, word) in (2..).zip(padded_words(frame)) {
                assert_eq!(at(index), word, "word {index}");
            }
        }
        EntryKind::Address => check_memory(memory, base, (at(1), skip_bytes), frame),
        EntryKind::Nothing => panic!("a frame became an entry without one"),
    }
    head
}

/// The entry lies in the ring, and was pushed into the next half of the window or told by the doorbell. `before`: lines
/// posted and pushes made before.
pub fn check_inline(
    opened: &Opened<TxInline<Window, Memory, Bell>>,
    (link, blank): (&Scripted, Option<u64>),
    before: (u64, u64),
    frame: &[u8],
) {
    let words = opened.words();
    let words = words.borrow();
    // Head word and credit word have lines of their own; the buffer is behind the ring.
    let (ring_at, ring_words) = (16, RING_LINES as usize * 8);
    let at = |index: usize| words[ring_at + (before.0 as usize * 8 + index) % ring_words];
    let memory = (&words[..], opened.address, (ring_at + ring_words) * 8);
    let head = check_entry(at, (opened.epoch(), before.0), memory, frame);
    assert_eq!(opened.half.posted(), before.0 + u64::from(head.lines()));
    if opened.half.pushes() == before.1 {
        return assert_eq!(rung(link, opened.queue, regs::doorbell::TX_TAIL), opened.half.posted());
    }
    let window = window(link, opened.queue);
    let half_words = PUSH_HALF_LINES as usize * 8;
    // A blank window is used to its end, and a push fills its half; of an observed one two halves take turns.
    let used_words = if blank.is_some() { window.len() } else { 2 * half_words };
    let first = before.1 as usize * half_words % used_words;
    let pushed = &window[first..first + half_words];
    assert!(pushed.iter().all(|word| Some(*word) != blank), "a word that has not arrived");
    assert!((0..head.lines() as usize * 8).all(|index| pushed[index] == at(index)), "pushed and kept differ");
}

/// The entry lies at the next place of the window, every word of it stored.
pub fn check_niq(
    opened: &Opened<TxNiq<Window, Memory>>,
    (link, blank): (&Scripted, Option<u64>),
    stored_before: u64,
    frame: &[u8],
) {
    let (window, words) = (window(link, opened.queue), opened.words());
    let first = stored_before as usize * ENTRY_LINES * 8 % window.len();
    let entry = &window[first..first + ENTRY_LINES * 8];
    assert!(entry.iter().all(|word| Some(*word) != blank), "a word that has not arrived");
    let memory = words.borrow();
    check_entry(|index| entry[index], (opened.epoch(), stored_before), (&memory, opened.address, 64), frame);
    assert_eq!(opened.half.stored(), stored_before + 1);
}

/// The frame lies in the pipe behind its length; the doorbell tells its end.
pub fn check_pipe(opened: &Opened<TxEnso<Memory, Bell>>, link: &Scripted, posted_before: u64, frame: &[u8]) {
    let words = opened.words();
    let pipe_words = &words.borrow()[8..];
    let first = posted_before as usize * 8 % pipe_words.len();
    assert_eq!(pipe_words[first], pipe::header(frame.len() as u16));
    assert!(frame_at(pipe_words, first + 1, pipe_words.len(), frame), "another frame");
    assert_eq!(opened.half.posted(), posted_before + u64::from(pipe::lines_of(frame.len() as u32)));
    assert_eq!(rung(link, opened.queue, regs::doorbell::TX_TAIL), opened.half.posted());
}

/// The newest entry has the frame, or names a buffer behind the ring in which it lies.
pub fn check_coherent(opened: &Opened<TxCoherent<Memory>>, frame: &[u8]) {
    let words = opened.words();
    let words = words.borrow();
    let count = opened.half.passed() - 1;
    let at = (count % LINE_ENTRIES) as usize * ENTRY_LINES * 8;
    let head = LineHeader::decode(words[at], opened.epoch(), count, ENTRY_LINES * 64);
    match head.expect("the head of an entry").kind {
        LineKind::Whole(bytes) => {
            assert_eq!(usize::from(bytes), frame.len());
            assert!(frame_at(&words, at + 1, words.len(), frame), "another frame in the entry");
        }
        LineKind::Buffers(1) => {
            let LineBuffer { length_bytes, address } = LineBuffer::decode(words[at + 1]);
            assert_eq!(usize::from(length_bytes), frame.len());
            let ring_bytes = LINE_ENTRIES as usize * ENTRY_LINES * 64;
            check_memory(&words, opened.address, (address, ring_bytes), frame);
        }
        LineKind::Buffers(more) => panic!("one frame in {more} buffers"),
    }
}
