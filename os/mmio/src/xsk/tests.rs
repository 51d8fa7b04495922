//! The rings on plain memory, with a kernel played by the test: an honest one, and one that writes anything.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::ring::{Layout, entry_bytes, join, split};
use super::*;
use crate::Region;

const SIZES: XskSizes = XskSizes { receive: 4, transmit: 2 };
/// Where the parts of every ring are here.
const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: Some(128), entries: 192 };
const RINGS: [XskRing; 4] = [XskRing::Fill, XskRing::Receive, XskRing::Transmit, XskRing::Completion];
/// What the kernel keeps free before a frame.
const HEADROOM: u64 = 256;

/// The other side.
struct Kernel {
    rings: [Region; 4],
    memory: Region,
    sizes: XskSizes,
}

fn entries(ring: XskRing, sizes: XskSizes) -> u32 {
    match ring {
        XskRing::Fill => XskRings::fill_entries(sizes),
        XskRing::Receive => sizes.receive,
        XskRing::Transmit | XskRing::Completion => sizes.transmit,
    }
}

/// Rings whose indices begin at `first`, as they are after so many entries.
fn rig(sizes: XskSizes, first: u32) -> (XskRings, Kernel) {
    let rings = RINGS.map(|ring| {
        let bytes = LAYOUT.entries as usize + entries(ring, sizes) as usize * entry_bytes(ring);
        let region = Region::private(bytes);
        region.flag(LAYOUT.producer as usize).store(first);
        region.flag(LAYOUT.consumer as usize).store(first);
        region
    });
    let memory = Region::private((sizes.receive + sizes.transmit) as usize * CHUNK_BYTES as usize);
    let frames = Frames::new(&memory, sizes.receive + sizes.transmit);
    let [fill, receive, transmit, completion] = &rings;
    let giver = |ring, region: &Region| {
        Giver::new(region, LAYOUT, ring, entries(ring, sizes)).expect("a sound layout")
    };
    let taker = |ring, region: &Region| {
        Taker::new(region, LAYOUT, ring, entries(ring, sizes)).expect("a sound layout")
    };
    let givers = [giver(XskRing::Fill, fill), giver(XskRing::Transmit, transmit)];
    let takers = [taker(XskRing::Receive, receive), taker(XskRing::Completion, completion)];
    let ours = XskRings::new(frames, givers, takers, sizes).expect("the rings are empty");
    (ours, Kernel { rings, memory, sizes })
}

impl Kernel {
    fn ring(&self, ring: XskRing) -> &Region {
        &self.rings[RINGS.iter().position(|other| *other == ring).unwrap()]
    }

    fn producer(&self, ring: XskRing) -> crate::Flag {
        self.ring(ring).flag(LAYOUT.producer as usize)
    }

    fn consumer(&self, ring: XskRing) -> crate::Flag {
        self.ring(ring).flag(LAYOUT.consumer as usize)
    }

    fn entry(&self, ring: XskRing, index: u32, word: usize) -> crate::Word {
        let slot = (index % entries(ring, self.sizes)) as usize;
        self.ring(ring).word(LAYOUT.entries as usize + slot * entry_bytes(ring) + word * 8)
    }

    /// `Word` is little-endian, the kernel's entries are in the byte order of the machine.
    fn native(word: u64) -> u64 {
        word.to_le()
    }

    fn take(&self, ring: XskRing) -> Option<(u64, u64)> {
        let (at, end) = (self.consumer(ring).load(), self.producer(ring).load());
        (at != end).then(|| {
            let second = if entry_bytes(ring) == 16 { self.entry(ring, at, 1).load() } else { 0 };
            let found = (Self::native(self.entry(ring, at, 0).load()), Self::native(second));
            self.consumer(ring).store(at.wrapping_add(1));
            found
        })
    }

