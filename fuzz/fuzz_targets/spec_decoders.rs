//! This target runs the decoders of `spec`. An attacker controls every word they are given. What they return lies inside
//! what they were given, they read nothing outside it, and every walk ends.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fuzz::Word;
use beeline_spec::batch::Cursor;
use beeline_spec::caps::Capabilities;
use beeline_spec::header::words_of;
use beeline_spec::{Header, escape, flow};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Header { word: Word, window_lines_log2: u8, epoch: u8 },
    Escapes { words: Vec<Word>, last: u8 },
    Batch { payload: &'a [u8] },
    Capabilities { words: Vec<ListWord> },
    Frame { bytes: &'a [u8] },
}

/// A word of a capability list: mostly headers of capabilities with short values.
#[derive(Arbitrary, Debug)]
enum ListWord {
    Header { kind: u8, bytes: u8 },
    Any(u64),
}

fn header(word: u64, window_lines: u32, epoch: u8) {
    let Ok(header) = Header::decode(word, window_lines, epoch) else { return };
    assert!(header.lines() <= window_lines);
    assert_eq!(header.epoch, epoch);
    assert!(header.escape_last == 0 || header.escape_last < words_of(header.length_bytes));
    assert_eq!(header.encode(), word, "a header has one form");
}

fn escapes(words: &[Word], last: usize) {
    let Some(last) = last.checked_rem(words.len()) else { return };
    let mut before = last as u32 + 1;
    let count = escape::walk(
        last as u32,
        |index| words[index as usize].value(),
        |index| {
            assert!(0 < index && index < before, "the walk goes down");
            before = index;
        },
    );
    assert!(count.is_ok_and(|count| count as usize <= words.len()) || count.is_err());
}

fn batch(payload: &[u8]) {
    let mut cursor = Cursor::new(payload.len() as u32);
    let mut end = 0;
    // A record takes a word at least.
    for _ in 0..=payload.len().div_ceil(8) {
        let load = |index: u32| {
            let bytes = &payload[index as usize * 8..];
            let mut word = [0; 8];
            let count = bytes.len().min(8);
            word[..count].copy_from_slice(&bytes[..count]);
            u64::from_le_bytes(word)
        };
        match cursor.next(load) {
            Ok(Some(record)) => {
                let first = record.offset_bytes as usize;
                assert!(first > end, "records do not overlap, and each has a prefix");
                end = first + usize::from(record.length_bytes);
                assert!(end <= payload.len());
            }
            Ok(None) => {
                assert!(cursor.is_done());
                return;
            }
            Err(_) => {
                assert_eq!(cursor.next(|_| panic!("nothing is read after an error")), Ok(None));
                return;
            }
        }
    }
    panic!("the walk through a batch does not end");
}

fn capabilities(words: &[ListWord]) {
    let word = |word: &ListWord| match *word {
        ListWord::Header { kind, bytes } => beeline_spec::caps::header(kind % 10, u16::from(bytes % 24)),
        ListWord::Any(word) => word,
    };
    let words: Vec<u64> = words.iter().map(word).collect();
    let Ok(read) = Capabilities::parse(&words) else { return };
    let mut written = Vec::new();
    read.write(|word| written.push(word));
    assert_eq!(Capabilities::parse(&written), Ok(read));
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::Header { word, window_lines_log2, epoch } => {
            header(word.value(), 1 << (window_lines_log2 % 19), epoch);
        }
        Input::Escapes { words, last } => escapes(&words, last.into()),
        Input::Batch { payload } => batch(payload),
        Input::Capabilities { words } => capabilities(&words),
        Input::Frame { bytes } => {
            let port = flow::tcp_destination_port(bytes).map(u16::to_be_bytes);
            assert!(port.is_none_or(|port| bytes.windows(2).any(|pair| pair == port)));
        }
    }
});
