use std::collections::HashMap;

use beeline_contract_device::{DmaError, DmaTag, ReadTag, SimTime, Want};
use proptest::prelude::*;

use super::*;

const BLANK: u64 = 0x8000_dead_beef_0001;
const LINES: u32 = 16;
const BASE: u64 = 1 << 20;

/// Plain memory in the place of a window.
#[derive(Debug)]
struct Memory(Vec<Line>);

impl Memory {
    fn store(&mut self, position: u64, word: usize, value: u64) {
        self.0[(position % u64::from(LINES)) as usize][word] = value;
    }
}

impl LoadPort for Memory {
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        LINES
    }
    fn load_word(&self, line: u32, word: u32) -> u64 {
        self.0[line as usize][word as usize]
    }
    fn load_line(&mut self, line: u32) -> Line {
        self.0[line as usize]
    }
    fn blank_line(&mut self, line: u32, blank: u64) {
        self.0[line as usize] = [blank; 8];
    }
}

/// Notes every write; refuses those that `refuse` says.
#[derive(Default)]
struct Recorder {
    writes: Vec<(u32, Enables, Vec<u8>)>,
    refuse: u32,
}

impl Device for Recorder {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        if self.refuse > 0 {
            self.refuse -= 1;
            return Accept::Refused;
        }
        assert_eq!(write.data.len(), LINE_BYTES);
        let line = (write.offset_bytes - BASE) / LINE_BYTES as u64;
        self.writes.push((line as u32, write.enables, write.data.to_vec()));
        Accept::Taken
    }
    fn read_arrived(&mut self, _offset_bytes: u64, _tag: ReadTag) {}
    fn dma_completed(&mut self, _tag: DmaTag, _data: Result<&[u8], DmaError>) {}
    fn frame_arrived(&mut self, _frame: &[u8]) -> Accept {
        Accept::Taken
    }
    fn time_passed(&mut self, _now: SimTime) {}
    fn wire_ready(&mut self, _ready: bool) {}
    fn next(&mut self) -> Option<Want<'_>> {
        None
    }
    fn wake_at(&self) -> Option<SimTime> {
        None
    }
}

fn scanner(ahead_lines: u32, burst_lines: u32) -> Scanner<Memory> {
    let config = ScanConfig { ahead_lines, burst_lines, prefetch_lines: 4 };
    let mut scanner = Scanner::new(Memory(vec![[0; 8]; LINES as usize]), BASE, config);
    scanner.start(BLANK);
    scanner
}

fn value(position: u64, word: usize) -> u64 {
    position * 8 + word as u64
}

fn store_line(scanner: &mut Scanner<Memory>, position: u64) {
    for word in 0..8 {
        scanner.port.store(position, word, value(position, word));
    }
}

#[test]
fn a_whole_line_is_one_write_and_is_blank_afterwards() {
    let (mut scanner, mut device, mut counters) =
        (scanner(4, 8), Recorder::default(), PortCounters::default());
    assert!(!scanner.scan(&mut device, &mut counters));
    for position in 0..3 {
        store_line(&mut scanner, position);
    }
    assert!(scanner.scan(&mut device, &mut counters));
    assert_eq!(device.writes.len(), 3);
    assert!(device.writes.iter().all(|(_, enables, _)| *enables == Enables::All));
    assert_eq!((counters.whole_lines, counters.split_lines, counters.ahead_writes), (3, 0, 0));
    assert_eq!(scanner.frontier(), 3);
    assert!(scanner.port.0.iter().all(|line| *line == [BLANK; 8]));
}

#[test]
fn a_split_line_is_delivered_in_pieces_and_only_once() {
    let (mut scanner, mut device, mut counters) =
        (scanner(4, 8), Recorder::default(), PortCounters::default());
    scanner.port.store(0, 2, 22);
    scanner.port.store(0, 3, 33);
    assert!(scanner.scan(&mut device, &mut counters));
    assert!(!scanner.scan(&mut device, &mut counters));
    assert!(scanner.is_torn());
    for word in [0, 1, 4, 5, 6, 7] {
        scanner.port.store(0, word, value(0, word));
    }
    assert!(scanner.scan(&mut device, &mut counters));
    let masks: Vec<_> = device.writes.iter().map(|(_, enables, _)| *enables).collect();
    assert_eq!(masks, [Enables::Mask(0xffff_0000), Enables::Mask(!0xffff_0000)]);
    assert_eq!(u64::from_le_bytes(device.writes[0].2[16..24].try_into().unwrap()), 22);
    assert_eq!((counters.partial_writes, counters.split_lines, scanner.frontier()), (2, 1, 1));
    assert!(!scanner.is_torn());
}

