//! The hash of keys: with a number that only this store knows.
//!
//! foldhash with a random seed: no list of keys collides in every store, which is enough against clients of one user, who
//! could stop the server anyway. It does not claim to withstand somebody who measures how long GETs take and works the
//! seed out. SipHash-1-3 does, for some 9 ns a GET: it is for stores that other users may call.

use core::hash::{BuildHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::quality::{FoldHasher, SeedableRandomState};
use siphasher::sip::SipHasher13;

use crate::error::OpenError;
use crate::key::Key;
use crate::options::Hashing;

/// Hashes the keys of one store.
#[derive(Clone, Debug)]
pub(crate) enum KeyHash {
    Quick(SeedableRandomState),
    Secret([u64; 2]),
}

impl KeyHash {
    pub(crate) fn random(hashing: Hashing) -> Result<Self, OpenError> {
        let random = || getrandom::u64().map_err(|error| OpenError::Random { why: error.to_string() });
        Ok(match hashing {
            Hashing::Quick => {
                KeyHash::Quick(SeedableRandomState::with_seed(random()?, SharedSeed::global_random()))
            }
            Hashing::Secret => KeyHash::Secret([random()?, random()?]),
        })
    }

    #[inline(always)]
    pub(crate) fn of(&self, key: Key) -> u64 {
        self.hash_one(key)
    }
}

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    #[inline(always)]
    fn build_hasher(&self) -> KeyHasher {
        match self {
            KeyHash::Quick(state) => KeyHasher::Quick(state.build_hasher()),
            KeyHash::Secret([first, second]) => {
                KeyHasher::Secret(SipHasher13::new_with_keys(*first, *second))
            }
        }
    }
}

/// One key on its way to its hash.
#[derive(Clone)]
pub(crate) enum KeyHasher {
    Quick(FoldHasher<'static>),
    Secret(SipHasher13),
}

impl Hasher for KeyHasher {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        match self {
            KeyHasher::Quick(hasher) => hasher.write(bytes),
            KeyHasher::Secret(hasher) => hasher.write(bytes),
        }
    }

    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        match self {
            KeyHasher::Quick(hasher) => hasher.write_u64(word),
            KeyHasher::Secret(hasher) => hasher.write_u64(word),
        }
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        match self {
            KeyHasher::Quick(hasher) => hasher.finish(),
            KeyHasher::Secret(hasher) => hasher.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_hash_with_numbers_of_their_own() {
        let keys: Vec<Key> = (0..64).map(|number| Key::from_words([number, 0])).collect();
        for hashing in [Hashing::Quick, Hashing::Secret] {
            let hashes = || {
                let hash = KeyHash::random(hashing).unwrap();
                keys.iter().map(|key| hash.of(*key)).collect::<Vec<_>>()
            };
            let (one, other) = (hashes(), hashes());
            let shared = one.iter().filter(|hash| other.contains(hash)).count();
            assert_eq!(shared, 0, "of 64 keys, by {hashing:?}");
        }
    }
}