    fn give(&self, ring: XskRing, address: u64, second: u64) {
        let at = self.producer(ring).load();
        self.entry(ring, at, 0).store(Self::native(address));
        if entry_bytes(ring) == 16 {
            self.entry(ring, at, 1).store(Self::native(second));
        }
        self.producer(ring).store(at.wrapping_add(1));
    }

    /// Receives a frame, if there is a chunk for it.
    fn deliver(&self, frame: &[u8]) -> bool {
        let Some((chunk, _)) = self.take(XskRing::Fill) else { return false };
        let address = chunk + HEADROOM;
        self.memory.copy_in(address as usize, frame);
        self.give(XskRing::Receive, address, join(frame.len() as u32, 0));
        true
    }

    /// Leaves anything in an index, the flags, or a word of an entry.
    fn scribble(&self, ring: usize, at: usize, word: u64) {
        let region = &self.rings[ring];
        match at {
            // Each part is always accessed whole.
            0..3 => region.flag(at * 64).store(word as u32),
            _ => {
                let entries = LAYOUT.entries as usize;
                region.word(entries + (at - 3) * 8 % (region.bytes() - entries)).store(word);
            }
        }
    }

    /// Takes a frame to be sent: its chunk and bytes.
    fn send(&self) -> Option<(u64, Vec<u8>)> {
        let (address, second) = self.take(XskRing::Transmit)?;
        let (length, options) = split(second);
        assert_eq!(options, 0);
        let mut bytes = vec![0; length as usize];
        self.memory.copy_out(address as usize, &mut bytes);
        Some((address, bytes))
    }
}

fn post(rings: &mut XskRings, frame: &[u8]) -> bool {
    let queued = rings.transmit_with(|chunk| {
        chunk[..frame.len()].copy_from_slice(frame);
        frame.len()
    });
    rings.publish();
    queued.unwrap()
}

#[test]
fn frames_come_in_as_they_were_put_and_their_chunks_go_back() {
    // Indices wrap on the way.
    let (mut rings, kernel) = rig(SIZES, u32::MAX - 5);
    for round in 0..if cfg!(miri) { 6 } else { 40 } {
        let frames: Vec<Vec<u8>> = (1..=4).map(|n| vec![round; n * usize::from(round)]).collect();
        for frame in &frames {
            assert!(kernel.deliver(frame), "round {round}: every chunk was given back");
        }
        assert!(!kernel.deliver(&[1]), "there are four chunks");
        for frame in &frames {
            assert_eq!(rings.receive_with(<[u8]>::to_vec).unwrap().as_ref(), Some(frame));
        }
        assert_eq!(rings.receive_with(<[u8]>::len).unwrap(), None);
    }
}

#[test]
fn a_frame_is_seen_where_the_kernel_put_it() {
    let (mut rings, kernel) = rig(SIZES, 0);
    kernel.deliver(&[7; 60]);
    let chunk = rings.frames.start().addr();
    let seen = rings.receive_with(|frame| frame.as_ptr().addr()).unwrap();
    assert_eq!(seen, Some(chunk + HEADROOM as usize));
}

#[test]
fn frames_go_out_as_they_were_built_and_are_counted_when_done() {
    let (mut rings, kernel) = rig(SIZES, u32::MAX - 3);
    for round in 0..if cfg!(miri) { 3 } else { 20u64 } {
        let (first, second) = (vec![round as u8; 60], vec![9; 4096]);
        assert!(post(&mut rings, &first) && post(&mut rings, &second));
        assert!(!post(&mut rings, &first), "two chunks, neither done");
        assert_eq!(rings.unseen().unwrap(), 2);
        let (a, found) = kernel.send().unwrap();
        assert_eq!(found, first);
        let (b, found) = kernel.send().unwrap();
        assert_eq!((found, rings.unseen().unwrap()), (second, 0));
        assert_eq!(rings.transmitted().unwrap(), 2 * round);
        // In another order than they were sent.
        kernel.give(XskRing::Completion, b, 0);
        assert_eq!(rings.transmitted().unwrap(), 2 * round + 1);
        kernel.give(XskRing::Completion, a, 0);
        assert_eq!(rings.transmitted().unwrap(), 2 * round + 2);
    }
}

