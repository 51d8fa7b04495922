//! The hash of keys: keyed anew for every store.

use core::hash::BuildHasher;

use foldhash::SharedSeed;
use foldhash::quality::{FoldHasher, SeedableRandomState};

use crate::error::OpenError;
use crate::key::Key;

/// Hashes keys with numbers that only this store knows.
#[derive(Clone, Debug)]
pub(crate) struct KeyHash(SeedableRandomState);

impl KeyHash {
    pub(crate) fn random() -> Result<Self, OpenError> {
        let seed = getrandom::u64().map_err(|error| OpenError::Random { why: error.to_string() })?;
        Ok(KeyHash(SeedableRandomState::with_seed(seed, SharedSeed::global_random())))
    }

    #[inline(always)]
    pub(crate) fn of(&self, key: Key) -> u64 {
        self.hash_one(key)
    }
}

impl BuildHasher for KeyHash {
    type Hasher = FoldHasher<'static>;

    #[inline(always)]
    fn build_hasher(&self) -> FoldHasher<'static> {
        self.0.build_hasher()
    }
}
