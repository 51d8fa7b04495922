//! One way to receive as the fuzzer plays it: the driver's half, its device, and what is known of both.
//!
//! What a device that has not lied delivers is received to the byte, in order and without a gap; what was freed never
//! runs ahead of what was taken; an error needs a lie and stays; whatever was delivered before a recovery is gone.

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use beeline_driver::{Port, QueueHalf, Receive, RxError};

use crate::Word;
use crate::fillers::{Filler, MAX_FRAME_BYTES, Says};
use crate::opened::{Opened, rung};
use crate::scripted::Scripted;

/// How a word that says something differs from the truth.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Lie {
    /// The word is as it should be.
    None,
    /// The frame is so many bytes longer, or the pipe is filled so many lines further.
    Length(i16),
    /// The mark of validity, or of the lap, is this.
    Mark(u8),
    /// The word is replaced.
    Other(Word),
    /// One bit of the word is inverted.
    Flip(u8),
}

impl Lie {
    /// Returns the word as the peer sees it.
    pub fn tell(self, word: u64) -> u64 {
        match self {
            Lie::None => word,
            Lie::Length(more) => word.wrapping_add_signed(more.into()),
            Lie::Mark(other) => word & 0xffff_ffff | u64::from(other) << 32,
            Lie::Other(word) => word.value(),
            Lie::Flip(bit) => word ^ 1 << (bit % 64),
        }
    }
}

/// What is said of one frame: that it is there, and which one it is.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Lies {
    there: Lie,
    which: Lie,
}

impl Lies {
    /// What becomes of a word that says something.
    pub fn tell(self, says: Says, word: u64) -> u64 {
        if says == Says::There { self.there.tell(word) } else { self.which.tell(word) }
    }
}

/// A frame of 1 to 1518 bytes, which depend on `fill`; a device drops one without any.
pub fn frame(bytes: u16, fill: u8) -> Vec<u8> {
    (0..1 + bytes % 1518).map(|at| (at as u8).wrapping_mul(7) ^ fill).collect()
}

/// Receives a frame and reads all of it; its length, if there was one.
///
/// # Errors
/// What the device wrote cannot be.
pub fn receive(rx: &mut dyn Receive, bytes: &mut [u8; MAX_FRAME_BYTES]) -> Result<Option<usize>, RxError> {
    let Some(mut frame) = rx.poll()? else { return Ok(None) };
    let length = frame.copy_out(bytes);
    assert!(length <= MAX_FRAME_BYTES && length == frame.len());
    for index in 0..=length.div_ceil(8) {
        assert_eq!(frame.word(index).is_some(), index * 8 < length);
    }
    Ok(Some(length))
}

/// A receive queue under test, whichever kind it is.
pub trait FuzzedReceiver {
    /// The device delivers a frame, if the host lends room.
    fn deliver(&mut self, link: &Scripted, frame: &[u8], lies: Lies);
    /// Polls; whether a frame came.
    fn poll(&mut self, link: &Scripted) -> bool;
    /// Asks whether the host may sleep; what was said holds until the device writes again.
    fn look(&mut self, link: &Scripted);
    /// Recovers the queue; `false` when the device does not let it, and the queue is gone.
    fn recover(&mut self, port: &mut Port<Scripted>) -> bool;
    /// The device wrote what no sound one does.
    fn lied(&mut self);
}

/// A half and its device.
pub struct Received<H, F> {
    opened: Option<Opened<H>>,
    filler: F,
    /// Frames that the host has not taken yet, unless the device lied.
    frames: VecDeque<Vec<u8>>,
    /// Frames that it took, and lines, buffers or entries of them.
    received: u64,
    taken: u64,
    is_lie: bool,
    failed: Option<RxError>,
}

impl<H: QueueHalf + Receive, F: Filler> Received<H, F> {
    /// Around an open queue.
    pub fn new(opened: Opened<H>, filler: F) -> Self {
        let (frames, opened) = (VecDeque::new(), Some(opened));
        Received { opened, filler, frames, received: 0, taken: 0, is_lie: false, failed: None }
    }
}

impl<H: QueueHalf + Receive, F: Filler> FuzzedReceiver for Received<H, F> {
    fn deliver(&mut self, link: &Scripted, frame: &[u8], lies: Lies) {
        let mut is_lie = false;
        let is_put = self.filler.put(link, frame, &mut |says, word| {
            let told = lies.tell(says, word);
            is_lie |= told != word;
            told
        });
        self.is_lie |= is_lie;
        if is_put {
            self.frames.push_back(frame.to_vec());
        }
    }

    fn poll(&mut self, link: &Scripted) -> bool {
        self.filler.progress(link);
        let Some(opened) = &mut self.opened else { return false };
        let mut bytes = [0; MAX_FRAME_BYTES];
        let mut found = receive(&mut opened.half, &mut bytes);
        if found == Ok(None) {
            // Finding nothing tells what was freed, which may be what the device waits for.
            self.filler.progress(link);
            found = receive(&mut opened.half, &mut bytes);
        }
        let is_held = link.0.borrow().holds;
        match (found, self.failed) {
            (Err(error), failed) => {
                assert_eq!(failed.unwrap_or(error), error, "an error is final");
                assert!(self.is_lie, "an error without a lie: {error}");
                self.failed = Some(error);
            }
            (Ok(_), Some(_)) => panic!("a poll went well after an error"),
            (Ok(None), None) => {
                let is_all = self.received == self.filler.announced();
                assert!(self.is_lie || is_held || is_all, "a frame is not found");
            }
            (Ok(Some(length)), None) => {
                let expected = self.frames.pop_front();
                let is_it = expected.is_some_and(|frame| frame == bytes[..length]);
                assert!(self.is_lie || is_it, "another frame");
                self.received += 1;
                self.taken += self.filler.frees(length).map_or(0, |(_, units)| units);
            }
        }
        if let Some((doorbell, _)) = self.filler.frees(0) {
            let told = rung(link, opened.queue, doorbell);
            assert!(told <= self.taken, "the device is told that {told} of {} are free", self.taken);
        }
        found.is_ok_and(|length| length.is_some())
    }

    fn look(&mut self, link: &Scripted) {
        self.filler.progress(link);
        let Some(opened) = &mut self.opened else { return };
        match opened.half.wants_interrupt() {
            Ok(true) => assert!(matches!(opened.half.poll(), Ok(None)), "asleep beside a frame"),
            Ok(false) => {}
            Err(error) => assert!(self.is_lie, "an error without a lie: {error}"),
        }
    }

    fn recover(&mut self, port: &mut Port<Scripted>) -> bool {
        let Some(opened) = self.opened.take() else { return false };
        let Some(opened) = opened.recovered(port) else { return false };
        self.filler.restart(opened.epoch());
        self.frames.clear();
        (self.received, self.taken, self.is_lie, self.failed) = (0, 0, false, None);
        self.opened = Some(opened);
        true
    }

    fn lied(&mut self) {
        self.is_lie = true;
    }
}