#[test]
fn a_frame_that_is_not_built_is_not_sent() {
    let (mut rings, kernel) = rig(SIZES, 0);
    assert!(rings.transmit_with(|_| 0).unwrap());
    rings.publish();
    assert_eq!((kernel.send(), rings.unseen().unwrap()), (None, 0));
    assert!(post(&mut rings, &[1]) && post(&mut rings, &[2]), "no chunk was used up");
}

#[test]
fn nothing_is_shown_before_it_is_published() {
    let (mut rings, kernel) = rig(SIZES, 0);
    assert!(rings.transmit_with(|_| 60).unwrap());
    assert_eq!(kernel.send(), None);
    rings.publish();
    assert!(kernel.send().is_some());
}

/// The kernel takes chunks in groups and says so only when it takes the next group, as `xskq_cons_get_entries` does.
#[test]
fn a_kernel_that_says_late_what_it_took_is_no_error() {
    for receive in if cfg!(miri) { [1, 2, 4] } else { [1, 4, 16] } {
        let (mut rings, kernel) = rig(XskSizes { receive, transmit: 1 }, u32::MAX - 3);
        let (mut taken, mut seen) = (u32::MAX - 3, u32::MAX - 3);
        for number in 0..20 * receive {
            if taken == seen {
                kernel.consumer(XskRing::Fill).store(taken);
                seen = kernel.producer(XskRing::Fill).load();
                assert_ne!(taken, seen, "frame {number}: there are chunks");
            }
            let chunk = Kernel::native(kernel.entry(XskRing::Fill, taken, 0).load());
            taken = taken.wrapping_add(1);
            kernel.give(XskRing::Receive, chunk + HEADROOM, join(60, 0));
            assert_eq!(rings.receive_with(<[u8]>::len).unwrap(), Some(60), "frame {number}");
        }
    }
}

/// Without an empty look in between, too, the kernel has most of the chunks at any time.
#[test]
fn few_chunks_are_kept_back() {
    for receive in if cfg!(miri) { [1, 2, 4, 8] } else { [1, 8, 64, 1024] } {
        let (mut rings, kernel) = rig(XskSizes { receive, transmit: 1 }, 0);
        for _ in 0..3 * receive {
            assert!(kernel.deliver(&[1; 60]));
            assert!(rings.receive_with(|_| ()).unwrap().is_some());
            let shown = kernel.producer(XskRing::Fill).load() - kernel.consumer(XskRing::Fill).load();
            assert!(shown + (receive / 8).min(15) >= receive, "{shown} of {receive} chunks");
        }
    }
}

#[test]
fn a_look_that_panics_costs_no_chunk() {
    let (mut rings, kernel) = rig(SIZES, 0);
    for _ in 0..8 {
        assert!(kernel.deliver(&[1; 60]));
        let looked = catch_unwind(AssertUnwindSafe(|| rings.receive_with(|_| panic!("on purpose"))));
        assert!(looked.is_err());
        assert_eq!(rings.receive_with(|_| ()).unwrap(), None);
        let built = catch_unwind(AssertUnwindSafe(|| rings.transmit_with(|_| panic!("on purpose"))));
        assert!(built.is_err());
    }
    assert!((0..4).all(|_| kernel.deliver(&[2; 60])), "all four chunks are the kernel's again");
    assert!(post(&mut rings, &[1]) && post(&mut rings, &[2]));
}

#[test]
#[should_panic(expected = "a frame of 4097 bytes")]
fn a_frame_longer_than_its_chunk_is_refused() {
    let (mut rings, _kernel) = rig(SIZES, 0);
    let _ = rings.transmit_with(|_| 4097);
}

