//! What is stored and asked for: the same keys, values and order for every server.

pub const KEY_BYTES: usize = 16;
pub const VALUE_BYTES: usize = 32;
/// Keys, a power of two: what they take fits a second-level cache, as the set that is asked for most does.
const KEYS: usize = 16_384;
/// Odd, so that stepping by it visits every key once before any again; large, so that neighbours are far apart.
const STEP: usize = 6_151;

/// A key: letters and digits, as every server takes them.
pub type Key = [u8; KEY_BYTES];
pub type Value = [u8; VALUE_BYTES];

/// All keys in the order in which they are asked for, over and over, and their values in the same order.
#[derive(Debug)]
pub struct Keys {
    keys: Vec<Key>,
    values: Vec<Value>,
}

impl Keys {
    /// Returns the same keys in every run.
    pub fn new() -> Self {
        let numbers = (0..KEYS).map(|place| place * STEP % KEYS);
        let (keys, values) = numbers.map(|number| (key(number), value(number))).unzip();
        Keys { keys, values }
    }

    /// The keys of GETs `number` and on. Groups of a power of two, at most 16,384, never reach around the end.
    #[inline]
    pub fn group(&self, number: u64, keys: usize) -> &[Key] {
        let first = number as usize % KEYS;
        &self.keys[first..first + keys]
    }

    /// The value that GET `number` is to give.
    #[inline]
    pub fn value(&self, number: u64) -> &Value {
        &self.values[number as usize % KEYS]
    }

    /// Every key with its value, once.
    pub fn pairs(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.keys.iter().zip(&self.values)
    }

    /// The value of a key; takes a search.
    pub fn value_of(&self, key: &Key) -> Option<&Value> {
        self.pairs().find(|(other, _)| *other == key).map(|(_, value)| value)
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self::new()
    }
}

fn key(number: usize) -> Key {
    let text = format!("key-{number:012}");
    *text.as_bytes().first_chunk().expect("four letters and twelve digits are 16 bytes")
}

fn value(number: usize) -> Value {
    let word = |index: usize| ((number * 4 + index + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut value = [0; VALUE_BYTES];
    for (index, chunk) in value.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *chunk = word(index).to_le_bytes();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_key_is_requested_once_per_lap() {
        let keys = Keys::new();
        let lap: HashSet<Key> = (0..KEYS as u64).map(|number| keys.group(number, 1)[0]).collect();
        assert_eq!(lap.len(), KEYS);
        let values: HashSet<&Value> = keys.pairs().map(|(_, value)| value).collect();
        assert_eq!(values.len(), KEYS);
        assert_eq!(keys.group(KEYS as u64 - 256, 256).len(), 256);
        assert_eq!(keys.group(KEYS as u64 + 3, 1), keys.group(3, 1));
        assert_eq!(&keys.group(0, 1)[0], b"key-000000000000");
        assert_eq!(keys.value_of(&keys.group(5, 1)[0]), Some(keys.value(5)));
    }
}
