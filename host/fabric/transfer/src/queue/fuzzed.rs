//! A message queue whose other end stores what it likes, for the fuzz target.

use beeline_mmio::Region;

use super::header::{Room, Words};

/// Two segments, one behind the other.
pub(crate) const BYTES: usize = 2 * SEGMENT_BYTES;
const SEGMENT_BYTES: usize = 2048;

/// Opens the queue with what the other end says of itself, then sends and receives while it stores more.
pub(crate) fn exchange(region: &Region, words: &[(u16, u64)], later: &[(u16, u64)]) -> Option<usize> {
    let room = Room::of(4, 100).ok()?;
    let [own, other] = [0, SEGMENT_BYTES].map(|start| Words::new(region.clone(), start));
    let own_header = own.begin(room, [2, 1]);
    other.begin(room, [4, 3]);
    let store = |(at, value): &(u16, u64)| {
        // Of both: an end can store into whatever it is connected to, as the other end is.
        let at = usize::from(*at) % (BYTES / 8) * 8;
        region.word(at).store(*value);
    };
    words.iter().for_each(store);
    let other_header = other.read(SEGMENT_BYTES as u64)?;
    let mut sender = other.sender(&other_header, &own);
    let mut inlet = own.inlet(&own_header, &other);
    let mut received = 0;
    for words in later.chunks(4).chain([[].as_slice()]) {
        words.iter().for_each(store);
        let most = sender.max_payload_bytes().min(100);
        let _sent = sender.try_send(&[7; 100][..most]);
        let _free = sender.free_lines();
        if let Ok(Some(mut message)) = inlet.poll() {
            let mut bytes = Vec::new();
            message.copy_to(&mut bytes);
            received += bytes.len();
        }
    }
    Some(received)
}