#[test]
fn wishes_to_be_woken_are_read() {
    let (rings, kernel) = rig(SIZES, 0);
    assert!(!rings.transmit_wants_wakeup() && !rings.fill_wants_wakeup());
    kernel.ring(XskRing::Transmit).flag(128).store(1);
    assert!(rings.transmit_wants_wakeup() && !rings.fill_wants_wakeup());
    kernel.ring(XskRing::Fill).flag(128).store(3);
    assert!(rings.fill_wants_wakeup());
}

#[test]
fn indices_that_cannot_be_are_refused() {
    for wild in [5, 1000, u32::MAX, 1 << 31] {
        let (mut rings, kernel) = rig(SIZES, 0);
        kernel.producer(XskRing::Receive).store(wild);
        let error = rings.receive_with(|_| ()).unwrap_err();
        assert!(
            matches!(error, XskError::Index { ring: XskRing::Receive, producer, .. } if producer == wild)
        );

        let (mut rings, kernel) = rig(SIZES, 0);
        kernel.producer(XskRing::Completion).store(wild);
        let error = rings.transmitted().unwrap_err();
        assert!(matches!(error, XskError::Index { ring: XskRing::Completion, .. }), "{error}");

        let (mut rings, kernel) = rig(SIZES, 0);
        kernel.consumer(XskRing::Transmit).store(wild);
        let error = rings.unseen().unwrap_err();
        assert!(
            matches!(error, XskError::Index { ring: XskRing::Transmit, consumer, .. } if consumer == wild)
        );
    }
}

#[test]
fn the_kernel_cannot_take_what_it_was_not_shown() {
    let (mut rings, kernel) = rig(SIZES, 0);
    assert!(rings.transmit_with(|_| 60).unwrap());
    kernel.consumer(XskRing::Transmit).store(1);
    assert!(matches!(rings.unseen(), Err(XskError::Index { ring: XskRing::Transmit, .. })));
}

#[test]
fn a_fill_ring_that_stands_still_is_an_error_and_no_loop() {
    let (mut rings, kernel) = rig(SIZES, 0);
    // The kernel gives frames without ever taking chunks: the chunks are the same ones again and again.
    let mut delivered = 0;
    let error = loop {
        kernel.give(XskRing::Receive, (delivered % 4) * 4096 + HEADROOM, join(60, 0));
        match rings.receive_with(|_| ()) {
            Ok(_) => delivered += 1,
            Err(error) => break error,
        }
        assert!(delivered <= 8, "the fill ring has eight entries");
    };
    assert!(matches!(error, XskError::Owner { ring: XskRing::Fill, .. }), "{error}");
}

#[test]
fn places_that_cannot_be_are_refused() {
    let end = u64::from(SIZES.receive + SIZES.transmit) * 4096;
    for (address, length, options) in [
        (end, 60, 0),
        (end - 1, 2, 0),
        (u64::MAX, 1, 0),
        (1 << 63, 0, 0),
        (1 << 44, 60, 0),
        (4096 - 59, 60, 0),
        (256, u32::MAX, 0),
        (256, 3841, 0),
        (256, 60, 1),
    ] {
        let (mut rings, kernel) = rig(SIZES, 0);
        kernel.give(XskRing::Receive, address, join(length, options));
        let error = rings.receive_with(|_| panic!("{address:#x} was shown")).unwrap_err();
        assert!(matches!(error, XskError::Address { ring: XskRing::Receive, .. }), "{address:#x}: {error}");
    }
}

