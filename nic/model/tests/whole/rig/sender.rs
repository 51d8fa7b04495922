//! A sender, straight from the formats: what a host must store for a message, and where.

use beeline_spec::{Header, Kind, LINE_BYTES, escape};

/// A line of a message at its absolute position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedLine {
    /// Lines since the queue was enabled.
    pub position: u64,
    pub bytes: [u8; LINE_BYTES],
}

/// Lays messages out one after another.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Position of the next message in lines.
    pub position: u64,
    pub epoch: u8,
    /// 0 for an observed window.
    pub blank: u64,
}

impl Sender {
    pub fn new(epoch: u8, blank: u64) -> Self {
        Sender { position: 0, epoch, blank }
    }

    /// The lines of a message with this payload, escaped if the window has a blank.
    pub fn message(&mut self, kind: Kind, payload: &[u8]) -> Vec<PlacedLine> {
        let mut header = Header::new(kind, payload.len() as u32, self.epoch);
        let mut words = vec![0; header.lines() as usize * 8];
        for (word, bytes) in words[1..].iter_mut().zip(payload.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        if self.blank != 0 {
            for (index, word) in (1..).zip(&mut words[1..]).filter(|(_, word)| **word == self.blank) {
                *word = escape::link(header.escape_last);
                header.escape_last = index;
            }
        }
        words[0] = header.encode();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let lines = bytes.as_chunks::<LINE_BYTES>().0.iter();
        let placed: Vec<PlacedLine> = (self.position..)
            .zip(lines)
            .map(|(position, bytes)| PlacedLine { position, bytes: *bytes })
            .collect();
        self.position += placed.len() as u64;
        placed
    }

    /// A message with one frame.
    pub fn frame(&mut self, frame: &[u8]) -> Vec<PlacedLine> {
        self.message(Kind::Data, frame)
    }

    pub fn batch(&mut self, records: &[Vec<u8>]) -> Vec<PlacedLine> {
        let mut payload = Vec::new();
        for record in records {
            payload.extend_from_slice(&(record.len() as u16).to_le_bytes());
            payload.extend_from_slice(record);
            payload.resize(payload.len().next_multiple_of(8), 0);
        }
        self.message(Kind::Batch, &payload)
    }
}