#[test]
fn a_line_that_overtook_another_is_delivered_first_and_counted() {
    let (mut scanner, mut device, mut counters) =
        (scanner(4, 8), Recorder::default(), PortCounters::default());
    store_line(&mut scanner, 2);
    for _ in 0..4 {
        scanner.scan(&mut device, &mut counters);
    }
    assert_eq!((counters.ahead_writes, scanner.frontier(), scanner.is_torn()), (1, 0, true));
    store_line(&mut scanner, 0);
    store_line(&mut scanner, 1);
    scanner.scan(&mut device, &mut counters);
    let order: Vec<_> = device.writes.iter().map(|(line, _, _)| *line).collect();
    assert_eq!(order, [2, 0, 1]);
    assert_eq!((counters.ahead_writes, scanner.frontier(), scanner.is_torn()), (1, 3, false));
}

#[test]
fn without_look_ahead_nothing_passes_the_frontier() {
    let (mut scanner, mut device, mut counters) =
        (scanner(0, 8), Recorder::default(), PortCounters::default());
    store_line(&mut scanner, 1);
    for _ in 0..20 {
        assert!(!scanner.scan(&mut device, &mut counters));
    }
    store_line(&mut scanner, 0);
    scanner.scan(&mut device, &mut counters);
    assert_eq!((device.writes.len(), counters.ahead_writes), (2, 0));
}

#[test]
fn a_refused_write_is_offered_again_until_it_is_taken() {
    let (mut scanner, mut device, mut counters) =
        (scanner(4, 8), Recorder::default(), PortCounters::default());
    store_line(&mut scanner, 0);
    scanner.port.store(1, 0, 9);
    device.refuse = 3;
    for _ in 0..3 {
        assert!(!scanner.scan(&mut device, &mut counters));
    }
    scanner.scan(&mut device, &mut counters);
    assert_eq!((counters.refused_writes, device.writes.len(), scanner.frontier()), (3, 2, 1));
}

/// A device that says how many lines it was handed in each call, takes as many as it has room for, and waits for all lines
/// before a position.
#[derive(Default)]
struct Runs {
    inner: Recorder,
    calls: Vec<(u64, usize)>,
    room: usize,
    waits_until: u64,
}

impl Device for Runs {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        self.inner.write_arrived(write)
    }
    fn lines_arrived(&mut self, offset_bytes: u64, lines: &[[u8; LINE_BYTES]]) -> usize {
        let taken = lines.len().min(self.room);
        self.room -= taken;
        self.calls.push(((offset_bytes - BASE) / LINE_BYTES as u64, lines.len()));
        self.inner.lines_arrived(offset_bytes, &lines[..taken])
    }
    fn awaited_lines(&self, offset_bytes: u64) -> u32 {
        self.waits_until.saturating_sub((offset_bytes - BASE) / LINE_BYTES as u64) as u32
    }
    fn read_arrived(&mut self, _offset_bytes: u64, _tag: ReadTag) {}
    fn dma_completed(&mut self, _tag: DmaTag, _data: Result<&[u8], DmaError>) {}
    fn frame_arrived(&mut self, _frame: &[u8]) -> Accept {
        Accept::Taken
    }
    fn time_passed(&mut self, _now: SimTime) {}
    fn wire_ready(&mut self, _ready: bool) {}
    fn next(&mut self) -> Option<Want<'_>> {
        None
    }
    fn wake_at(&self) -> Option<SimTime> {
        None
    }
}

#[test]
fn groups_are_handed_over_in_runs_that_end_with_the_window() {
    let (mut scanner, mut counters) = (scanner(4, 40), PortCounters::default());
    let mut device = Runs { room: usize::MAX, ..Runs::default() };
    for position in 0..5 {
        store_line(&mut scanner, position);
    }
    assert!(scanner.scan(&mut device, &mut counters));
    // One by one, because no group was there; the look for one waits until eight lines are behind.
    assert_eq!((device.calls.len(), device.inner.writes.len(), scanner.frontier()), (0, 5, 5));
    for position in 5..21 {
        store_line(&mut scanner, position);
    }
    assert!(scanner.scan(&mut device, &mut counters));
    assert_eq!(device.calls, [(8, 8)], "then the window's first lines, which are no group yet");
    assert_eq!((scanner.frontier(), counters.whole_lines, counters.window_writes()), (21, 21, 21));
    let lines: Vec<u32> = device.inner.writes.iter().map(|(line, _, _)| *line).collect();
    assert_eq!(lines, (0..21).map(|position| position % LINES).collect::<Vec<_>>());
    assert!(scanner.port.0.iter().all(|line| *line == [BLANK; 8]));
}