#[test]
fn a_chunk_that_the_kernel_does_not_have_is_not_taken_from_it() {
    // One to send from, which is ours.
    let (mut rings, kernel) = rig(SIZES, 0);
    kernel.give(XskRing::Receive, 4 * 4096, join(60, 0));
    let error = rings.receive_with(|_| ()).unwrap_err();
    assert!(matches!(error, XskError::Owner { ring: XskRing::Receive, chunk: 4 }), "{error}");
    // One to receive into, said to be sent.
    let (mut rings, kernel) = rig(SIZES, 0);
    kernel.give(XskRing::Completion, 0, 0);
    let error = rings.transmitted().unwrap_err();
    assert!(matches!(error, XskError::Owner { ring: XskRing::Completion, chunk: 0 }), "{error}");
    // One that is sent, said so twice.
    let (mut rings, kernel) = rig(SIZES, 0);
    assert!(post(&mut rings, &[1]));
    let (chunk, _) = kernel.send().unwrap();
    kernel.give(XskRing::Completion, chunk, 0);
    kernel.give(XskRing::Completion, chunk, 0);
    let error = rings.transmitted().unwrap_err();
    assert!(matches!(error, XskError::Owner { ring: XskRing::Completion, .. }), "{error}");
}

#[test]
fn a_layout_that_reaches_outside_is_refused() {
    let region = Region::private(192 + 64);
    for layout in [
        Layout { producer: 256, ..LAYOUT },
        Layout { consumer: 253, ..LAYOUT },
        Layout { flags: Some(u64::MAX), ..LAYOUT },
        Layout { entries: 200, ..LAYOUT },
        Layout { producer: 2, ..LAYOUT },
        Layout { entries: 196, ..LAYOUT },
    ] {
        let made = Giver::new(&region, layout, XskRing::Fill, 8).err();
        assert!(matches!(made, Some(XskError::Layout { ring: XskRing::Fill, .. })), "{layout:?}");
    }
    assert!(Giver::new(&region, LAYOUT, XskRing::Fill, 8).is_ok());
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    for (receive, transmit) in [(0, 1), (1, 0), (3, 4), (4, 1 << 17)] {
        assert!(matches!(XskSizes { receive, transmit }.check(), Err(XskError::Sizes { .. })));
    }
    assert!(XskSizes { receive: 1, transmit: 1 << 16 }.check().is_ok());
}

/// Bytes of the longest frame of the properties; Miri copies slowly.
const LONGEST: usize = if cfg!(miri) { 100 } else { 3840 };
/// Deeds of one case.
const DEEDS: usize = if cfg!(miri) { 16 } else { 200 };

/// What a kernel, or whatever writes over the rings, may do.
#[derive(Clone, Debug)]
enum Deed {
    Deliver(u8, usize),
    Send,
    Complete,
    Look,
    Post(usize),
    /// Leaves anything in any word.
    Scribble(usize, usize, u64),
    /// Gives an entry that nobody asked for, in the ring of received frames or of sent ones.
    Forge(bool, u64, u32, u32),
}

fn honest() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (any::<u8>(), 0..=LONGEST).prop_map(|(value, bytes)| Deed::Deliver(value, bytes)),
        Just(Deed::Send),
        Just(Deed::Complete),
        Just(Deed::Look),
        (1..=LONGEST).prop_map(Deed::Post),
    ]
}

