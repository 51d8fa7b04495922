//! Items of which each says whose it is and which one, in every byte.

use beeline::{Receiver, RecvError};

/// Bytes of an item before its filling: its length, its life, its number.
const HEAD: usize = 4 + 8 + 8;

pub fn item(life: u64, number: u64) -> Vec<u8> {
    let bytes = HEAD + (number.wrapping_mul(61) % 700) as usize;
    let mut item = (bytes as u32).to_le_bytes().to_vec();
    item.extend(life.to_le_bytes());
    item.extend(number.to_le_bytes());
    item.extend(
        (HEAD..bytes).map(|at| (life as u8) ^ (number.wrapping_mul(31) as u8).wrapping_add(at as u8)),
    );
    item
}

pub fn notification(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + (number % 7) as usize)
}

/// Takes a whole item off the front of a stream.
pub fn split_first(stream: &mut Vec<u8>) -> Option<Vec<u8>> {
    let bytes = u32::from_le_bytes(*stream.first_chunk()?) as usize;
    (stream.len() >= bytes).then(|| stream.drain(..bytes).collect())
}

/// Where the items of one life are.
#[derive(Default)]
pub struct Items {
    life: Option<u64>,
    next: u64,
}

impl Items {
    /// # Panics
    /// An item that is missing, comes twice, is of another life, or of which a byte is wrong.
    pub fn check(&mut self, found: &[u8]) {
        let life = u64::from_le_bytes(*found[4..].first_chunk().unwrap());
        let life = *self.life.get_or_insert(life);
        assert_eq!(found, item(life, self.next), "item {} of life {life:#x}", self.next);
        self.next += 1;
    }

    /// Checks what is there to be received, of one sender after the other.
    pub fn receive(&mut self, receiver: &mut Receiver) {
        for _ in 0..64 {
            match receiver.try_recv() {
                Ok(Some(message)) => self.check(&message.to_vec()),
                Ok(None) => return,
                Err(RecvError::SenderGone | RecvError::Torn(_)) => *self = Items::default(),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