#[test]
fn lines_of_a_run_that_are_refused_stay_and_are_offered_again() {
    for room in 0..16 {
        let (mut scanner, mut counters) = (scanner(4, 40), PortCounters::default());
        let mut device = Runs { room, ..Runs::default() };
        for position in 0..16 {
            store_line(&mut scanner, position);
        }
        assert_eq!(scanner.scan(&mut device, &mut counters), room > 0);
        assert_eq!((scanner.frontier(), counters.refused_writes), (room as u64, 1));
        for (position, line) in scanner.port.0.iter().enumerate() {
            assert_eq!(*line == [BLANK; 8], position < room, "line {position} of {room} taken");
        }
        device.room = usize::MAX;
        scanner.scan(&mut device, &mut counters);
        assert_eq!((scanner.frontier(), device.inner.writes.len()), (16, 16));
        for (position, (line, _, data)) in device.inner.writes.iter().enumerate() {
            let first = u64::from_le_bytes(data[..8].try_into().unwrap());
            assert_eq!((*line as usize, first), (position, value(position as u64, 0)));
        }
    }
}

#[test]
fn lines_of_a_message_are_looked_at_once_its_last_one_is_there() {
    for lines in 3..u64::from(LINES) {
        let (mut scanner, mut counters) = (scanner(4, 40), PortCounters::default());
        let mut device = Runs { room: usize::MAX, waits_until: lines, ..Runs::default() };
        assert!(!scanner.scan(&mut device, &mut counters) && !scanner.is_torn());
        for position in 0..lines - 1 {
            store_line(&mut scanner, position);
            // The first is delivered when it comes; after that the last is looked at, and not the one that is stored.
            scanner.scan(&mut device, &mut counters);
            assert_eq!((scanner.frontier(), scanner.is_torn()), (1, true), "{position} of {lines}");
        }
        store_line(&mut scanner, lines - 1);
        assert!(scanner.scan(&mut device, &mut counters));
        assert_eq!((scanner.frontier(), counters.whole_lines, scanner.is_torn()), (lines, lines, false));
        assert_eq!(device.calls, [(1, lines as usize - 1)], "all of them at once");
    }
}

#[test]
fn lines_of_a_message_are_delivered_although_its_last_one_never_comes() {
    let (mut scanner, mut counters) = (scanner(4, 40), PortCounters::default());
    let mut device = Runs { room: usize::MAX, waits_until: 8, ..Runs::default() };
    for position in [0, 1, 3] {
        store_line(&mut scanner, position);
    }
    let scans = (1..1000).find(|_| {
        scanner.scan(&mut device, &mut counters);
        device.inner.writes.len() == 3
    });
    assert!(scans.is_some_and(|scans| scans >= PATIENCE), "{scans:?}");
    let order: Vec<_> = device.inner.writes.iter().map(|(line, _, _)| *line).collect();
    assert_eq!((order, counters.ahead_writes, scanner.is_torn()), (vec![0, 1, 3], 1, true));
}

/// One step of a run: store a word of a line that many lines beyond the frontier, store whole lines from the frontier's on,
/// scan, or refuse.
#[derive(Clone, Copy, Debug)]
enum Action {
    Store { ahead: u64, word: usize },
    StoreLines(u64),
    Scan,
    Refuse(u32),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        12 => (0u64..5, 0usize..8).prop_map(|(ahead, word)| Action::Store { ahead, word }),
        2 => (1..u64::from(LINES)).prop_map(Action::StoreLines),
        3 => Just(Action::Scan),
        1 => (1u32..4).prop_map(Action::Refuse),
    ];
    prop::collection::vec(action, 0..400)
}