fn anything() -> impl Strategy<Value = Deed> {
    let word = prop_oneof![any::<u64>(), 0u64..0x6100, (0u64..9).prop_map(|n| n << 32 | n), Just(u64::MAX)];
    let offset = prop_oneof![Just(0u64), Just(256), Just(4000), Just(4095), 0u64..4096];
    let address =
        prop_oneof![4 => (0u64..7, offset).prop_map(|(chunk, at)| chunk * 4096 + at), 1 => any::<u64>()];
    let length = prop_oneof![Just(0u32), Just(60), Just(96), Just(97), Just(3840), Just(4096), any::<u32>()];
    let options = prop_oneof![8 => Just(0u32), 1 => any::<u32>()];
    prop_oneof![
        3 => honest(),
        1 => (0usize..4, 0usize..14, word).prop_map(|(ring, at, word)| Deed::Scribble(ring, at, word)),
        3 => (any::<bool>(), address, length, options).prop_map(|(r, a, l, o)| Deed::Forge(r, a, l, o)),
    ]
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    /// With an honest kernel nothing is lost, changed, reordered or an error, whatever the order of deeds.
    #[test]
    fn an_honest_kernel_and_we_agree(deeds in prop::collection::vec(honest(), 1..DEEDS), first: u32) {
        let (mut rings, kernel) = rig(SIZES, first);
        let (mut coming, mut going, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        let mut completed = 0;
        for deed in deeds {
            match deed {
                Deed::Deliver(value, bytes) => {
                    let frame = vec![value; bytes];
                    prop_assert_eq!(kernel.deliver(&frame), coming.len() < 4);
                    if coming.len() < 4 {
                        coming.push(frame);
                    }
                }
                Deed::Look => {
                    let expected = (!coming.is_empty()).then(|| coming.remove(0));
                    prop_assert_eq!(rings.receive_with(<[u8]>::to_vec).unwrap(), expected);
                    // An empty look shows what was kept back.
                    if coming.is_empty() {
                        prop_assert!(rings.receive_with(|_| ()).unwrap().is_none());
                    } else {
                        rings.fill.publish();
                    }
                }
                Deed::Post(bytes) => {
                    let frame = vec![bytes as u8; bytes];
                    let has_room = going.len() + sent.len() < 2;
                    prop_assert_eq!(post(&mut rings, &frame), has_room);
                    if has_room {
                        going.push(frame);
                    }
                }
                Deed::Send => match kernel.send() {
                    Some((chunk, bytes)) => {
                        prop_assert_eq!(bytes, going.remove(0));
                        sent.push(chunk);
                    }
                    None => prop_assert!(going.is_empty()),
                },
                Deed::Complete => {
                    if let Some(chunk) = sent.pop() {
                        kernel.give(XskRing::Completion, chunk, 0);
                        completed += 1;
                    }
                    prop_assert_eq!(rings.transmitted().unwrap(), completed);
                }
                Deed::Scribble(..) | Deed::Forge(..) => {}
            }
        }
    }

    /// Whatever stands in the rings: no access outside, no slice outside the frames, an error at worst.
    #[test]
    fn whatever_is_in_the_rings_reaches_nothing_outside(
        deeds in prop::collection::vec(anything(), 1..DEEDS),
    ) {
        let (mut rings, kernel) = rig(SIZES, 0);
        let start = rings.frames.start().addr();
        let inside = start..start + rings.frames.bytes_in_all();
        let look = |frame: &[u8]| {
            let from = frame.as_ptr().addr();
            assert!(inside.start <= from && from + frame.len() <= inside.end);
            assert!(frame.len() <= 4096 && (from - start) % 4096 + frame.len() <= 4096, "inside one chunk");
            // Every byte of it can be read.
            frame.iter().map(|byte| u64::from(*byte)).sum::<u64>()
        };
        for deed in deeds {
            let fine = match deed {
                Deed::Scribble(ring, at, word) => {
                    kernel.scribble(ring, at, word);
                    Ok(())
                }
                Deed::Forge(is_received, address, length, options) => {
                    let ring = if is_received { XskRing::Receive } else { XskRing::Completion };
                    kernel.give(ring, address, join(length, options));
                    Ok(())
                }
                Deed::Look => rings.receive_with(look).map(drop),
                Deed::Post(bytes) => rings.transmit_with(|chunk| { chunk[..bytes].fill(1); bytes }).map(drop),
                Deed::Send => { rings.publish(); rings.unseen().map(drop) }
                Deed::Complete => rings.transmitted().map(drop),
                Deed::Deliver(..) => Ok(()),
            };
            // An error ends the use of a socket, and none of them is a matter of setting up.
            if let Err(error) = fine {
                let is_breach = matches!(
                    error, XskError::Index { .. } | XskError::Address { .. } | XskError::Owner { .. });
                prop_assert!(is_breach, "{}", error);
                break;
            }
        }
    }
}
