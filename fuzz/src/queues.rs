//! Queues of a driver whose device is the fuzzer.

use beeline_driver::{Pending, Port, PortError, Progress, QueueHalf, Receive, RxError, Stopped};

use crate::Word;
use crate::scripted::Scripted;

/// Longest frame a receive buffer of these queues holds.
pub const MAX_FRAME_BYTES: usize = 1536;

/// Polls until an operation ends, with ten milliseconds between polls.
///
/// # Errors
/// As the operation.
pub fn finish<T>(port: &mut Port<Scripted>, mut pending: Pending<T>) -> Result<T, PortError> {
    for round in 0..2000 {
        port.poll(round * 10_000_000)?;
        pending = match port.finish(pending)? {
            Progress::Done(value) => return Ok(value),
            Progress::Pending(pending) => pending,
        };
    }
    panic!("an operation does not end");
}

/// Opens a queue of a device that is still sound.
pub fn open<H: QueueHalf>(port: &mut Port<Scripted>, half: Result<Stopped<H>, PortError>) -> H {
    let pending = port.open(half.expect("a sound device"));
    finish(port, pending).expect("a sound device")
}

/// Receives a frame and reads all of it; its length, if there was one.
///
/// # Errors
/// As [`Receive::poll`].
pub fn receive(rx: &mut dyn Receive, bytes: &mut [u8]) -> Result<Option<usize>, RxError> {
    let Some(mut frame) = rx.poll()? else { return Ok(None) };
    let length = frame.copy_out(bytes);
    assert!(length <= MAX_FRAME_BYTES && length == frame.len());
    for index in 0..=length.div_ceil(8) {
        assert_eq!(frame.word(index).is_some(), index * 8 < length);
    }
    Ok(Some(length))
}

/// Writes a word into a region of the driver's memory, if it has one there.
pub fn poke(link: &Scripted, region: u8, word: usize, value: Word) {
    let shared = link.0.borrow();
    let Some(place) = usize::from(region).checked_rem(shared.regions.len()) else { return };
    let mut words = shared.regions[place].borrow_mut();
    if let Some(word) = words.get_mut(word) {
        *word = value.value();
    }
}

/// Recovers a queue; `None` when the device does not let it.
pub fn recover<H: QueueHalf>(port: &mut Port<Scripted>, half: H) -> Option<H> {
    let pending = port.recover(half);
    finish(port, pending).ok()
}