proptest! {
    #[test]
    fn every_word_is_delivered_once_whatever_the_order(actions in actions(), burst in 1u32..40) {
        let (mut scanner, mut device, mut counters) =
            (scanner(4, burst), Recorder::default(), PortCounters::default());
        let mut stored: HashMap<(u64, usize), u64> = HashMap::new();
        for action in actions {
            match action {
                Action::Store { ahead, word } => {
                    let position = scanner.frontier() + ahead;
                    // A sender stores every word once.
                    if stored.insert((position, word), value(position, word)).is_none() {
                        scanner.port.store(position, word, value(position, word));
                    }
                }
                Action::StoreLines(lines) => {
                    let first = scanner.frontier();
                    for (position, word) in (first..first + lines).flat_map(|line| (0..8).map(move |word| (line, word))) {
                        if stored.insert((position, word), value(position, word)).is_none() {
                            scanner.port.store(position, word, value(position, word));
                        }
                    }
                }
                Action::Scan => { scanner.scan(&mut device, &mut counters); }
                Action::Refuse(times) => device.refuse = times,
            }
        }
        device.refuse = 0;
        let last = stored.keys().map(|(position, _)| *position).max().unwrap_or(0);
        for position in 0..=last {
            for word in 0..8 {
                if stored.insert((position, word), value(position, word)).is_none() {
                    scanner.port.store(position, word, value(position, word));
                }
            }
        }
        for _ in 0..100 { scanner.scan(&mut device, &mut counters); }
        prop_assert_eq!(scanner.frontier(), last + 1);
        prop_assert!(!scanner.is_torn());
        prop_assert!(scanner.port.0.iter().all(|line| *line == [BLANK; 8]), "every line is blank again");
        let mut delivered: HashMap<u64, u32> = HashMap::new();
        for (line, enables, data) in &device.writes {
            for word in (0..8).filter(|word| enables.has(8 * word)) {
                let found = u64::from_le_bytes(data[8 * word..8 * word + 8].try_into().unwrap());
                prop_assert_eq!((found / 8) % u64::from(LINES), u64::from(*line));
                prop_assert_eq!(found % 8, word as u64);
                *delivered.entry(found).or_default() += 1;
            }
        }
        prop_assert_eq!(delivered.len() as u64, (last + 1) * 8);
        prop_assert!(delivered.values().all(|times| *times == 1));
        prop_assert_eq!(counters.window_writes(), device.writes.len() as u64);
    }

    #[test]
    fn stores_in_order_are_never_called_disorder(steps in prop::collection::vec(0u8..4, 0..300)) {
        let (mut scanner, mut device, mut counters) = (scanner(4, 3), Recorder::default(), PortCounters::default());
        let mut next = 0u64;
        for step in steps {
            if step == 0 {
                scanner.scan(&mut device, &mut counters);
            } else if next / 8 < scanner.frontier() + u64::from(LINES) - 1 {
                scanner.port.store(next / 8, (next % 8) as usize, next);
                next += 1;
            }
        }
        prop_assert_eq!(counters.ahead_writes, 0);
    }
}

#[test]
fn a_window_is_blanked_in_pieces_and_begins_anew_with_another_blank_or_start() {
    const OTHER: u64 = 0x8000_0000_0000_0077;
    let mut scanner = scanner(4, 8);
    let (mut device, mut counters) = (Recorder::default(), PortCounters::default());
    let blank = |scanner: &Scanner<Memory>, blank: u64| {
        scanner.port.0.iter().filter(|line| **line == [blank; 8]).count() as u32
    };
    let mut lines = 5;
    assert!(!scanner.prepare(OTHER, &mut lines));
    assert_eq!((lines, blank(&scanner, OTHER)), (0, 5));
    assert!(!scanner.prepare(OTHER, &mut lines), "nothing is left to be done with");
    lines = LINES;
    assert!(scanner.prepare(OTHER, &mut lines));
    assert_eq!((lines, blank(&scanner, OTHER)), (5, LINES));
    scanner.start(OTHER);
    store_line(&mut scanner, 0);
    scanner.port.store(1, 0, 5);
    assert!(scanner.scan(&mut device, &mut counters));
    // The torn line must go, although the blank is the same.
    lines = 3;
    assert!(!scanner.prepare(OTHER, &mut lines));
    lines = LINES;
    assert!(scanner.prepare(OTHER, &mut lines) && blank(&scanner, OTHER) == LINES);
    lines = 3;
    assert!(!scanner.prepare(BLANK, &mut lines));
    assert_eq!(blank(&scanner, BLANK), 3);
    scanner.start(BLANK);
    assert_eq!((blank(&scanner, BLANK), scanner.frontier()), (LINES, 0), "the rest is done at the start");
}
